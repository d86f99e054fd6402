"""What a page does not say to everybody: axe-core's findings, and texts that lie on each other.

axe-core comes from the npm registry, into a folder of the test; without npm the tests skip.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

AXE_CORE = "axe-core@4.14.1"
INSTALL_SECONDS = 240

OVERPRINTED = """(() => {
  const found = [];
  for (const svg of document.querySelectorAll("figure svg")) {
    const texts = [...svg.querySelectorAll("text")]
      .map(each => [each.textContent, each.getBoundingClientRect()])
      .filter(([, box]) => box.width > 0);
    const frame = svg.getBoundingClientRect();
    for (const [text, box] of texts) {
      if (box.left < frame.left - 1 || box.right > frame.right + 1
          || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
        found.push(`clipped in ${svg.parentElement.id}: ${text}`);
    }
    texts.forEach(([text, a], place) => {
      for (const [other, b] of texts.slice(place + 1)) {
        const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (width > 1 && height > 3)
          found.push(`overprinted in ${svg.parentElement.id}: ${text} and ${other}`);
      }
    });
  }
  return found;
})()"""
"""Texts of pictures that leave their picture or lie on another, as sentences.

Boxes of text hold room above and below the letters: three pixels of overlap are none."""

TEXTS = "document.querySelectorAll('figure svg text').length"


def install(folder: Path) -> str | None:
    """Install axe-core below a folder; None if done, else why not."""
    if shutil.which("npm") is None:
        return "npm is not installed, and axe-core comes from its registry"
    command = ["npm", "install", "--silent", "--no-audit", "--prefix", str(folder), AXE_CORE]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"npm install took longer than {INSTALL_SECONDS} s"
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return f"npm install {AXE_CORE} failed: {last}"
    return None


def expressions(folder: Path) -> dict[str, str]:
    """What to evaluate in a page: `light` and `dark` give findings as `[rule, impact, html]`."""
    axe = folder / "node_modules" / "axe-core" / "axe.min.js"
    return {
        "axe": f"{axe.read_text()}; typeof axe",
        "light": _findings("light", "{}"),
        # The themes of a page differ in their colours alone.
        "dark": _findings("dark", "{runOnly: ['color-contrast', 'link-in-text-block']}"),
        "overprinted": OVERPRINTED,
        "texts": TEXTS,
        "too wide": "document.documentElement.scrollWidth > window.innerWidth",
    }


def _findings(theme: str, options: str) -> str:
    return (
        "document.querySelectorAll('details').forEach(each => { each.open = true; });"
        f"document.documentElement.dataset.theme = '{theme}';"
        f"axe.run({options}).then(done => done.violations.map("
        "each => [each.id, each.impact, each.nodes[0].html.slice(0, 200)]))"
    )
