"""The extension module. Private: the promise to users is the Python package around it."""

from collections.abc import Callable

class AgewellError(Exception):
    """Any error that agewell reports to its user; the text is one complete line."""

class InputError(AgewellError):
    """Bad usage or bad input."""

class RunError(AgewellError):
    """The run failed."""

def version() -> str:
    """The version of agewell, as in the workspace's Cargo.toml."""

def run_experiment(
    config: str,
    base_dir: str,
    catalogue_dir: str,
    out_dir: str | None,
    progress: Callable[[int], None] | None,
) -> str:
    """Run the experiment `config` (JSON) and give the result document (JSON)."""
