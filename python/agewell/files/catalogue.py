"""Where the files that come with agewell are: the device catalogue, experiments and examples.

They are folders of the repository (`devices`, `experiments`, `examples`). `agewell/data` links to
them, so that an installed wheel carries copies and a checkout uses the files themselves.
"""

from __future__ import annotations

from pathlib import Path

from agewell.errors import RunError

DATA_VARIABLE = "AGEWELL_DATA"
"""Folders to search for traces that agewell cannot ship, separated as in PATH."""

_PACKAGE = Path(__file__).resolve().parents[1]


def directory(instead: Path | str | None = None) -> Path:
    """The folder of the device catalogue, one TOML file a device, or the one to use instead."""
    return _data("devices") if instead is None else Path(instead)


def experiments() -> Path:
    """The folder of the published experiments, `<paper>/<figure>/experiment.toml`."""
    return _data("experiments")


def examples() -> dict[str, Path]:
    """The experiments that come as examples, by name; their traces lie beside them."""
    return {path.stem: path for path in sorted(_data("examples").glob("*.toml"))}


def example(name: str) -> Path | None:
    """The example of a bare name such as `demo-mail`; None of anything else."""
    return None if Path(name).parts != (name,) else examples().get(name)


def traces() -> dict[str, Path]:
    """The recorded traces that come as examples, by name."""
    return {path.stem: path for path in sorted((_data("examples") / "traces").glob("*.parquet"))}


def trace(path: Path) -> Path:
    """The file of a trace: of a bare name such as `mail` that is no file here, the shipped one."""
    if path.parts != (path.name,) or path.exists():
        return path
    return traces().get(path.name, path)


def repository() -> Path | None:
    """The root of the checkout that agewell runs from, or None for an installed wheel."""
    root = _PACKAGE.parents[1]
    return root if (root / "crates").is_dir() and (root / "Cargo.toml").is_file() else None


def _data(name: str) -> Path:
    folder = (_PACKAGE / "data" / name).resolve()
    if not folder.is_dir():
        raise RunError(
            f"the folder {folder} is missing: agewell is not completely installed; install it again"
        )
    return folder
