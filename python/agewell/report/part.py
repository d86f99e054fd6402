"""A part of a page: what one command left. Several parts make one page, their verdicts first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agewell.report.page import Cell, Highlight, Page, PageTable, Section


@dataclass(frozen=True, slots=True)
class Part:
    """What one command left.

    Attributes:
        kind: Which: `comparison`, `advice`, `score`, ...
        title: What it is of, for the heading.
        subtitle: What else says which one it is.
        verdict: What it says, in sentences, the answer first.
        sections: Its tables and pictures.
        highlights: The figures of the answer, where sections do not begin with them.
        facts: Where its figures come from, and the commands that make them again.
    """

    kind: str
    title: str
    subtitle: str
    verdict: Sequence[str]
    sections: Sequence[Section]
    highlights: Sequence[Highlight] = ()
    facts: Sequence[tuple[str, str]] = ()


def page_of(parts: Sequence[Part], title: str | None = None) -> Page:
    """One page of one part or several.

    Args:
        parts: At least one, in reading order.
        title: The heading; made from the parts by default.
    """
    if len(parts) == 1:
        part = parts[0]
        return Page(title or part.title, part.subtitle, _with_verdict(part), part.facts)
    sections = [_in_short(parts)]
    facts: list[tuple[str, str]] = []
    for place, part in enumerate(parts, start=1):
        sections += [_own(section, part, place) for section in _with_verdict(part)]
        facts += [(f"{part.title}: {name}", value) for name, value in part.facts]
    return Page(
        title or f"{parts[0].title}, and {len(parts) - 1} more",
        "; ".join(dict.fromkeys(part.title for part in parts)),
        sections,
        facts,
    )


def _with_verdict(part: Part) -> list[Section]:
    """The sections, the first of which says the verdict."""
    if not part.verdict and not part.highlights:
        return list(part.sections)
    verdict = Section(
        identifier="verdict",
        title="Verdict",
        paragraphs=part.verdict,
        highlights=part.highlights,
    )
    return [verdict, *part.sections]


def _in_short(parts: Sequence[Part]) -> Section:
    """The first sentence of every part, and the figures of the answers."""
    rows = [
        [Cell(part.title), Cell(part.verdict[0] if part.verdict else part.subtitle)]
        for part in parts
    ]
    return Section(
        identifier="in-short",
        title="In short",
        # What to do stands before what is.
        highlights=[
            highlight
            for part in sorted(parts, key=lambda part: part.kind != "advice")
            for highlight in part.highlights[:1]
        ],
        tables=[PageTable(("what", "what it says"), rows)],
    )


def _own(section: Section, part: Part, place: int) -> Section:
    """A section under names that no other part of the page has."""
    is_first = section.identifier == "verdict"
    return replace(
        section,
        identifier=f"part-{place}-{section.identifier}",
        title=part.title if is_first else f"{part.title}: {section.title}",
        short=part.title if is_first else section.short or section.title,
        plots=[replace(plot, name=f"{place}-{plot.name}") for plot in section.plots],
        pictures=[replace(each, name=f"{place}-{each.name}") for each in section.pictures],
    )
