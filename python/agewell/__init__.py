"""agewell makes file systems age well.

    import agewell

    result = agewell.run("experiment.toml", settings={"remap.kind": "shuffle"})
    result.metrics["mean_service_ms"], result.baseline["mean_service_ms"]
    result.series.to_pandas()

    table = agewell.sweep("experiment.toml", {"remap.alpha": [0, 0.5, 0.8]}, out="alpha")

Metric names are the same in JSON, Parquet, Python and plots; see the reference.
"""

from __future__ import annotations

from agewell.errors import AgewellError, InputError, RunError
from agewell.simulation import Result, run
from agewell.sweeping import sweep
from agewell.version import __version__

__all__ = ["AgewellError", "InputError", "Result", "RunError", "__version__", "run", "sweep"]
