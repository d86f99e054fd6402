"""agewell makes file systems age well.

    import agewell

    result = agewell.run("experiment.toml")
    print(result.metrics["mean_response_ms"])
"""

from __future__ import annotations

from agewell._agewell import version as _version

__version__ = _version()
"""The version, as in the workspace's Cargo.toml."""
