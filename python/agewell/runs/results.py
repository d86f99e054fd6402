"""Results that can be asked: `agewell.results`.

    found = agewell.results("alpha", "compare")
    found.runs                                   # an Arrow table, a row a run
    found.sql("SELECT metric, avg(value) FROM metrics GROUP BY metric")

Queries are SQL of DuckDB, which is loaded when the first one is asked. It sees the tables and
nothing else: it can neither read nor write a file.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from agewell.errors import InputError
from agewell.runs import run_tables
from agewell.runs.found_runs import DONE
from agewell.runs.run_tables import RunTables
from agewell.values import documents
from agewell.values.findings import Findings
from agewell.values.plot import Curve, Plot

if TYPE_CHECKING:
    import duckdb

_ASKS_FOR_SERIES = re.compile(r"\bseries\b", re.IGNORECASE)
"""Whether a query needs the series, which are read from the files of all runs; one that only names
them in a text reads them in vain."""

_INTERRUPT_SECONDS = 0.05

_START_WAITS_MAX = 40
"""So often a thread that has not said that it runs is waited for: it was never started."""

_WHERE_IT_STANDS = re.compile(r"\n\s*LINE \d+:.*", re.DOTALL)
"""What DuckDB shows below its message: the line of the query and a mark under the place."""


@dataclass(frozen=True, slots=True, repr=False)
class Results(Findings):
    """Runs that lie below folders, to be asked.

    Attributes:
        folders: That were searched.
        tables: The runs and their metrics.
    """

    folders: Sequence[Path]
    tables: RunTables
    _series: list[pa.Table] = field(default_factory=list)

    @property
    def runs(self) -> pa.Table:
        """A row a run: which, how it ended, what it was asked and by what it was made."""
        return self.tables.runs

    @property
    def measured(self) -> pa.Table:
        """The metrics of all runs under one another, a row a number: the view `metrics`."""
        return self.tables.metrics

    @property
    def series(self) -> pa.Table:
        """The series of all runs under one another; read from their files when first asked for.

        Raises:
            InputError: A file of them is damaged.
        """
        if not self._series:
            self._series.append(run_tables.series(self.tables))
        return self._series[0]

    @property
    def metrics(self) -> dict[str, list[float | None]]:
        """The values of each metric, in the order of the runs; None where a run lacks it."""
        places = {run: index for index, run in enumerate(self.runs["run"].to_pylist())}
        values: dict[str, list[float | None]] = {}
        for row in self.measured.to_pylist():
            if row["lane"] == "run":
                column = values.setdefault(row["metric"], [None] * len(places))
                column[places[row["run"]]] = row["value"]
        return values

    @property
    def document(self) -> dict[str, Any]:
        """The runs, as `agewell results 'FROM runs' --json` prints them."""
        return document(self.runs)

    def table(self) -> pa.Table:
        """A row a run, with a column a metric: `metrics.` before its name."""
        columns = {f"metrics.{name}": pa.array(of) for name, of in self.metrics.items()}
        whole = self.runs
        for name, column in columns.items():
            whole = whole.append_column(name, column)
        return whole

    def plots(self) -> list[Plot]:
        """Each metric over the runs that have it."""
        keys = self.runs["key"].to_pylist()
        found = []
        for name, values in self.metrics.items():
            known = [(place, value) for place, value in enumerate(values) if value is not None]
            if known:
                places, numbers = zip(*known, strict=True)
                found.append(
                    Plot(
                        name=name.replace("_", "-"),
                        title=name,
                        x_label="run",
                        y_label=name,
                        curves=[Curve("", places, numbers, style="points")],
                        categories=keys,
                    )
                )
        return found

    def sql(self, query: str) -> pa.Table:
        """The answer to a query over the views `runs`, `metrics` and `series`.

        Args:
            query: One statement in the SQL of DuckDB that gives rows.

        Raises:
            InputError: DuckDB is not installed, or the query is wrong.
        """
        views = {"runs": self.runs, "metrics": self.measured}
        if _ASKS_FOR_SERIES.search(query):
            views["series"] = self.series
        return _answer(query, views)

    def _shown(self) -> dict[str, object]:
        counts: dict[str, object] = {"runs": len(self.runs)}
        done = self.runs["status"].to_pylist().count(DONE)
        return counts if done == len(self.runs) else {**counts, "done": done}


def results(*folders: Path | str) -> Results:
    """Find the runs below folders, whatever command has left them.

    What many runs say is kept below each folder in `results.parquet`, which is never more than a
    copy: it may be deleted at any time, and is made again when a run has changed.

    Args:
        folders: Of runs, sweeps, comparisons, advice, reproductions, or of many of them; the
            current one by default.

    Returns:
        The runs, their metrics and series as tables, which SQL can be asked of.

    Raises:
        InputError: A folder cannot be read, or there are no runs.
    """
    where = [Path(folder) for folder in folders] or [Path()]
    return Results(where, run_tables.tables(where))


def _answer(query: str, views: dict[str, pa.Table]) -> pa.Table:
    """What DuckDB makes of tables in memory.

    Raises:
        InputError: It is not installed, or the query is wrong.
    """
    try:
        import duckdb
    except ImportError as error:
        raise InputError(
            "queries need DuckDB, which is not installed: pip install 'agewell[duckdb]'"
        ) from error
    with duckdb.connect() as connection:
        for name, table in views.items():
            connection.register(name, table)
        _shut(connection)
        try:
            answer = _asked(connection, query)
        except duckdb.Error as error:
            message = " ".join(_WHERE_IT_STANDS.sub("", str(error)).split())
            raise InputError(f"the query cannot be answered: {message}") from error
    if answer is None:
        raise InputError("the query gives no rows; write a SELECT")
    return answer


def _asked(connection: duckdb.DuckDBPyConnection, query: str) -> pa.Table | None:
    """The answer of a database; none to a statement that gives no rows.

    It works in a thread of its own: in this one, which heeds signals, it would go on after Ctrl-C
    until it is done. That one is gone when this returns: Python that ends while it still puts
    things away complains of what is left, or aborts.
    """
    finished = threading.Event()
    answers: list[pa.Table | None] = []
    failures: list[BaseException] = []

    def ask() -> None:
        try:
            relation: Any = connection.sql(query)
            answers.append(None if relation is None else relation.to_arrow_table())
        except BaseException as error:  # it is raised where it can be heeded
            failures.append(error)
        finally:
            finished.set()

    asking = threading.Thread(target=ask, name="query", daemon=True)
    try:
        asking.start()
        finished.wait()
    except BaseException:
        # Again and again: before the query has begun it is not heard. A thread whose start was
        # interrupted may run, and have no number yet: what it does shows that it was started.
        waits = 0
        while not finished.wait(_INTERRUPT_SECONDS):
            connection.interrupt()
            waits += 1
            if asking.ident is None and waits == _START_WAITS_MAX:
                raise
        asking.join()
        raise
    # Not instead of the event: a join that is interrupted takes the thread for one that has ended.
    asking.join()
    for failure in failures:
        raise failure
    return answers[0]


def _shut(connection: duckdb.DuckDBPyConnection) -> None:
    """Leave a connection its tables, and neither files nor variables of Python nor settings.

    With one thread sums are always made in one order, so that an answer has the same bytes.
    """
    for setting in (
        "threads = 1",
        "python_enable_replacements = false",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")


def document(rows: pa.Table) -> dict[str, Any]:
    """An answer as JSON values: the columns with their types, and the rows as lists."""
    fields = {
        "columns": [{"name": each.name, "type": str(each.type)} for each in rows.schema],
        "rows": [list(row) for row in plain_rows(rows)],
    }
    return documents.document("results", fields)


def plain_rows(rows: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of a table as values that JSON has.

    Numbers stay numbers (one that is not finite is None), moments become texts of ISO 8601, and
    lists and structures stay what they are.
    """
    columns = [[_plain(value) for value in column.to_pylist()] for column in rows.columns]
    return list(zip(*columns, strict=True)) if columns else []


def _plain(value: Any) -> Any:
    """A value of a row as one that JSON has."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return _plain_of_database(value)


def _plain_of_database(value: Any) -> float | str:
    """What databases have and JSON has not."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)
