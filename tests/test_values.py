"""No figure changes unseen: what forty small experiments compute, to the last bit.

A change that moves a figure on purpose writes the digests again (`python tests/test_values.py`) and
says in CHANGELOG.md which figure moved and why.
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import pytest

import agewell
import result_values

FOLDER = Path(__file__).parent / "values"
EXPERIMENTS: dict[str, dict[str, Any]] = {
    each.pop("name"): each
    for each in tomllib.loads((FOLDER / "experiments.toml").read_text())["experiment"]
}
DIGESTS = FOLDER / "digests.txt"


def computed(name: str, out: Path) -> str:
    """The digest of an experiment, run now."""
    from agewell.experiments.configuration import Experiment
    from agewell.experiments.simulation import run_experiment

    run_experiment(Experiment(EXPERIMENTS[name], FOLDER), out=out)
    return result_values.digest_of_folder(out)


def expected() -> dict[str, str]:
    """By name."""
    return dict(line.split() for line in DIGESTS.read_text().splitlines())


def test_every_experiment_has_its_digest() -> None:
    assert list(expected()) == list(EXPERIMENTS)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_what_is_computed_has_not_changed(name: str, tmp_path: Path) -> None:
    assert computed(name, tmp_path / "run") == expected()[name]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        lines = []
        for name in EXPERIMENTS:
            try:
                lines.append(f"{name} {computed(name, Path(folder) / name)}\n")
            except agewell.AgewellError as error:
                sys.exit(f"{name}: {error}")
    DIGESTS.write_text("".join(lines))
