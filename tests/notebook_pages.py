"""The pages of docs/notebooks, made by running the notebooks.

    python notebook_pages.py

A notebook is kept without outputs, so that a change of it is a change of what somebody wrote. Its
page has them: it is made by running the notebook in a folder of its own. `make notebook-pages`
writes all pages; a test runs each notebook again and holds its page against what it says now.
"""

from __future__ import annotations

import logging
import os
import re
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from conftest import REPOSITORY
from experiment_pages import compact

NOTEBOOKS = REPOSITORY / "docs" / "notebooks"
CELL_SECONDS = 300
_MATPLOTLIB_SETTINGS = "svg.fonttype: none\nsvg.hashsalt: agewell\n"
"""Pictures of pyplot have text that is text, and the same identifiers each time."""


@dataclass
class Page:
    """A notebook that was run.

    Attributes:
        text: The page.
        pictures: What it shows beside its text, by file name.
    """

    text: str
    pictures: dict[str, str] = field(default_factory=dict)


def notebooks() -> list[Path]:
    """Every notebook."""
    return sorted(NOTEBOOKS.glob("*.ipynb"))


def read(path: Path) -> Any:
    """A notebook as it is kept."""
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def run(path: Path, folder: Path) -> Page:
    """Run a notebook in a folder, where it may leave files, and make its page."""
    notebook = read(path)
    (folder / "matplotlibrc").write_text(_MATPLOTLIB_SETTINGS)
    environment = {
        **os.environ,
        "COLUMNS": "100",
        "IPYTHONDIR": str(folder / "ipython"),
        "MATPLOTLIBRC": str(folder),
    }
    client = NotebookClient(
        notebook,
        # It warns of the port of this machine over which it is spoken to.
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        timeout=CELL_SECONDS,
        resources={"metadata": {"path": str(folder)}},
    )
    with warnings.catch_warnings():
        # Of the library's own loops and sockets, which are none of the notebook's.
        warnings.simplefilter("ignore")
        logging.getLogger("asyncio").setLevel(logging.ERROR)
        client.execute(env=environment)
    return _page(path.stem, notebook)


def _page(name: str, notebook: Any) -> Page:
    page = Page("")
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        parts += [_output(name, output, page) for output in cell.outputs]
    title, *rest = parts
    heading, _, introduction = title.partition("\n\n")
    downloaded = (
        f"*This page is [a notebook]({name}.ipynb) that was run. Download it to go on: "
        "`pip install 'agewell[notebooks]'` brings what opens it.*"
    )
    whole = [heading, introduction, downloaded, *rest]
    page.text = "\n\n".join(part for part in whole if part) + "\n"
    return page


def _output(name: str, output: Any, page: Page) -> str:
    """What a cell has left, as Markdown: the richest form that a page without scripts can show."""
    if output.output_type == "stream":
        assert output.name == "stdout", f"{name}: {output.text}"
        return f"```text\n{output.text.rstrip()}\n```"
    data = output.data
    if "image/svg+xml" in data:
        picture = f"{name}-{len(page.pictures) + 1}.svg"
        page.pictures[picture] = compact(data["image/svg+xml"])
        return f"![What the lines above draw]({picture})"
    if "text/html" in data:
        return _table(data["text/html"])
    return f"```text\n{data['text/plain'].rstrip()}\n```"


def _table(html: str) -> str:
    """A table of pandas as one of the site, without a class or a border of its own."""
    [table] = re.findall(r"<table.*?</table>", html, re.DOTALL)
    table = re.sub(r"<(table|tr|th|td)\b[^>]*>", r"<\1>", table)
    return re.sub(r">\s+<", "><", table)


def write() -> None:
    """Run every notebook and write its page and its pictures."""
    for path in notebooks():
        with tempfile.TemporaryDirectory() as folder:
            page = run(path, Path(folder))
        for old in NOTEBOOKS.glob(f"{path.stem}-*.svg"):
            old.unlink()
        path.with_suffix(".md").write_text(page.text)
        for picture, text in page.pictures.items():
            (NOTEBOOKS / picture).write_text(text)


if __name__ == "__main__":
    write()
