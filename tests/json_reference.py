"""The page docs/reference/json.md, made from the declarations of documents.

`make command-reference` writes it; a test holds it against them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from agewell.values.documents import STAMP, VERSIONS
from agewell.values.documents.kinds import KINDS
from agewell.values.documents.schemas import of_kind
from conftest import REPOSITORY

PAGE = REPOSITORY / "docs" / "reference" / "json.md"

_HEAD = """\
# JSON documents

This page is made from the declarations in `python/agewell/values/documents`.

With `--json` a command prints one JSON object on standard output, and nothing else there. Each says
in `document` which kind it is, and in `schema_version` in which version; files that commands leave
in a folder do the same. `agewell schema COMMAND` prints the JSON Schema of what a command prints,
and `agewell schema` that of experiments.

* **Versions.** A field that is added leaves the version as it is: pass over what you do not know. A
  field that is gone or means something else raises it. A schema is that of the agewell that prints
  it, and admits no field that it does not name.
* **Older documents** do not say what they are. Commands that read documents know them by their
  fields.
* **Errors** are no documents. The message is one line on standard error, and standard output stays
  empty. Exit status: 0 done, 1 the run failed, 2 bad usage or bad input.
* **Verdicts** come with their document: where `diff`, `score --fail-under`, `sweep`, `reproduce`,
  `fsck`, `store check`, `store salvage` or `fs scrub` end with 1 because of what was found,
  standard output holds the whole document, and standard error says why. Where some drives of a
  folder are refused, `validate` prints the others, too, and ends with 2.
* **A line a round** is what `reorganise --watch` prints, each line a document.
* **Numbers** are as they were computed, and read back exactly. `null` stands where there is nothing
  to measure; infinities and NaN do not occur. Units stand at the end of names.
* **Names** of files that are no UTF-8 have their other bytes as escapes (`\\udcff`).

The recipe that `agewell age --save-recipe` writes is an input, not a document: see
[aging](aging.md).
"""


def reference() -> str:
    """The text of the page."""
    rows = "".join(
        f"| [`{kind}`](#{kind}) | {VERSIONS[kind]} | {_origin(kind)} |\n" for kind in KINDS
    )
    table = f"\n## Kinds\n\n| document | version | comes from |\n|---|---|---|\n{rows}"
    return _HEAD + table + "".join(_section(kind) for kind in KINDS)


def _origin(kind: str) -> str:
    declared = KINDS[kind]
    printed = ", ".join(f"`agewell {name}`" for name in declared.commands)
    left = f"the file `{declared.file}`" if declared.file else ""
    return ", ".join(filter(None, (printed, left)))


def _section(kind: str) -> str:
    schema = of_kind(kind)
    parts = schema["$defs"]
    top = schema["$ref"].rsplit("/", 1)[1]
    text = f"\n## {kind}\n\n{parts[top]['description']} From {_origin(kind)}.\n\n"
    text += _table(parts[top], skipped=STAMP)
    for name in _used(parts, top):
        text += f"\n**{name}**: {parts[name]['description']}\n\n{_table(parts[name])}"
    return text


def _used(parts: Mapping[str, Any], top: str) -> Iterator[str]:
    """The objects within an object, in the order in which they are named."""
    seen = [top]
    for name in seen:
        for field in parts[name]["properties"].values():
            for used in _names(field):
                if used not in seen:
                    seen.append(used)
    yield from seen[1:]


def _names(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"].rsplit("/", 1)[1]
        for inner in schema.values():
            yield from _names(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _names(inner)


def _table(part: Mapping[str, Any], skipped: tuple[str, ...] = ()) -> str:
    rows = [
        f"| `{name}` | {_type(field)}{'' if name in part['required'] else ', may be absent'} "
        f"| {field.get('x-unit', '')} | {field['description']} |\n"
        for name, field in part["properties"].items()
        if name not in skipped
    ]
    return "| field | type | unit | meaning |\n|---|---|---|---|\n" + "".join(rows)


def _type(schema: Mapping[str, Any]) -> str:
    """The type of a field in words."""
    if "$ref" in schema:
        return str(schema["$ref"].rsplit("/", 1)[1])
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    name = str(schema.get("type", "any"))
    inner = {"array": schema.get("items"), "object": schema.get("additionalProperties")}.get(name)
    shown = "list" if name == "array" else name
    if not isinstance(inner, dict) or not inner:
        return shown
    return f"{shown} of ({_type(inner)})" if "anyOf" in inner else f"{shown} of {_type(inner)}"


if __name__ == "__main__":
    sys.stdout.write(reference())
