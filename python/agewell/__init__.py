"""agewell makes file systems age well.

    import agewell

    result = agewell.run("experiment.toml", settings={"remap.kind": "shuffle"})
    result.metrics["mean_service_ms"], result.baseline["mean_service_ms"]
    result.series.to_pandas()

    table = agewell.sweep("experiment.toml", {"remap.alpha": [0, 0.5, 0.8]}, out="alpha")

    comparison = agewell.compare(["lfs", "ffs"], ["mail.parquet"], ["hp-97560"], out="compare")
    advice = agewell.advise("mail.parquet", "hp-97560", out="advice")

Metric names are the same in JSON, Parquet, Python and plots; see the reference.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agewell.advice.advising import advise
    from agewell.advice.comparing import compare
    from agewell.errors import AgewellError, InputError, RunError
    from agewell.experiments.simulation import Result, run
    from agewell.filesystems.aging import age
    from agewell.filesystems.scoring import score
    from agewell.runs.sweeping import sweep
    from agewell.version import __version__

__all__ = [
    "AgewellError",
    "InputError",
    "Result",
    "RunError",
    "__version__",
    "advise",
    "age",
    "compare",
    "run",
    "score",
    "sweep",
]


_FROM = {
    "AgewellError": "errors",
    "InputError": "errors",
    "Result": "experiments.simulation",
    "RunError": "errors",
    "__version__": "version",
    "advise": "advice.advising",
    "age": "filesystems.aging",
    "compare": "advice.comparing",
    "run": "experiments.simulation",
    "score": "filesystems.scoring",
    "sweep": "runs.sweeping",
}
"""The module that each name is loaded from when it is asked for: every command passes through here,
and most need few of them."""


def __getattr__(name: str) -> Any:
    if name in _FROM:
        value = getattr(importlib.import_module(f"agewell.{_FROM[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'agewell' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_FROM})
