"""What every result of `agewell` must have."""

from __future__ import annotations

import json

import matplotlib.figure
import pytest

import agewell as api


def check_findings(findings: api.Findings) -> None:
    """One line, numbers, a table, a picture and a record that is JSON."""
    line = repr(findings)
    assert line.startswith(type(findings).__name__ + "(")
    assert len(line) < 200
    assert "\n" not in line
    assert findings.metrics
    assert isinstance(findings.document, dict)
    json.dumps(findings.document)
    assert findings.table().num_rows > 0
    assert isinstance(findings.plot(), matplotlib.figure.Figure)
    with pytest.raises(api.InputError, match="'absent' is not a picture of "):
        findings.plot("absent")
