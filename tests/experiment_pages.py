"""The pages of docs/experiments, made from what `agewell reproduce` has left.

    python experiment_pages.py [DIR]

DIR is the folder of `agewell reproduce --out DIR`. Its rows go to docs/experiments/data and its
plots beside the pages; a row that could not be run there stays as it was. Without DIR the pages are
made again from what is stored, `README.md`, `NOTES.md` and `experiment.toml`. `make
experiment-pages` does either; a test holds the pages against this program.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agewell.report.parts.reproduction import show_value
from agewell.studies import studies
from agewell.studies.study import Figure, Study, Verdict
from conftest import REPOSITORY

PAGES = REPOSITORY / "docs" / "experiments"
DATA = PAGES / "data"
EXPERIMENTS = REPOSITORY / "experiments"
SCHEMA_VERSION = 1

_SIGNIFICANT_DIGITS = 6
"""Of a stored number; the pages show four."""
_DECIMALS = 2
"""Of a coordinate of a plot, in points."""

_COUNTED = {
    Verdict.HOLDS: "hold",
    Verdict.DIFFERS: "differ",
    Verdict.FAILS: "fail",
    Verdict.INFORMATION: "without a verdict",
    Verdict.NOT_RUN: "not run",
}
_PLACE = re.compile(r"(<!-- papers: begin -->\n).*?(<!-- papers: end -->)", re.DOTALL)
_LINK = re.compile(r"(\[[^\]]*\]\()([^)#\s]+)(#[^)\s]*)?\)")

Stored = dict[str, Any]
"""What is kept of one figure: version, build, notes, plots and rows."""


# --- what a run has left --------------------------------------------------------------------------


def store(runs: Path) -> None:
    """Take over the rows and plots of every paper that `agewell reproduce --out runs` made."""
    for paper in studies():
        document_path = runs / paper / "rows.json"
        if not document_path.is_file():
            continue
        kept = stored(paper)
        for figure, found in figures(json.loads(document_path.read_text())).items():
            is_complete = all(row["verdict"] != Verdict.NOT_RUN for row in found["rows"])
            kept[figure] = merged(kept.get(figure), found)
            if is_complete:
                _store_plots(found, runs / paper / "plots", PAGES / paper)
        _data_file(paper).parent.mkdir(parents=True, exist_ok=True)
        _data_file(paper).write_text(as_text(kept))


def figures(document: Mapping[str, Any]) -> dict[str, Stored]:
    """The figures of a `rows.json` by name, as they are stored."""
    found: dict[str, Stored] = {
        figure["figure"]: {
            "version": document["agewell_version"],
            "build": document["agewell_build"],
            "notes": figure["notes"],
            "plots": [
                {key: plot[key] for key in ("name", "title", "caption")} for plot in figure["plots"]
            ],
            "rows": [],
        }
        for figure in document["figures"]
    }
    for row in document["rows"]:
        kept = {
            key: _rounded(value)
            for key, value in row.items()
            if key not in {"paper_name", "figure"} and value not in {None, ""}
        }
        found[row["figure"]]["rows"].append(kept)
    return found


def merged(before: Stored | None, found: Stored) -> Stored:
    """What a run has found, with the rows of before where it could not be made.

    Such a row says which build it is of. Plots are of all rows or of none.
    """
    lacking = [row for row in found["rows"] if row["verdict"] == Verdict.NOT_RUN]
    if not lacking:
        return found
    if before is None:
        return {**found, "plots": []}
    earlier = {row["what"]: row for row in before["rows"]}
    if len(lacking) == len(found["rows"]):
        return before
    rows = [
        {"build": before["build"], **earlier[row["what"]]}
        if row in lacking and row["what"] in earlier
        else row
        for row in found["rows"]
    ]
    return {**found, "plots": before["plots"], "rows": rows}


def stored(paper: str) -> dict[str, Stored]:
    """What is kept of a paper, by figure."""
    if not _data_file(paper).is_file():
        return {}
    found: dict[str, Stored] = json.loads(_data_file(paper).read_text())["figures"]
    return found


def as_text(kept: Mapping[str, Stored]) -> str:
    """JSON with a row on a line, so that a change of one number is a change of one line."""
    parts = []
    for name, figure in kept.items():
        head = {key: value for key, value in figure.items() if key != "rows"}
        fields = [f"   {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
        rows = ",\n".join(f"    {json.dumps(row, ensure_ascii=True)}" for row in figure["rows"])
        fields.append(f'   "rows": [\n{rows}\n   ]')
        parts.append(f"  {json.dumps(name)}: {{\n" + ",\n".join(fields) + "\n  }")
    inner = ",\n".join(parts)
    return f'{{\n "schema_version": {SCHEMA_VERSION},\n "figures": {{\n{inner}\n }}\n}}\n'


def compact(svg: str) -> str:
    """A plot with coordinates of two decimals and without what nobody sees."""
    text = svg[svg.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"<[^>]*>", lambda tag: _compact_tag(tag.group()), text)
    text = text.replace("'DejaVu Sans'", "'DejaVu Sans', sans-serif")
    return re.sub(r">\s+<", ">\n<", text).strip() + "\n"


def _compact_tag(tag: str) -> str:
    words = " ".join(tag.split())
    return re.sub(r"-?\d+\.\d+", lambda number: _short(float(number.group())), words)


def _short(number: float) -> str:
    text = f"{number:.{_DECIMALS}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _store_plots(found: Stored, plots: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for plot in found["plots"]:
        picture = (plots / f"{plot['name']}.svg").read_text()
        (folder / f"{plot['name']}.svg").write_text(compact(picture))


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.{_SIGNIFICANT_DIGITS}g}")
    return value


def _data_file(paper: str) -> Path:
    return DATA / f"{paper}.json"


# --- the pages ------------------------------------------------------------------------------------


def pages() -> dict[Path, str]:
    """Every page of a paper or a figure, and the page over all, by its file."""
    made: dict[Path, str] = {}
    counts: list[tuple[Study, Counter[str]]] = []
    for paper, study in studies().items():
        kept = stored(paper)
        known = [figure for figure in study.figures if figure.name in kept]
        for figure in known:
            made[PAGES / paper / f"{figure.name}.md"] = _figure_page(study, figure, kept)
        made[PAGES / paper / "index.md"] = _paper_page(study, known, kept)
        counts.append((study, sum((_count(kept[one.name]) for one in known), Counter())))
    made[PAGES / "index.md"] = _first_page((PAGES / "index.md").read_text(), counts)
    made[PAGES / "gallery.md"] = _gallery()
    return made


def _figure_page(study: Study, figure: Figure, kept: Mapping[str, Stored]) -> str:
    folder = EXPERIMENTS / study.name / figure.name
    found = kept[figure.name]
    title, shown, left_open, run_it = _readme(folder)
    # What runs on mounted file systems has none.
    experiment = folder / "experiment.toml"
    configuration = experiment.read_text().rstrip() if experiment.is_file() else ""
    parts = [
        f"# {_numbered_title(figure.name, title)}",
        f"`{study.name}/{figure.name}` of [{study.title}](index.md)",
        *shown,
        "## Verdicts",
        _sentence(_count(found)),
        _rows_table(found["rows"]),
        _remarks(found["rows"]),
        *[f"* {_cell(note)}" for note in found["notes"]],
        *_plots(found["plots"]),
        *(["## What is left open", *left_open] if left_open else []),
        *_notes(folder),
        "## Make it again",
        *run_it,
        _made_by(found, run_it),
    ]
    if configuration:
        parts += [
            "The experiment, `experiment.toml`, of which the study varies what the figure varies:",
            f"```toml\n{configuration}\n```",
        ]
    text = "\n\n".join(part for part in parts if part) + "\n"
    return _relinked(text, folder, PAGES / study.name)


def _numbered_title(name: str, title: str) -> str:
    """A title with its number in the paper, if it has one: `Figure 5-10: Both workloads`."""
    kind, _, number = name.partition("-")
    return f"{kind.capitalize()} {number}: {title}" if number[:1].isdigit() else title


def _readme(folder: Path) -> tuple[str, list[str], list[str], list[str]]:
    """Title, what is shown, what is left open and how to run it, of a figure's README."""
    text = (folder / "README.md").read_text().rstrip()
    heading, *paragraphs = text.split("\n\n")
    run_it = [one for one in paragraphs if one.startswith("Run it:")]
    rest = [one for one in paragraphs if one not in run_it]
    begins = next(
        (place for place, one in enumerate(rest) if re.match(r"Choices that .* open", one)),
        len(rest),
    )
    return heading.removeprefix("# "), rest[:begins], rest[begins:], run_it


def _notes(folder: Path) -> list[str]:
    """The hand-written notes of a figure, a level below the page's own title."""
    path = folder / "NOTES.md"
    if not path.is_file():
        return []
    return [re.sub(r"^#", "##", path.read_text().strip(), flags=re.MULTILINE)]


def _rows_table(rows: Sequence[Mapping[str, Any]]) -> str:
    remarks = _numbered(rows)
    lines = [
        "| what | paper | ours | unit | tolerance | verdict |",
        "|---|---:|---:|---|---|---|",
    ]
    for row in rows:
        remark = row.get("why", "")
        number = f" ({remarks[remark]})" if remark else ""
        of_build = f", build {row['build']}" if "build" in row else ""
        cells = (
            row["what"],
            show_value(row.get("paper")),
            show_value(row.get("ours")),
            row.get("unit", ""),
            row.get("tolerance", ""),
            f"{row['verdict']}{number}{of_build}",
        )
        lines.append("| " + " | ".join(map(_cell, cells)) + " |")
    return "\n".join(lines)


def _remarks(rows: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(f"{number}. {_cell(text)}" for text, number in _numbered(rows).items())


def _numbered(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """What is said beside rows, each once, with its number in order of appearance."""
    texts = dict.fromkeys(row["why"] for row in rows if row.get("why"))
    return {text: number for number, text in enumerate(texts, start=1)}


def _plots(plots: Sequence[Mapping[str, str]]) -> list[str]:
    if not plots:
        return []
    parts = ["## Plots"]
    for plot in plots:
        parts.append(f"![{_cell(plot['title'])}]({plot['name']}.svg)")
        if plot["caption"]:
            parts.append(_cell(plot["caption"]))
    return parts


def _made_by(found: Stored, run_it: Sequence[str]) -> str:
    made = f"Rows and plots are of agewell {found['version']}, build `{found['build']}`."
    if any("--data" in line for line in run_it):
        made += (
            " The trace cannot be shipped: without it the rows stay those of the last run that had"
            " it."
        )
    return made


def _paper_page(study: Study, known: Sequence[Figure], kept: Mapping[str, Stored]) -> str:
    lines = [
        f"# {study.title}",
        "",
        f"{study.citation}.",
        "",
        f"`agewell reproduce {study.name}` makes all of it again.",
        "",
        "| figure | shows | " + " | ".join(_COUNTED.values()) + " |",
        "|---|---|" + "---:|" * len(_COUNTED),
    ]
    for figure in known:
        link = f"[`{figure.name}`]({figure.name}.md)"
        lines.append(_counted_line(f"{link} | {_cell(figure.title)}", _count(kept[figure.name])))
    return "\n".join(lines) + "\n"


def _first_page(page: str, counts: Sequence[tuple[Study, Counter[str]]]) -> str:
    lines = [
        "| paper | " + " | ".join(_COUNTED.values()) + " |",
        "|---|" + "---:|" * len(_COUNTED),
    ]
    for study, count in counts:
        lines.append(_counted_line(f"[{_cell(study.title)}]({study.name}/index.md)", count))
    lines.append(_counted_line("all", sum((count for _, count in counts), Counter())))
    filled = "\n".join(lines) + "\n"
    return _PLACE.sub(lambda place: place.group(1) + filled + place.group(2), page)


def _gallery() -> str:
    """All figures as pictures, paper by paper: each leads to its page and says its verdict."""
    parts = [
        "# Gallery",
        "Every figure and table that is computed again, with its verdict against what was printed."
        " The picture leads to its page: each row beside the paper's, what differs and why, and the"
        " command that makes it again. What the verdicts mean stands with"
        " [the tables](index.md).",
    ]
    for paper, study in studies().items():
        kept = stored(paper)
        known = [figure for figure in study.figures if figure.name in kept]
        cards = [_card(paper, figure, kept[figure.name]) for figure in known]
        parts += [
            f"## {_cell(study.title)}",
            f"{study.citation}. [Its table]({paper}/index.md).",
            '<div class="grid cards gallery" markdown>',
            "\n\n".join(cards),
            "</div>",
        ]
    return "\n\n".join(parts) + "\n"


def _card(paper: str, figure: Figure, found: Stored) -> str:
    """A figure in the gallery: its first plot, where it has one, its title and its verdict."""
    page = f"{paper}/{figure.name}.md"
    title = _cell(_numbered_title(figure.name, figure.title))
    lines = [f"**[{title}]({page})**", _verdict_in_words(_count(found))]
    if plots := found["plots"]:
        picture = f"{paper}/{plots[0]['name']}.svg"
        alternative = _cell(plots[0]["title"])
        lines.insert(0, f"[![{alternative}]({picture}){{ loading=lazy }}]({page})")
        if len(plots) > 1:
            lines[-1] += f" {len(plots)} plots."
    else:
        lines[-1] += " A table."
    return "\n\n".join(
        f"{'-  ' if place == 0 else '   '} {line}" for place, line in enumerate(lines)
    )


def _verdict_in_words(count: Mapping[str, int]) -> str:
    """The gravest verdict of a figure in a word, then how many of its rows have it."""
    holds, differs, fails, shown, not_run = (count.get(one.value, 0) for one in _COUNTED)
    judged = holds + differs + fails
    if fails:
        words = f"{_marked('fails')} in {fails} of {_rows(judged)}"
    elif differs:
        words = f"{_marked('differs')} in {differs} of {_rows(judged)}"
    elif holds:
        words = f"{_marked('holds')} in {'all ' if holds > 1 else ''}{_rows(holds)}"
    else:
        words = f"{_marked('no verdict')}: {_rows(shown)}, with nothing published to hold them to"
    return words + (f"; {not_run} not run." if not_run else ".")


def _marked(word: str) -> str:
    """A word of a verdict with the class that gives it its colour."""
    return f"**{word}**{{ .{word.replace(' ', '-')} }}"


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number} rows"


def _counted_line(first: str, count: Mapping[str, int]) -> str:
    numbers = " | ".join(str(count.get(verdict.value, 0)) for verdict in _COUNTED)
    return f"| {first} | {numbers} |"


def _count(found: Stored) -> Counter[str]:
    return Counter(row["verdict"] for row in found["rows"])


def _sentence(count: Mapping[str, int]) -> str:
    parts = [f"{count[one.value]} {word}" for one, word in _COUNTED.items() if count.get(one.value)]
    return f"Of {sum(count.values())} rows: {', '.join(parts)}."


def _cell(text: str) -> str:
    """Plain words as Markdown that may stand in a table."""
    return re.sub(r"([|<*\[\]])", r"\\\1", " ".join(text.split()))


def _relinked(text: str, folder: Path, page_folder: Path) -> str:
    """Links of a README or NOTES as links of the page."""

    def moved(link: re.Match[str]) -> str:
        begin, target, anchor = link.groups()
        meant = folder / target
        if re.match(r"[a-z]+:", target) or not meant.exists():
            return link.group()
        return f"{begin}{os.path.relpath(meant.resolve(), page_folder)}{anchor or ''})"

    return _LINK.sub(moved, text)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        store(Path(sys.argv[1]))
    for path, text in pages().items():
        path.write_text(text)
