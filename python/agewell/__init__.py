"""agewell makes file systems age well.

    import agewell

    result = agewell.run("experiment.toml", settings={"remap.kind": "shuffle"})
    result.metrics["mean_service_ms"], result.baseline["mean_service_ms"]
    result.table().to_pandas()
    result.plot().savefig("service.png")

    trace = agewell.read_trace("mail.parquet")
    agewell.run("experiment.toml", trace=trace)

    swept = agewell.sweep("experiment.toml", {"remap.alpha": [0, 0.5, 0.8]}, out="alpha")

    agewell.results("alpha").sql("SELECT key, value FROM runs JOIN metrics USING (run)")
    agewell.diff("alpha", "alpha-before").beyond

    comparison = agewell.compare(["lfs", "ffs"], ["mail.parquet"], ["hp-97560"], out="compare")
    advice = agewell.advise("mail.parquet", "hp-97560", out="advice")

Every result is of `Findings`: one line, `metrics`, `table()`, `plot()` and `document`.

Metric names are the same in JSON, Parquet, Python and plots; see the reference.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agewell._agewell import Blocks, Places, Segments
    from agewell.advice.advising import Advice, advise
    from agewell.advice.comparing import Comparison, compare
    from agewell.errors import AgewellError, InputError, RunError
    from agewell.experiments.probing import Probed, probe
    from agewell.experiments.run_result import Result, run
    from agewell.experiments.traces import Trace, read_trace
    from agewell.experiments.validations import Validation, validate
    from agewell.filesystems.aging import Aged, age
    from agewell.filesystems.benchmarking import Measured, bench
    from agewell.filesystems.scoring import Score, score
    from agewell.runs.differences import Difference, diff
    from agewell.runs.results import Results, results
    from agewell.runs.samples import Range, Sample
    from agewell.runs.sweeping import Sweep, sweep
    from agewell.studies.reproduction import Reproduction, reproduce
    from agewell.values.findings import Findings
    from agewell.version import __version__

__all__ = [
    "Advice",
    "Aged",
    "AgewellError",
    "Blocks",
    "Comparison",
    "Difference",
    "Findings",
    "InputError",
    "Measured",
    "Places",
    "Probed",
    "Range",
    "Reproduction",
    "Result",
    "Results",
    "RunError",
    "Sample",
    "Score",
    "Segments",
    "Sweep",
    "Trace",
    "Validation",
    "__version__",
    "advise",
    "age",
    "bench",
    "compare",
    "diff",
    "probe",
    "read_trace",
    "reproduce",
    "results",
    "run",
    "score",
    "sweep",
    "validate",
]


_FROM = {
    "Advice": "advice.advising",
    "Aged": "filesystems.aging",
    "AgewellError": "errors",
    "Blocks": "_agewell",
    "Comparison": "advice.comparing",
    "Difference": "runs.differences",
    "InputError": "errors",
    "Measured": "filesystems.benchmarking",
    "Places": "_agewell",
    "Findings": "values.findings",
    "Probed": "experiments.probing",
    "Range": "runs.samples",
    "Reproduction": "studies.reproduction",
    "Result": "experiments.run_result",
    "Results": "runs.results",
    "RunError": "errors",
    "Sample": "runs.samples",
    "Score": "filesystems.scoring",
    "Segments": "_agewell",
    "Sweep": "runs.sweeping",
    "Trace": "experiments.traces",
    "Validation": "experiments.validations",
    "__version__": "version",
    "advise": "advice.advising",
    "age": "filesystems.aging",
    "bench": "filesystems.benchmarking",
    "compare": "advice.comparing",
    "diff": "runs.differences",
    "probe": "experiments.probing",
    "read_trace": "experiments.traces",
    "reproduce": "studies.reproduction",
    "results": "runs.results",
    "run": "experiments.run_result",
    "score": "filesystems.scoring",
    "sweep": "runs.sweeping",
    "validate": "experiments.validations",
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
