"""The sentences of a page in Markdown, and how many words each has."""

from __future__ import annotations

import re

NOT_PROSE = (
    re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL),
    re.compile(r"<!--.*?-->", re.DOTALL),
    # A list of publications is no prose.
    re.compile(r"^## Sources\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL),
    re.compile(r"^#.*$", re.MULTILINE),
    re.compile(r"^\|.*$", re.MULTILINE),
    # Indented code and formulas; what belongs to an item of a list is indented by less.
    re.compile(r"^ {4}.*$", re.MULTILINE),
)
"""What is left out, in this order: code, comments, publications, headings, tables, formulas."""

ITEM = re.compile(r"^ *(?:[*-]|\d+\.) ", re.MULTILINE)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
CODE_SPAN = re.compile(r"`[^`]*`")

ABBREVIATION = re.compile(r"(?:\b(?:et al|e\.g|i\.e|cf|vs|eqs?|[A-Z])|\b[A-Z]\.-[A-Z])\.$")
"""A full stop behind one of these, or behind an initial, ends no sentence."""

SENTENCE_END = re.compile(r"""[.!?][")*_]*(?=\s+["(*_]*(?:[A-Z0-9`]|agewell\b))""")


def sentences(page: str) -> list[str]:
    """The sentences of a page.

    A sentence ends with a full stop, a question mark or an exclamation mark before a capital, a
    figure, code or our own name. The end of a paragraph or of an item of a list ends it in any
    case; a colon or a semicolon does not.
    """
    for pattern in NOT_PROSE:
        page = pattern.sub("\n", page)
    found = []
    for paragraph in re.split(r"\n\s*\n", ITEM.sub("\n\n", page)):
        text = " ".join(LINK.sub(r"\1", paragraph).split())
        start = 0
        for end in SENTENCE_END.finditer(text):
            if ABBREVIATION.search(text[: end.start() + 1]):
                continue
            found.append(text[start : end.end()].strip())
            start = end.end()
        found.append(text[start:].strip())
    return [sentence for sentence in found if words(sentence)]


def words(sentence: str) -> int:
    """What stands between blanks and holds a letter or a figure; code is one word."""
    return sum(1 for word in CODE_SPAN.sub("code", sentence).split() if re.search(r"\w", word))
