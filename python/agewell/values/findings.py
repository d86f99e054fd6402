"""What every result of agewell has: the functions of `agewell` give `Findings`.

result = agewell.run("experiment.toml")
result                    # one line
result.metrics            # numbers under their fixed names
result.table()            # an Arrow table; `.to_pandas()` and `polars.from_arrow` take it on
result.plot()             # a matplotlib figure
result.document           # everything, as in the JSON output
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from agewell.values.plot import Plot

_DRAWN_BY = "agewell.report.pictures"
"""Named, not imported: pictures know the results that they show, and results know no pictures."""

_SHOWN_DIGITS = 4


class Findings:
    """A result: numbers, a table, pictures and the whole record.

    Examples:
        >>> import agewell
        >>> probed = agewell.probe("hp-97560", modelled=True, time="30 s")
        >>> isinstance(probed, agewell.Findings)
        True
    """

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def document(self) -> dict[str, Any]:
            """The whole record as JSON values, as the command prints it with `--json`."""

        @property
        def metrics(self) -> Mapping[str, Any]:
            """Numbers under their fixed names, units last; None where nothing counts."""

    def table(self) -> pa.Table:
        """The rows of the result as an Arrow table, whose columns name their units."""
        raise NotImplementedError

    def plots(self) -> Sequence[Plot]:
        """The pictures of the result as plain values."""
        return ()

    def plot(self, name: str | None = None) -> Figure:
        """One picture of the result.

        Args:
            name: Which; the first one by default.

        Returns:
            A matplotlib figure that belongs to the caller and to no window; a notebook shows it.

        Raises:
            InputError: There is no picture of that name, or none at all.
        """
        figure: Figure = importlib.import_module(_DRAWN_BY).figure(self, name)
        return figure

    def __repr__(self) -> str:
        shown = (f"{name}={_short(value)}" for name, value in self._shown().items())
        return f"{type(self).__name__}({', '.join(shown)})"

    def _shown(self) -> Mapping[str, object]:
        """What one line says of the result."""
        return {}


def numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    """The single numbers of a record, without the tables inside it; None stays None."""
    return {
        name: value
        for name, value in values.items()
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool))
    }


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.{_SHOWN_DIGITS}g}"
    return repr(value)
