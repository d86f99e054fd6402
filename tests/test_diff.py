"""`agewell diff` and `agewell.diff`: runs held against one another, pair by pair."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agewell as api
from agewell import version
from agewell.runs.document_metrics import COMPARED
from agewell.values.documents import document
from conftest import REPOSITORY, Agewell
from findings import check_findings
from test_results import fail

SEEDS = (1, 2, 3)


@pytest.fixture
def before(experiment: Path, tmp_path: Path) -> Path:
    """Two disciplines, three seeds."""
    over: dict[str, list[Any]] = {"queue.discipline": ["fcfs", "sstf"], "run.seed": list(SEEDS)}
    api.sweep(experiment, over, tmp_path / "before", jobs=2)
    return tmp_path / "before"


def later(before: Path, changed: Callable[[dict[str, Any]], None], name: str = "after") -> Path:
    """The same runs as another build would have made them."""
    folder = before.parent / name
    shutil.copytree(before, folder)
    for number, path in enumerate(sorted(folder.glob("runs/*/result.json"))):
        document = json.loads(path.read_text())
        document["agewell_build"] = "of another one"
        changed(document)
        path.write_text(json.dumps(document))
        path.parent.rename(path.parent.with_name(f"{number:016x}"))
    return folder


def scale(metric: str, factors: dict[int, float], discipline: str = "sstf") -> Any:
    def change(document: dict[str, Any]) -> None:
        if document["config"]["queue"]["discipline"] == discipline:
            document["metrics"][metric] *= factors[document["seed"]]

    return change


def of(found: api.Difference, metric: str, discipline: str = "sstf") -> Any:
    [one] = [
        each
        for each in found.comparisons
        if each.metric == metric and each.settings["queue.discipline"] == discipline
    ]
    return one


def test_a_known_ratio_is_found_with_its_interval(before: Path) -> None:
    """Three pairs: the geometric mean, and t of two degrees of freedom on the logarithms."""
    factors = {1: 1.10, 2: 1.12, 3: 1.20}
    found = api.diff(before, later(before, scale("mean_response_ms", factors)))
    assert (found.pairs, found.configurations) == (6, 2)
    one = of(found, "mean_response_ms")
    logs = np.log(list(factors.values()))
    half = 4.302653 * logs.std(ddof=1) / math.sqrt(3)
    assert one.ratio == pytest.approx(math.exp(logs.mean()), rel=1e-12)
    assert one.ratio_low == pytest.approx(math.exp(logs.mean() - half), rel=1e-6)
    assert one.ratio_high == pytest.approx(math.exp(logs.mean() + half), rel=1e-6)
    assert (one.verdict, one.direction) == ("beyond", "worse")
    assert [each.metric for each in found.beyond] == ["mean_response_ms"]
    assert of(found, "mean_response_ms", "fcfs").verdict == "same"
    assert found.metrics["mean_response_ms"] == pytest.approx(math.sqrt(one.ratio))
    assert found.builds == {"a": [version.build()], "b": ["of another one"]}


def test_two_experiments_that_differ_in_a_setting_are_paired_across_it(
    experiment: Path, tmp_path: Path
) -> None:
    """A real paired ratio: what the simulator says of twice the load, seed by seed."""
    for name, rate in (("slow", 20.0), ("fast", 40.0)):
        api.sweep(
            experiment,
            {"run.seed": list(SEEDS)},
            tmp_path / name,
            settings={"workload.rate_per_s": rate},
            jobs=2,
        )
    with pytest.raises(api.InputError, match=r"the nearest differ in workload\.rate_per_s"):
        api.diff(tmp_path / "slow", tmp_path / "fast")
    found = api.diff(tmp_path / "slow", tmp_path / "fast", ignore=["workload.rate_per_s"])
    responses = {
        name: api.results(tmp_path / name).sql(
            "SELECT value FROM runs JOIN metrics USING (run) "
            "WHERE metric = 'mean_response_ms' ORDER BY seed"
        )["value"]
        for name in ("slow", "fast")
    }
    ratios = np.array(responses["fast"]) / np.array(responses["slow"])
    [one] = [each for each in found.comparisons if each.metric == "mean_response_ms"]
    assert one.ratio == pytest.approx(math.exp(np.log(ratios).mean()), rel=1e-12)
    assert one.ratio_low is not None
    assert one.ratio_high is not None
    assert 1.2 < one.ratio_low < one.ratio_high
    assert one.verdict == "beyond"


def test_runs_of_one_build_are_the_same(before: Path) -> None:
    found = api.diff(before, before, tolerance=0.0)
    assert {each.verdict for each in found.comparisons} == {"same"}
    assert found.beyond == []
    check_findings(found)


@pytest.mark.parametrize(
    ("factors", "verdict"),
    [
        ({1: 1.0, 2: 1.0, 3: 1.0}, "same"),
        ({1: 1.019, 2: 1.0, 3: 0.981}, "within"),
        ({1: 1.02, 2: 1.02, 3: 1.02}, "within"),
        ({1: 1.021, 2: 1.021, 3: 1.021}, "beyond"),
        ({1: 0.97, 2: 0.9, 3: 0.5}, "beyond"),
        ({1: 1.3, 2: 1.3, 3: 0.9}, "unsure"),
        ({1: 1.03, 2: 1.019, 3: 1.03}, "unsure"),
        ({1: 1.10, 2: 1.10, 3: 1.10}, "beyond"),
        ({1: 1.40, 2: 1.42, 3: 1.41}, "beyond"),
    ],
)
def test_what_is_beyond_the_tolerance(
    factors: dict[int, float], verdict: str, before: Path
) -> None:
    found = api.diff(before, later(before, scale("mean_response_ms", factors)), tolerance=0.02)
    assert of(found, "mean_response_ms").verdict == verdict
    assert len(found.beyond) == (verdict == "beyond")


def test_only_changes_for_the_worse_count_where_that_is_asked(before: Path) -> None:
    for metric, factor, direction in (
        ("mean_response_ms", 1.5, "worse"),
        ("mean_response_ms", 0.5, "better"),
        ("read_mb_per_s", 0.5, "worse"),
        ("read_requests", 2.0, "neither"),
    ):
        after = later(before, scale(metric, dict.fromkeys(SEEDS, factor)), f"{metric}{factor}")
        found = api.diff(before, after, worse_only=True)
        assert of(found, metric).direction == direction
        assert bool(found.beyond) == (direction == "worse")
        assert len(api.diff(before, after).beyond) == 1


def test_values_without_a_ratio_are_differences(before: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        document["metrics"] |= {"mean_seek_cylinders": 3.0, "p50_response_ms": None}
        document["metrics"]["new_ms"] = 1.0
        del document["metrics"]["p95_response_ms"]

    found = api.diff(before, later(before, change))
    for name in ("mean_seek_cylinders", "p50_response_ms"):
        one = of(found, name)
        assert (one.ratio, one.verdict) == (None, "beyond")
    compared = {each.metric for each in found.comparisons}
    assert not {"new_ms", "p95_response_ms"} & compared
    json.dumps(found.document, allow_nan=False)


def test_runs_without_a_partner_are_listed(before: Path, agewell: Agewell) -> None:
    after = later(before, lambda _: None)
    gone, other_seed, *_ = sorted(after.glob("runs/*"))
    shutil.rmtree(gone)
    path = other_seed / "result.json"
    document = json.loads(path.read_text())
    document["seed"] = document["config"]["run"]["seed"] = 77
    path.write_text(json.dumps(document))
    fail(after / "runs" / "failed")
    found = api.diff(before, after)
    assert found.pairs == 4
    assert len(found.unpaired["a"]) == 2
    why = sorted(each["why"] for each in found.unpaired["b"])
    assert why == ["failed: the trace ends in a record", "none with its seed"]
    done = agewell("diff", before, after)
    assert "2 runs of " in done.stderr
    assert "4 pairs in 2 configurations" in done.stderr


def test_inputs_with_other_bytes_are_counted(before: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        document["inputs"][0]["sha256"] = "0" * 64

    assert api.diff(before, later(before, change)).other_inputs == 6


def test_what_cannot_be_compared_is_one_line(before: Path, agewell: Agewell) -> None:
    after = later(before, scale("disk_seconds", dict.fromkeys(SEEDS, 2.0)))
    both = before.parent / "both"
    shutil.copytree(before, both / "one")
    shutil.copytree(after, both / "other")
    cases = [
        ((before, both), "two answers to one question"),
        ((before, before.parent / "absent"), "not a folder"),
        ((before, after, "--metric", "no_such"), "metric no_such: no pair has it"),
        ((before, after, "--tolerance", "much"), "write a share"),
        ((before, after, "--tolerance=-1"), "not negative"),
    ]
    for arguments, says in cases:
        done = agewell("diff", *arguments, check=False)
        assert done.returncode == 2
        assert says in done.stderr
        assert (done.stdout, done.stderr.count("\n")) == ("", 1)


def test_the_command_ends_with_one_beyond_the_tolerance(before: Path, agewell: Agewell) -> None:
    after = later(before, scale("mean_response_ms", dict.fromkeys(SEEDS, 1.1)))
    done = agewell("diff", before, after, check=False)
    assert done.returncode == 1
    assert "mean response time" in done.stdout
    assert "worse" in done.stdout
    assert "1 of 46 comparisons are beyond 2 %" in done.stderr
    assert "1.1 times" in done.stderr
    for arguments in (["--tolerance", "11%"], ["--metric", "disk_seconds"]):
        agewell("diff", before, after, *arguments)
    done = agewell("diff", before, after, "--json", check=False)
    assert done.returncode == 1
    assert json.loads(done.stdout) == api.diff(before, after).document
    agewell("diff", after, before, "--worse-only")


# --- documents ------------------------------------------------------------------------------------


def written(path: Path, kind: str, fields: dict[str, Any]) -> Path:
    path.write_text(json.dumps(document(kind, fields)))
    return path


def scored(path: Path, *scores: tuple[str, float]) -> Path:
    """What a score says of some targets, as far as it is compared."""
    targets = [
        {"path": name, "metrics": {"layout_score": score, "split_share": 1.0 - score}}
        for name, score in scores
    ]
    return written(path, "score", {"series": False, "targets": targets})


def test_scores_are_compared(agewell: Agewell, tmp_path: Path) -> None:
    a = scored(tmp_path / "a.json", ("before.parquet", 0.8))
    b = scored(tmp_path / "b.json", ("after.parquet", 0.6))
    found = api.diff(a, b)
    by_metric = {each.metric: each for each in found.comparisons}
    assert by_metric["layout_score"].ratio == pytest.approx(0.75)
    assert by_metric["split_share"].ratio == pytest.approx(2.0)
    assert {each.direction for each in by_metric.values()} == {"worse"}
    assert len(found.beyond) == 2
    done = agewell("diff", "a.json", "b.json", check=False)
    assert done.returncode == 1
    assert "layout score" in done.stdout
    assert agewell("diff", "a.json", "b.json", "--tolerance", "200%").returncode == 0
    assert agewell("diff", "b.json", "a.json", "--worse-only").returncode == 0
    assert agewell("diff", "a.json", "b.json", "--json", check=False).stdout


def test_targets_of_several_are_paired_by_their_paths(tmp_path: Path) -> None:
    a = scored(tmp_path / "a.json", ("x", 0.8), ("y", 0.5), ("z", 0.5))
    b = scored(tmp_path / "b.json", ("y", 0.5), ("x", 0.4), ("w", 0.5))
    found = api.diff(a, b, metrics=["layout_score"])
    assert {each.label: each.ratio for each in found.comparisons} == {"path=x": 0.5, "path=y": 1.0}
    assert [run["run"] for run in found.unpaired["a"]] == ["path=z"]
    assert [run["run"] for run in found.unpaired["b"]] == ["path=w"]


def test_what_commands_print_is_compared_with_itself(
    agewell: Agewell, experiment: Path, tmp_path: Path
) -> None:
    """Of every kind: its numbers are found, and found to be the same."""
    log = REPOSITORY / "examples" / "log-random-update.toml"
    small = ("--set", "workload.updates_per_block=2", "--set", "workload.blocks=4000")
    commands: dict[str, tuple[object, ...]] = {
        "age": ("age", "ffs", "--workload", "smith-1996", "--until", "days=1"),
        "bench": ("bench", "ffs", "--sizes", "16KiB", "--bytes", "256KiB", "-r", "1"),
        "compare": ("compare", "--workload", log, "--device", "hp-97560", "--layouts", "lfs"),
        "segment-size": ("advise", "segment-size", log, *small, "--device", "hp-97560"),
        "store-info": ("store", "format", "a.store", "--size", "16MiB", "--sparse"),
        "store-check": ("store", "check", "a.store"),
    }
    errors = {"demerit_ms": 0.1, "mean_service_ms": 12.0}
    written(tmp_path / "validate.json", "validate", {"metrics": errors})
    drives = [{"parameters": "a", "metrics": errors}, {"parameters": "b", "refused": "why"}]
    written(tmp_path / "validate-drives.json", "validate-drives", {"validations": drives})
    scored(tmp_path / "score.json", ("x", 0.5))
    for kind, arguments in commands.items():
        done = agewell(*map(str, arguments), "--json", *(["-q"] if "store" not in kind else []))
        (tmp_path / f"{kind}.json").write_text(done.stdout)
    for kind in COMPARED:
        found = api.diff(tmp_path / f"{kind}.json", tmp_path / f"{kind}.json")
        assert found.comparisons, kind
        assert {each.verdict for each in found.comparisons} == {"same"}, kind
    names = {
        each.metric
        for each in api.diff(tmp_path / "validate.json", tmp_path / "validate.json").comparisons
    }
    assert names == {"demerit_ms"}


def test_documents_that_cannot_be_compared_are_errors(experiment: Path, tmp_path: Path) -> None:
    score = scored(tmp_path / "a.json", ("x", 0.8))
    bench = written(tmp_path / "b.json", "bench", {"summary": []})
    api.run(experiment, out=tmp_path / "run")
    for a, b, words in (
        (score, bench, "only two of a kind"),
        (score, tmp_path / "run", "give two folders, or two documents"),
        (bench, bench, "the first has no run that is done, and no numbers"),
        (tmp_path / "run" / "result.json", score, "name its folder"),
        (written(tmp_path / "c.json", "devices", {"devices": []}), score, "a document of devices"),
        (written(tmp_path / "d.json", "score", {"targets": 3}), score, "damaged"),
        (scored(tmp_path / "e.json", ("x", 0.5), ("x", 0.6)), score, "stands there twice"),
    ):
        with pytest.raises(api.InputError, match=words):
            api.diff(a, b)
    (tmp_path / "f.json").write_text("[]")
    with pytest.raises(api.InputError, match="no document of agewell"):
        api.diff(tmp_path / "f.json", score)
