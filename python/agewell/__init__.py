"""agewell makes file systems age well.

    import agewell

    result = agewell.run("experiment.toml", settings={"remap.kind": "shuffle"})
    result.metrics["mean_service_ms"], result.baseline["mean_service_ms"]
    result.series.to_pandas()

    table = agewell.sweep("experiment.toml", {"remap.alpha": [0, 0.5, 0.8]}, out="alpha")

Metric names are the same in JSON, Parquet, Python and plots; see the reference in the documentation.
"""

from __future__ import annotations

from agewell._agewell import version as _version

__version__ = _version()
"""The version, as in the workspace's Cargo.toml."""

from agewell.errors import AgewellError, InputError, RunError
from agewell.simulation import Result, run
from agewell.sweep import sweep

__all__ = ["AgewellError", "InputError", "Result", "RunError", "__version__", "run", "sweep"]
