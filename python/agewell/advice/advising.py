"""Which layout to choose for a workload and a disk, and when the choice does not pay.

The search goes from coarse to fine, so that it ends soon: every layout by name but those that
cannot win; if a log is among the good ones, its segment size, its collection and placement, its
reorganisation; reading ahead; then other utilizations, and slices of time, against the baselines;
at last shuffling of the requests that the chosen layout sent (`shuffling`). What can save no more
than counts as equal is not run, and the advice says why (`_cannot_win`, `_cannot_save`). A step
changes the choice only if it saves more than `measure.CLOSE_RATIO`; equals keep what is simpler.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agewell import files
from agewell.advice import segment_search
from agewell.advice.installable import Installable, installable
from agewell.advice.measure import CLOSE_PCT, best_of, refusal, saved_pct, saves, simplest_of
from agewell.advice.search import Choice, Progress, Search, Step, Tried
from agewell.advice.shuffling import ShufflingAdvice, advise_on_shuffling
from agewell.errors import InputError
from agewell.experiments import choices, experiment_file
from agewell.experiments.choices import (
    UTILIZATIONS,
    DeviceChoice,
    WorkloadChoice,
    check_settings,
)
from agewell.experiments.configuration import Configuration
from agewell.experiments.layouts import LAYOUTS, named
from agewell.experiments.time_slices import Spread, spread
from agewell.experiments.traces import Trace
from agewell.values import documents
from agewell.values.findings import Findings
from agewell.values.plot import Curve, Plot
from agewell.values.sizes import percent, size_text
from agewell.version import __version__, build

if TYPE_CHECKING:
    import pyarrow as pa

DOCUMENT_FILE = "advice.json"

BASELINES = ("ffs", "lfs", "sequential")
"""What the gain is stated against, as they are by default."""

LOG_MARGIN = 2.0
"""A log is refined if the best one takes no more than this many times the best layout's time;
chosen by us: no step of refinement has been seen to gain more."""

SEGMENT_SIZE = "segment size"
COLLECTIONS = ("clean", "plug", "thread", "matthews-1999", "adaptive")
VICTIMS = ("greedy", "cost-age", "benefit-root-age", "renewal")
PLACEMENTS = ("none", "user-collected", "sepbit", "life-table")
REORGANISATION = "reorganisation"
REORGANISATIONS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("none", {"reorganise": "none"}),
    ("blocks", {"reorganise": "blocks"}),
    ("blocks, by value", {"reorganise": "blocks", "decide": "value"}),
    ("non-sequential", {"reorganise": "non-sequential"}),
    ("files", {"reorganise": "files"}),
    ("whole-file", {"reorganise": "whole-file"}),
    ("directory", {"reorganise": "directory"}),
    ("frequency", {"reorganise": "frequency"}),
)
"""What is put together; as that pays unless by the value of 1999 (`decide`)."""
MOVES = ("regroup_read_seconds", "regroup_write_seconds", "patch_seconds")
"""Accounts of what reorganisation costs."""
COLLECTING = (
    "collect_read_seconds",
    "collect_write_seconds",
    "plug_seconds",
    "thread_seconds",
    "header_seconds",
)
"""Accounts of what making room costs: all that collection, victims and placement can save."""
READING = ("read_seconds", "prefetch_seconds")
"""Accounts of reads: all that reorganisation and reading ahead can save."""
PREFETCHES = ("none", "sequential", "file-graph", "cluster")

ALTERNATIVE_RATIO = 1.1
RECOVERY_FACTOR = 10.0
"""Another run is named if it takes at most that much more disk time and recovers in so small a part
of the time; chosen by us."""

UTILIZATION = 0.85
"""Where nothing else is said; the default of `[workload]`."""


@dataclass(frozen=True, slots=True)
class Against:
    """The choice against one baseline.

    Attributes:
        baseline: The baseline.
        saved_pct: Disk time that the choice saves at the utilization asked for.
        spread: The same over slices of time.
        by_utilization: The same at every utilization tried; None where one of them cannot run.
    """

    baseline: Tried
    saved_pct: float
    spread: Spread | None
    by_utilization: Mapping[float, float | None]

    @property
    def loses_at(self) -> list[float]:
        """Utilizations at which the choice takes more disk time."""
        saved = self.by_utilization.items()
        return [share for share, pct in saved if pct is not None and pct < 0]

    def document(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "baseline": self.baseline.json_values(),
            "saved_pct": self.saved_pct,
            "over_time": None if self.spread is None else self.spread.document(),
            "saved_pct_by_utilization": {
                f"{share:g}": pct for share, pct in self.by_utilization.items()
            },
            "loses_at_utilization": self.loses_at,
        }


@dataclass(frozen=True, slots=True, repr=False)
class Advice(Findings):
    """What the search says.

    Attributes:
        workload: Name of the workload.
        device: Name of the device.
        utilization: That was asked for.
        steps: The questions and answers.
        choice: The run of what is recommended.
        against: The baselines.
        file: The recommended experiment, from the folder of the advice.
        configuration: The same as tables.
        shuffling: Whether shuffling its requests would pay.
    """

    workload: str
    device: str
    utilization: float
    steps: Sequence[Step]
    choice: Tried
    against: Sequence[Against]
    file: str
    configuration: Configuration
    shuffling: ShufflingAdvice
    uncertainty: Mapping[str, float] | None = None

    def sentences(self) -> list[str]:
        """The advice in words."""
        layout = self.choice.choice.layout
        settings = ", ".join(f"{key} {value}" for key, value in layout.items() if key != "kind")
        ahead = self.choice.choice.host.get("prefetch", "none")
        prefetch = "no reading ahead" if ahead == "none" else f"prefetch {ahead}"
        sentences = [
            f"Use layout {layout['kind']}{f' ({settings})' if settings else ''}, {prefetch}: "
            f"{self.choice.disk_seconds:,.2f} s of disk time at {percent(self.utilization)} full, "
            f"{_others(self.choice)} ({self.file})."
        ]
        sentences += [_gain(each, self.uncertainty) for each in self.against]
        sentences += [
            _reorganisation(step)
            for step in self.steps
            if step.question == REORGANISATION and step.tried
        ]
        sentences.append(self._when_not())
        other = self.quicker_to_recover
        if other is not None:
            sentences.append(
                f"If a crash must not cost that much: '{other.label}' of the step "
                f"'{self._step_of(other)}' takes {self._more(other):.1f} % more disk time and "
                f"{_recovery(other):,.2f} s after a crash ({other.place})."
            )
        return sentences

    @property
    def installable(self) -> Installable:
        """The real file system that is nearest to what is recommended."""
        return installable(self.configuration["layout"])

    @property
    def quicker_to_recover(self) -> Tried | None:
        """The best run that is hardly worse and recovers in a small part of the time, if any."""
        most_s = _recovery(self.choice) / RECOVERY_FACTOR
        able = [
            each
            for step in self.steps
            for each in step.tried
            if each.disk_seconds <= ALTERNATIVE_RATIO * self.choice.disk_seconds
            and _recovery(each) < most_s
        ]
        return min(able, key=lambda each: each.disk_seconds, default=None)

    @property
    def metrics(self) -> dict[str, Any]:
        """Those of the recommended run, and `saved_pct.` of each baseline."""
        saved = {f"saved_pct.{each.baseline.label}": each.saved_pct for each in self.against}
        return {**(self.choice.metrics or {}), **saved}

    def table(self) -> pa.Table:
        """A row a run of the search; `disk_seconds` is None where it cannot run."""
        import pyarrow as pa

        rows = [
            {"question": step.question, "chosen": each is step.chosen, **each.json_values()}
            for step in self.steps
            for each in step.tried
        ]
        texts = ("question", "what", "file", "run", "room_made_by", "cannot")
        columns = {name: pa.array([row[name] for row in rows], pa.string()) for name in texts}
        columns["chosen"] = pa.array([row["chosen"] for row in rows], pa.bool_())
        columns["disk_seconds"] = pa.array([row["disk_seconds"] for row in rows], pa.float64())
        return pa.table(columns)

    def plots(self) -> list[Plot]:
        """Disk time of the choice beside that of the baselines."""
        return [disk_time_plot(self.document)]

    def _shown(self) -> dict[str, object]:
        kind = self.configuration["layout"]["kind"]
        return {"layout": kind, "disk_seconds": self.choice.disk_seconds}

    def _step_of(self, tried: Tried) -> str:
        return next(step.question for step in self.steps if tried in step.tried)

    def _more(self, tried: Tried) -> float:
        return 100.0 * (tried.disk_seconds / self.choice.disk_seconds - 1.0)

    def _when_not(self) -> str:
        """When the choice does not pay."""
        parts = []
        for each in self.against:
            name = each.baseline.label
            for share in each.loses_at:
                saved = each.by_utilization[share]
                if saved is not None:
                    parts.append(f"{name} takes {_less(saved)} % less at {percent(share)} full")
            if each.spread is not None and each.spread.losing:
                count = len(each.spread.losing)
                of = len(each.spread.saved_pct)
                parts.append(f"{name} takes less in {count} of {of} slices of time")
        if not parts:
            return (
                "It does not lose to any baseline at a utilization that was tried, nor in any "
                "slice of time."
            )
        return f"It does not pay where: {'; '.join(parts)}."

    @property
    def document(self) -> dict[str, Any]:
        """The advice as JSON values."""
        fields = {
            "agewell_version": __version__,
            "agewell_build": build(),
            "workload": self.workload,
            "device": self.device,
            "device_uncertainty": self.uncertainty,
            "utilization": self.utilization,
            "recommended": {
                **self.choice.json_values(),
                "file": self.file,
                "config": self.configuration,
            },
            "steps": [step.document() for step in self.steps],
            "against": [each.document() for each in self.against],
            "quicker_to_recover": (
                None if self.quicker_to_recover is None else self.quicker_to_recover.json_values()
            ),
            "advice": self.sentences(),
            "installable": self.installable.document(),
            "shuffling": self.shuffling.document(),
        }
        return documents.document("advice", fields)


def disk_time_plot(document: Mapping[str, Any]) -> Plot:
    """Disk time of the choice beside that of the baselines.

    Args:
        document: An advice as JSON values.
    """
    chosen = {**document["recommended"], "what": "recommended"}
    shown = [chosen, *(each["baseline"] for each in document["against"])]
    able = [each for each in shown if each["disk_seconds"] is not None]
    seconds = [each["disk_seconds"] for each in able]
    return Plot(
        name="advice",
        title=f"{document['workload']} on {document['device']}, "
        f"{percent(document['utilization'])} full",
        x_label="layout",
        y_label="disk time (s)",
        curves=[Curve("", list(range(len(able))), seconds, style="bars")],
        categories=[each["what"] for each in able],
    )


def advise(
    workload: WorkloadChoice | Trace | str,
    device: DeviceChoice | str,
    out: Path | str,
    *,
    utilization: float | None = None,
    settings: Mapping[str, Any] | None = None,
    catalogue_directory: Path | str | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Advice:
    """Search for the layout of the least disk time; the folder gets the document of the advice.

    Args:
        workload: Which, or a generator, an experiment or a trace by name, as on the command line.
        device: Which, or a device by name, a file, or two numbers.
        out: Folder of the runs and their experiments; what it holds already is not made again.
        utilization: Of the disk; that of the workload's file by default, or `UTILIZATION`.
        settings: Single values by `table.key`, the same in every run.
        catalogue_directory: Folder of device files to use instead of the catalogue.
        jobs: Processes at once; one a processor by default.
        progress: Called with the fraction done and a few words.

    Raises:
        InputError: The workload, the device or a setting is bad: no layout can do it.
        RunError: A run was lost; the finished ones stay.

    Examples:
        >>> import tempfile, agewell
        >>> values = {"workload.blocks": 1000, "workload.updates_per_block": 2}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     advice = agewell.advise(
        ...         "random-update", "simple:15ms:5MB/s", folder, settings=values, jobs=1
        ...     )
        >>> advice.document["recommended"]["file"]
        'experiments/recommended.toml'
    """
    check_settings(settings or {})
    workload, device = choices.workload(workload), choices.device(device, catalogue_directory)
    search = Search(
        workload,
        device,
        Path(out),
        settings=settings or {},
        catalogue_directory=catalogue_directory,
        jobs=jobs,
        progress=progress or (lambda _fraction, _words: None),
    )
    share = utilization or workload.utilization or UTILIZATION
    layouts = _layouts(search, share)
    steps = [layouts, *_refined(search, share, layouts)]
    choice = steps[-1].chosen
    why_not = _cannot_save(choice, READING, "reads of users take")
    if why_not:
        steps.append(Step("prefetch", [], choice, why_not))
    else:
        steps.append(_step(search, share, "prefetch", choice, _prefetches, 0.6))
        choice = steps[-1].chosen
    against = _against(search, share, choice, layouts.tried)
    configuration = copy.deepcopy(search.experiment(choice.choice, share))
    recommended = search.base / "recommended.toml"
    experiment_file.write(
        configuration,
        recommended,
        f"Recommended for {workload.name} on {device.name}, {percent(share)} full",
    )
    advice = Advice(
        workload=workload.name,
        device=device.name,
        utilization=share,
        steps=steps,
        choice=choice,
        against=against,
        file=str(recommended.relative_to(search.out)),
        configuration=configuration,
        shuffling=advise_on_shuffling(search, configuration),
        uncertainty=search.device_description().get("uncertainty"),
    )
    files.write_json(search.out / DOCUMENT_FILE, advice.document)
    return advice


def _layouts(search: Search, share: float) -> Step:
    left_out = _cannot_win(search.device_description())
    choices = {
        layout.name: Choice(layout.table) for layout in LAYOUTS if layout.name not in left_out
    }
    tried = search.try_all("layout", choices, share, 0.0)
    if best_of(tried).metrics is None:
        raise InputError(refusal(tried, "no layout can do it"))
    words = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
    return Step("layout", tried, simplest_of(tried), left_out=words)


def _cannot_win(device: Mapping[str, Any]) -> dict[str, str]:
    """Layouts that need not be run on a device, each with the reason."""
    left_out = {"ffs-metadata": "it does what ffs does, and its metadata besides"}
    if device["kind"] != "zoned":
        left_out["lfs-zones"] = (
            "the drive is not written zone by zone, and the segment size is searched for"
        )
    return left_out


def _cannot_save(incumbent: Tried, accounts: Sequence[str], what: str) -> str:
    """Why a step is not worth its runs: all that it can save counts as equal. Empty if it is."""
    metrics = incumbent.metrics
    if metrics is None or incumbent.disk_seconds == 0:
        return ""
    seconds = sum(float(metrics.get(name) or 0.0) for name in accounts)
    part_pct = 100.0 * seconds / incumbent.disk_seconds
    if part_pct > CLOSE_PCT:
        return ""
    return f"not tried: {what} {part_pct:.1f} % of the disk time, and no more can be saved"


def _refined(search: Search, share: float, layouts: Step) -> list[Step]:
    """The steps that refine the best log, if it is good enough to be worth it."""
    logs = [each for each in layouts.tried if each.choice.layout["kind"] == "lfs"]
    log = simplest_of(logs)
    if log.disk_seconds > LOG_MARGIN * layouts.chosen.disk_seconds:
        note = (
            f"not tried: the best log, {log.label}, takes "
            f"{log.disk_seconds / layouts.chosen.disk_seconds:.1f} times the disk time"
            if log.metrics is not None
            else "not tried: no log can do it"
        )
        return [Step("log", [], layouts.chosen, note)]
    sizes = _segment_size(search, share, SEGMENT_SIZE, log, 0.15)
    steps = [sizes]
    incumbent = sizes.chosen
    for question, options, fraction, accounts, what in (
        ("collection", _collections, 0.25, COLLECTING, "collecting takes"),
        ("victims", _victims, 0.35, COLLECTING, "collecting takes"),
        ("placement", _placements, 0.45, COLLECTING, "collecting takes"),
        (REORGANISATION, _reorganisations, 0.5, READING, "reads of users take"),
    ):
        why_not = _cannot_save(incumbent, accounts, what)
        if why_not:
            steps.append(Step(question, [], incumbent, why_not))
            continue
        step = _step(search, share, question, incumbent, options, fraction)
        if step.tried:
            steps.append(step)
            incumbent = step.chosen
    if not incumbent.is_same_as(sizes.chosen):
        # What collects otherwise may want other segments.
        again = _segment_size(search, share, f"{SEGMENT_SIZE} again", incumbent, 0.55)
        steps.append(again)
        incumbent = again.chosen
    if not saves(incumbent, layouts.chosen):
        # What was refined is no better than what was good at once.
        refined = replace(incumbent, label="refined log")
        steps.append(Step("log or not", [layouts.chosen, refined], layouts.chosen))
    return steps


def _step(
    search: Search,
    share: float,
    question: str,
    incumbent: Tried,
    options: Callable[[Choice], Mapping[str, Choice]],
    fraction: float,
) -> Step:
    tried = search.try_all(question, options(incumbent.choice), share, fraction)
    # The incumbent stands among the answers under the label it has there, if it is one of them.
    same = next((each for each in tried if each.is_same_as(incumbent)), incumbent)
    best = best_of([incumbent, *tried])
    return Step(question, tried, best if saves(best, incumbent) else same)


def _segment_size(
    search: Search, share: float, question: str, incumbent: Tried, fraction: float
) -> Step:
    """The best segment size for a log, by the search that `advise segment-size` makes."""
    assert incumbent.document is not None, "what is refined has run"

    def tried(sizes: Sequence[int]) -> list[Tried]:
        texts = map(size_text, sizes)
        choices = {text: incumbent.choice.with_layout({"segment_size": text}) for text in texts}
        return search.try_all(question, choices, share, fraction)

    found = segment_search.search(incumbent.document, tried)
    best = found.best_bytes
    chosen = incumbent if best is None else found.answers[best]
    return Step(question, list(found.answers.values()), chosen, left_out=found.left_out)


def _collections(choice: Choice) -> dict[str, Choice]:
    return {name: choice.with_layout({"collect": name}) for name in COLLECTIONS}


def _victims(choice: Choice) -> dict[str, Choice]:
    return {name: choice.with_layout({"victim": name}) for name in VICTIMS}


def _placements(choice: Choice) -> dict[str, Choice]:
    return {name: choice.with_layout({"placement": name}) for name in PLACEMENTS}


def _reorganisations(choice: Choice) -> dict[str, Choice]:
    plain = {key: value for key, value in choice.layout.items() if key != "decide"}
    return {name: Choice({**plain, **changes}, choice.host) for name, changes in REORGANISATIONS}


def _prefetches(choice: Choice) -> dict[str, Choice]:
    return {name: choice.with_host({"prefetch": name}) for name in PREFETCHES}


def _against(
    search: Search, share: float, choice: Tried, layouts: Sequence[Tried]
) -> list[Against]:
    """The choice against every baseline that can do the workload."""
    known = {layout.name for layout in LAYOUTS}
    baselines = [
        each
        for each in layouts
        if each.label in BASELINES and each.label in known and each.metrics is not None
    ]
    shares = sorted({*UTILIZATIONS, share})
    names = {each.label: Choice(named(each.label).table) for each in baselines}
    seconds: dict[float, dict[str, float]] = {}
    for place, other in enumerate(shares):
        tried = search.try_all(
            f"utilization {other:g}",
            {"recommended": choice.choice, **names},
            other,
            0.65 + 0.1 * place / len(shares),
        )
        seconds[other] = {each.label: each.disk_seconds for each in tried}
    return [
        Against(
            baseline=each,
            saved_pct=saved_pct(choice.disk_seconds, each.disk_seconds) or 0.0,
            spread=spread(choice.run.folder(search.out), each.run.folder(search.out)),
            by_utilization={
                other: saved_pct(found["recommended"], found[each.label])
                for other, found in seconds.items()
            },
        )
        for each in baselines
        if each.disk_seconds > 0
    ]


def _uncertain(saved_pct: float, uncertainty: Mapping[str, float]) -> str:
    """How far the model of a disk that was measured is from it, beside what is gained on it."""
    random_pct, sequential_pct = (
        uncertainty["random_read_pct"],
        uncertainty["sequential_read_pct"],
    )
    words = (
        f", on a model of the disk whose random reads take {random_pct:+.1f} % and sequential "
        f"ones {sequential_pct:+.1f} %"
    )
    if abs(saved_pct) <= max(abs(random_pct), abs(sequential_pct)):
        words += ", so that the gain is not certain"
    return words


def _gain(each: Against, uncertainty: Mapping[str, float] | None) -> str:
    gain = f"Against {each.baseline.label} it saves {each.saved_pct:.1f} % of the disk time"
    if each.spread is not None:
        gain += (
            f"; over {len(each.spread.saved_pct)} slices of what users transferred "
            f"{each.spread.least:.1f} % at least, {each.spread.median:.1f} % in the middle, "
            f"{each.spread.most:.1f} % at most"
        )
    if uncertainty is not None:
        gain += _uncertain(each.saved_pct, uncertainty)
    return f"{gain} ({each.baseline.place})."


def _recovery(tried: Tried) -> float:
    """Disk time after a crash; infinite if it is not known."""
    seconds = (tried.metrics or {}).get("recovery_seconds")
    return float("inf") if seconds is None else float(seconds)


def _others(choice: Tried) -> str:
    """What else the choice costs."""
    metrics = choice.metrics or {}
    p99_ms, recovery_s = metrics.get("p99_response_ms"), metrics.get("recovery_seconds")
    parts = [] if p99_ms is None else [f"99 % of the answers within {p99_ms:,.1f} ms"]
    if recovery_s is not None:
        parts.append(f"{recovery_s:,.1f} s of disk time after a crash")
    return ", ".join(parts)


def _reorganisation(step: Step) -> str:
    """What the best reorganisation takes for its moves, and what reading gains by it."""
    plain, *others = step.tried
    best = best_of(others)
    if plain.metrics is None or best.metrics is None:
        return "No advice on reorganisation: it cannot be compared on this log."
    moves_s = sum(float(best.metrics.get(name) or 0.0) for name in MOVES)
    reads_s = float(plain.metrics["read_seconds"]) - float(best.metrics["read_seconds"])
    gain_pct = saved_pct(best.disk_seconds, plain.disk_seconds) or 0.0
    pays = "pays" if saves(best, plain) else "does not pay"
    return (
        f"Reorganisation {pays} on the log: at its best ({best.label}) moves take {moves_s:,.2f} s "
        f"and reads {abs(reads_s):,.2f} s {'less' if reads_s >= 0 else 'more'}, in all "
        f"{abs(gain_pct):.1f} % {'saved' if gain_pct >= 0 else 'lost'} ({best.place})."
    )


def _less(gain_pct: float) -> str:
    """How much less a baseline takes, if the choice saves `gain_pct` against it, a negative."""
    return f"{100.0 * (1.0 - 1.0 / (1.0 - gain_pct / 100.0)):.1f}"
