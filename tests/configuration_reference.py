"""The tables of configuration.md and others in docs/reference, made from the declarations of keys.

`make configuration-reference` writes them; a test holds them against the program. A page says
where a table stands:

    <!-- keys: KIND TABLE [KIND OF TABLE][; only KEY...][; except KEY...] -->
    <!-- end -->
"""

from __future__ import annotations

import json
import re

from agewell import _agewell
from conftest import REPOSITORY

PAGES = [
    REPOSITORY / "docs" / "reference" / f"{name}.md"
    for name in ("configuration", "devices", "aging-workloads")
]
_PLACE = re.compile(r"(<!-- keys: ([^;]+?)((?:; \w+ [^;]+?)*) -->\n).*?(<!-- end -->)", re.DOTALL)
_KEY = re.compile(r"\| `(\w+)` \|")


def reference(page: str) -> str:
    """`page` with every table as the program has it."""
    tables: dict[str, str] = json.loads(_agewell.configuration_reference())["tables"]

    def filled(place: re.Match[str]) -> str:
        begin, name, conditions, end = place.groups()
        rows = tables[name].splitlines(keepends=True)
        for condition in filter(None, conditions.split("; ")):
            word, *keys = condition.split()
            unknown = set(keys) - {key for row in rows for key in _KEY.findall(row[:60])}
            if unknown:
                raise KeyError(f"{name} has no keys {sorted(unknown)}")
            rows = rows[:2] + [row for row in rows[2:] if (_name(row) in keys) == (word == "only")]
        return begin + "".join(rows) + end

    return _PLACE.sub(filled, page)


def _name(row: str) -> str:
    found = _KEY.match(row)
    assert found, row
    return found.group(1)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(reference(page.read_text()))
