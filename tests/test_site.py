"""The documentation as a site: it builds strictly, asks the network for nothing, and reads well."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import chromium
from conftest import REPOSITORY

pytestmark = [
    pytest.mark.tidy,
    pytest.mark.skipif(find_spec("mkdocs") is None, reason="`make lint` installs what builds it"),
]

FETCHED = re.compile(
    r"<(?:script|img|iframe|link|source|object|embed|video|audio)\b[^>]*\s(?:src|href|data|srcset)="
    r"[\"']?(?:https?:)?//[^>]*",
)
FETCHED_BY_STYLES = re.compile(r"@import\s[^;]*|url\(\s*[\"']?(?:https?:)?//[^)]*\)")

VISITED = (
    "index.html",
    "guides/slow-file-server.html",
    "reference/command-line.html",
    "reference/python.html",
    "experiments/gallery.html",
    "notebooks/policy.html",
)
"""A page of each kind."""

EXPRESSIONS = {
    "wider": "document.documentElement.scrollWidth - document.documentElement.clientWidth",
    # Of what does not scroll by itself.
    "clipped": """[...document.querySelectorAll(".md-content *")]
      .filter(one => one.getBoundingClientRect().right > innerWidth + 1)
      .filter(one => !one.closest(".md-typeset__scrollwrap, pre, .highlight"))
      .map(one => one.outerHTML.slice(0, 100))""",
    "unloaded": """Promise.all([...document.images].map(async one => {
      one.loading = "eager";
      await one.decode().catch(() => 0);
      return one.naturalWidth ? "" : one.src;
    })).then(all => all.filter(Boolean))""",
}


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make docs` makes, in a folder of its own."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=REPOSITORY,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_fetches_nothing(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    styles = list(site.rglob("*.css"))
    assert len(pages) > 100
    assert styles
    fetched = [
        f"{path.relative_to(site)}: {found}"
        for pattern, paths in ((FETCHED, pages), (FETCHED_BY_STYLES, styles))
        for path in paths
        for found in pattern.findall(path.read_text())
    ]
    # The address of a page's theme is a link that a reader may follow; nothing is fetched for it.
    assert fetched == []


def test_examples_of_python_are_shown_as_code(site: Path) -> None:
    page = (site / "reference" / "python.html").read_text()
    assert page.count('<span class="gp">&gt;&gt;&gt; </span>') > 20
    # What a docstring says under a heading that is not known is a quotation of quotations.
    assert "<blockquote>" not in page


@pytest.mark.parametrize(
    "harm",
    [
        '<script src="https://example.org/a.js"></script>',
        '<link rel="stylesheet" href="//fonts.example.org/css">',
        "<img alt='' src='http://example.org/a.png'>",
    ],
)
def test_what_a_page_would_fetch_is_seen(harm: str) -> None:
    assert FETCHED.search(f"<p>words {harm} words</p>")
    assert not FETCHED.search('<a href="https://example.org">a link</a> <img src="a.png">')
    assert FETCHED_BY_STYLES.search("@font-face { src: url('//example.org/a.woff2') }")


@pytest.mark.browser
@pytest.mark.parametrize("page", VISITED)
def test_pages_fit_and_load(site: Path, browser: chromium.Browser, page: str) -> None:
    for width in (1280, 400):
        seen = browser.visit(site / page, EXPRESSIONS, width=width)
        assert seen.console == []
        assert [address for address in seen.requests if not address.startswith("file:")] == []
        assert seen.values == {"wider": 0, "clipped": [], "unloaded": []}, width


SEARCH = """new Promise(resolve => {
  const query = document.querySelector("[data-md-component=search-query]");
  const look = () => {
    const found = [...document.querySelectorAll(".md-search-result__link")].map(one => one.href);
    if (found.length) resolve(found);
    else setTimeout(look, 50);
  };
  document.querySelector("[data-md-toggle=search]").click();
  query.focus();
  query.value = "regression";
  query.dispatchEvent(new Event("keyup"));
  look();
})"""


@pytest.mark.browser
def test_search_works_from_a_folder(site: Path, browser: chromium.Browser) -> None:
    seen = browser.visit(site / "index.html", {"found": SEARCH})
    pages = {
        address.removeprefix(f"{site.as_uri()}/").split("?")[0] for address in seen.values["found"]
    }
    assert any(page.startswith("guides/layout-regression.html") for page in pages)
