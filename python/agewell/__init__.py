"""agewell makes file systems age well.

    import agewell

    result = agewell.run("experiment.toml", settings={"remap.kind": "shuffle"})
    result.metrics["mean_service_ms"], result.baseline["mean_service_ms"]
    result.series.to_pandas()

    table = agewell.sweep("experiment.toml", {"remap.alpha": [0, 0.5, 0.8]}, out="alpha")

Metric names are the same in JSON, Parquet, Python and plots; see the reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agewell.errors import AgewellError, InputError, RunError
from agewell.simulation import Result, run
from agewell.version import __version__

if TYPE_CHECKING:
    from agewell.sweeping import sweep

__all__ = ["AgewellError", "InputError", "Result", "RunError", "__version__", "run", "sweep"]


def __getattr__(name: str) -> Any:
    # Sweeps build tables, and loading Arrow for them takes longer than most runs.
    if name == "sweep":
        from agewell.sweeping import sweep

        return sweep
    raise AttributeError(f"module 'agewell' has no attribute '{name}'")
