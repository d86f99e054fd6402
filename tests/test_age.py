"""`agewell age`: real directories and simulated targets, want of room, kills, recipes."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import documents
from agewell.errors import InputError
from agewell.filesystems import aging, snapshots, workloads
from conftest import COMMAND_SECONDS, heed_interrupts

COMMAND = [sys.executable, "-m", "agewell"]
MEMORY = Path("/dev/shm")  # noqa: S108 (in memory; folders there have names of their own)
BLOCK_BYTES = 4096


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder for files, in memory where there is such a place: a sync waits for nothing there."""
    if not (MEMORY.is_dir() and os.access(MEMORY, os.W_OK)):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="agewell-test-", dir=MEMORY))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """A mounted ext4 of 48 MiB with blocks of 4 KiB; skips where there can be none."""
    image, point = tmp_path / "ext4.img", tmp_path / "mount"
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        pytest.skip("mounting an image needs root and mkfs.ext4")
    with image.open("wb") as file:
        file.truncate(48 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-b", str(BLOCK_BYTES), "-m", "0", image], check=True)
    point.mkdir()
    done = subprocess.run(["mount", "-o", "loop", image, point], check=False, capture_output=True)
    if done.returncode != 0:
        pytest.skip(f"no loop mounts here: {done.stderr.decode().strip()}")
    try:
        yield point
    finally:
        subprocess.run(["umount", point], check=True)


def history(folder: Path, commits: int, *, seed: int = 1, sync_every: int = 20) -> Path:
    """A workload from a drawn version history: files added, changed and removed."""
    draw = random.Random(seed)  # noqa: S311 (drawn, not secret)
    sizes: dict[int, int] = {}
    lines = ["commit,unix_time,op,file_id,dir_id,depth,old_size,new_size"]
    number = 0
    for commit in range(commits):
        for _ in range(draw.randint(1, 4)):
            at = f"{commit},{1_000_000_000 + commit * 7200}"
            old = draw.choice(list(sizes)) if sizes else None
            kind = draw.random()
            size = int(draw.expovariate(1 / 20_000))
            if old is None or kind < 0.4:
                lines.append(f"{at},A,{number},{number % 7},1,0,{size}")
                sizes[number] = size
                number += 1
            elif kind < 0.8:
                lines.append(f"{at},M,{old},{old % 7},1,{sizes[old]},{size}")
                sizes[old] = size
            else:
                lines.append(f"{at},D,{old},{old % 7},1,{sizes.pop(old)},0")
    listing = folder / f"history-{seed}.csv"
    listing.write_text("\n".join(lines) + "\n")
    output = folder / f"history-{seed}-{sync_every}.parquet"
    request = {
        "source": "oplist",
        "list": str(listing),
        "history": {"sync_every_commits": sync_every},
    }
    workloads.make(request, output)
    return output


def found(root: Path) -> dict[str, int]:
    """Files below a folder with their sizes, and directories with 0."""
    return {
        str(path.relative_to(root)): path.stat().st_size if path.is_file() else 0
        for path in sorted(root.rglob("*"))
        if path.name != "lost+found"
    }


def run(*arguments: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run `agewell age`."""
    words = [*COMMAND, "age", *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, done.stderr
    if "--json" in arguments and done.stdout:
        documents.check(done.stdout)
    return done


def target_in(place: Path, name: str = "target") -> Path:
    """An empty folder."""
    target = place / name
    target.mkdir()
    return target


def test_a_directory_holds_what_the_log_says(place: Path, tmp_path: Path) -> None:
    """Sizes below the directory are those that a walk over the log ends with."""
    workload = history(tmp_path, 150)
    target = target_in(place)
    log = tmp_path / "log.parquet"
    document = json.loads(
        run(target, "-w", workload, "--copies", "2", "--log", log, "--json", "--quiet").stdout
    )
    sizes: dict[int, int] = {}
    for row in pq.read_table(log).to_pylist():
        match workloads.ACTIONS[row["action"]]:
            case "create":
                sizes[row["file"]] = 0
            case "write":
                end = row["offset_bytes"] + row["size_bytes"]
                sizes[row["file"]] = max(sizes[row["file"]], end)
            case "delete":
                del sizes[row["file"]]
    files = {name: size for name, size in found(target).items() if Path(target / name).is_file()}
    assert sorted(files.values()) == sorted(sizes.values())
    assert document["report"]["planned"]["live_files"] == len(files)
    assert document["report"]["outcomes"]["no_space"] == 0
    # The log is a workload: it reads back, every rule checked.
    assert workloads.info(log)["operations"] == document["report"]["planned"]["operations"]


def test_any_number_of_threads_gives_the_same_log(place: Path, tmp_path: Path) -> None:
    """Byte for byte, and the same files."""
    workload = history(tmp_path, 200)
    logs, trees = [], []
    for threads in (1, 4):
        target = target_in(place, f"target-{threads}")
        log = tmp_path / f"log-{threads}.parquet"
        options = ["--copies", "5", "--allocate", "append-interleaved", "--chunk", "4 KiB"]
        run(target, "-w", workload, *options, "--threads", str(threads), "--log", log)
        logs.append(log.read_bytes())
        trees.append(found(target))
    assert logs[0] == logs[1]
    assert trees[0] == trees[1]
    assert len(trees[0]) > 100


def test_a_replay_killed_at_any_moment_is_resumed(place: Path, tmp_path: Path) -> None:
    """SIGKILL at random moments, until it ends: the files of one that was left alone."""
    workload = history(tmp_path, 1200)
    arguments: list[str | Path] = ["-w", workload, "--copies", "12", "--quiet", "--threads", "2"]
    whole = target_in(place, "whole")
    run(whole, *arguments, "--log", tmp_path / "whole.parquet")
    expected = found(whole)
    shutil.rmtree(whole)

    draw = random.Random(3)  # noqa: S311 (drawn, not secret)
    target = target_in(place)
    state = place / "target.agewell"
    kills = 0
    resume: list[str] = []
    for _ in range(40):
        words = [*COMMAND, "age", target, *arguments, "--log", tmp_path / "killed.parquet", *resume]
        process = subprocess.Popen(list(map(str, words)), stderr=subprocess.PIPE)
        while not resume and not state.exists() and process.poll() is None:
            time.sleep(0.005)
        try:
            process.wait(timeout=0.35 + draw.random() * 0.5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
        else:
            assert process.stderr is not None
            assert process.returncode == 0, process.stderr.read()
            break
        finally:
            assert process.stderr is not None
            process.stderr.close()
        resume = ["--resume"]
    else:
        run(target, *arguments, "--log", tmp_path / "killed.parquet", "--resume")
    assert kills > 0, "it was never killed; make the workload longer"
    assert found(target) == expected
    assert (tmp_path / "killed.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert json.loads(state.read_text())["finished"] == "workload-end"


def interrupted(target: Path, workload: Path) -> str:
    """Replay onto `target` until Ctrl-C, which says how to go on; the copies that took."""
    # On a busy machine a replay may be done before its signal comes, or all but done, so that there
    # is nothing to go on with: then it was too short.
    for copies in ("40", "160", "640"):
        words = [*COMMAND, "age", str(target), "-w", str(workload), "--copies", copies]
        process = subprocess.Popen(
            words, stderr=subprocess.PIPE, text=True, preexec_fn=heed_interrupts
        )
        # What is being removed is passed over.
        while process.poll() is None and sum(len(names) for _, _, names in os.walk(target)) < 100:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=COMMAND_SECONDS)
        assert process.returncode in (0, 130), complaint
        if "go on with --resume" in complaint:
            return copies
        shutil.rmtree(target)
        target.mkdir()
    pytest.fail("every replay was done before its signal came")


def test_an_interrupt_is_noted_and_resumed(place: Path, tmp_path: Path) -> None:
    """Ctrl-C exits with 130, says how to go on, and going on ends the same."""
    workload = history(tmp_path, 1500)
    target = target_in(place)
    copies = interrupted(target, workload)
    again = json.loads(
        run(target, "-w", workload, "--copies", copies, "--resume", "--json", "-q").stdout
    )
    whole = target_in(place, "whole")
    once = json.loads(run(whole, "-w", workload, "--copies", copies, "--json", "-q").stdout)
    assert found(target) == found(whole)
    assert again["report"]["planned"] == once["report"]["planned"]
    assert again["report"]["outcomes"] == once["report"]["outcomes"]


def test_only_the_same_replay_is_resumed(place: Path, tmp_path: Path) -> None:
    """Another workload, other options, or no state at all are refused with exit 2."""
    workload, other = history(tmp_path, 30), history(tmp_path, 30, seed=2)
    target = target_in(place)
    nothing = run(target, "-w", workload, "--resume", check=False)
    assert nothing.returncode == 2
    assert "no state to resume from" in nothing.stderr
    run(target, "-w", workload)
    options: list[list[str | Path]] = [["-w", other], ["-w", workload, "--copies", "2"]]
    for arguments in options:
        refused = run(target, *arguments, "--resume", check=False)
        assert refused.returncode == 2
        assert "of another replay" in refused.stderr
    (place / "target.agewell").write_text('{"kind": "agewell-check')
    mangled = run(target, "-w", workload, "--resume", check=False)
    assert mangled.returncode == 2
    assert "not a checkpoint" in mangled.stderr


def test_unfit_targets_are_refused_and_left_alone(place: Path, tmp_path: Path) -> None:
    """Occupied directories, files, what is not there, the system's own disk."""
    workload = history(tmp_path, 10)
    target = target_in(place)
    (target / "mine").write_text("kept")
    for path, words in (
        (target, "not empty (it holds 'mine')"),
        (target / "mine", "not a directory"),
        (place / "nowhere", "no such"),
    ):
        refused = run(path, "-w", workload, check=False)
        assert refused.returncode == 2, refused.stderr
        assert words.lower() in refused.stderr.lower()
        assert refused.stderr.count("\n") == 1
    assert found(target) == {"mine": 4}
    run(target, "-w", workload, "--allow-occupied")
    assert (target / "mine").read_text() == "kept"
    if tmp_path.stat().st_dev == Path("/").stat().st_dev:
        system = target_in(tmp_path, "system")
        refused = run(system, "-w", workload, check=False)
        assert refused.returncode == 2
        assert "--allow-system-disk" in refused.stderr
        assert found(system) == {}


def test_a_name_that_is_taken_is_not_overwritten(place: Path, tmp_path: Path) -> None:
    """Not a file, and not through a link that leads outside."""
    workload = history(tmp_path, 10)
    target = target_in(place)
    outside = place / "outside"
    outside.mkdir()
    (target / "d00000001").symlink_to(outside)
    refused = run(target, "-w", workload, "--allow-occupied", check=False)
    assert refused.returncode == 2, refused.stderr
    assert "it holds 'd00000001', a name such as the replay gives" in refused.stderr
    assert found(outside) == {}


def test_a_full_file_system_is_counted_and_gone_on_with(mounted: Path, tmp_path: Path) -> None:
    """Want of room ends nothing; the table beside the log says which operations had none."""
    workload = history(tmp_path, 1500)
    log = tmp_path / "log.parquet"
    done = run(mounted, "-w", workload, "--copies", "6", "--json", "--log", log)
    report = json.loads(done.stdout)["report"]
    outcomes = report["outcomes"]
    assert outcomes["no_space"] > 0
    assert f"{outcomes['no_space']:,} operations there was no room" in done.stderr
    assert (
        outcomes["done"] + outcomes["no_space"] + outcomes["skipped"]
        == (report["planned"]["operations"])
    )
    refused = pq.read_table(tmp_path / "log.no-space.parquet")
    assert refused.num_rows == outcomes["no_space"]
    assert report["stop"] == "workload-end"


@pytest.mark.parametrize("hold", ["random", "oldest"])
def test_a_utilization_is_held(mounted: Path, tmp_path: Path, hold: str) -> None:
    """80 % asked: never above by more than metadata takes, and 80 % in the end."""
    workload = history(tmp_path, 1200)
    arguments: list[str | Path] = [
        "--copies",
        "12",
        "--utilization",
        "0.8",
        "--hold",
        hold,
        "--json",
        "-q",
    ]
    report = json.loads(run(mounted, "-w", workload, *arguments).stdout)["report"]
    after = report["usage_after"]
    assert report["planned"]["removed"] > 0
    assert report["outcomes"]["no_space"] == 0
    assert after["used_bytes"] / after["total_bytes"] == pytest.approx(0.8, abs=0.02)
    assert report["utilization_max"] < 0.83
    status = os.statvfs(mounted)
    used = status.f_blocks - status.f_bfree
    assert used / (used + status.f_bavail) == pytest.approx(0.8, abs=0.02)


def test_the_score_is_that_of_the_snapshot(mounted: Path, tmp_path: Path) -> None:
    """The score at the end is counted from extents as the snapshot has them."""
    workload = history(tmp_path, 800)
    snapshot = tmp_path / "aged.parquet"
    arguments: list[str | Path] = [
        "--copies",
        "12",
        "--utilization",
        "0.9",
        "--snapshot",
        snapshot,
        "--json",
        "-q",
    ]
    report = json.loads(run(mounted, "-w", workload, *arguments).stdout)["report"]
    files = snapshots.read(snapshot).files.select(["kind", "extents"]).to_pylist()
    optimal = counted = 0
    for file in files:
        if file["kind"] != "regular":
            continue
        end = None
        for extent in file["extents"]:
            blocks = -(-extent["length_bytes"] // BLOCK_BYTES)
            counted += blocks - (end is None)
            optimal += blocks - 1 + (end == extent["physical_bytes"])
            end = extent["physical_bytes"] + extent["length_bytes"]
    assert (report["layout_optimal"], report["layout_counted"]) == (optimal, counted)
    assert 0.5 < report["layout_score"] <= 1.0


def test_fallocate_writes_nothing_and_write_does(mounted: Path, tmp_path: Path) -> None:
    """Allocated files read as zeros, written ones do not, and are not compressible."""
    import zlib

    workload = history(tmp_path, 40)
    for allocate in ("fallocate", "write"):
        target = target_in(mounted, allocate)
        state = tmp_path / f"{allocate}.state"
        run(target, "-w", workload, "--allocate", allocate, "--state", state)
        content = b"".join(
            path.read_bytes() for path in sorted(target.rglob("f*")) if path.is_file()
        )
        assert len(content) > 100_000
        if allocate == "fallocate":
            assert content.count(0) == len(content)
        else:
            assert len(zlib.compress(content)) > 0.98 * len(content)


def test_a_simulated_target_gives_the_same_bytes_twice(tmp_path: Path) -> None:
    """Record, series and snapshot of a simulated target are functions of the request."""
    workload = history(tmp_path, 400)
    outputs: list[tuple[str, bytes, bytes]] = []
    for name in ("one", "two"):
        folder = target_in(tmp_path, name)
        done = run(
            "ffs+realloc", "-w", workload, "--copies", "8", "--json", "--quiet",
            "--set", "layout.size=24 MiB", "--utilization", "0.8",
            "--series", folder / "series.csv", "--snapshot", folder / "snapshot.parquet",
        )  # fmt: skip
        series, snapshot = folder / "series.csv", folder / "snapshot.parquet"
        outputs.append((done.stdout, series.read_bytes(), snapshot.read_bytes()))
    assert outputs[0] == outputs[1]
    report = json.loads(outputs[0][0])["report"]
    assert 0.75 < report["utilization_max"] < 0.83
    assert report["outcomes"]["no_space"] == 0
    days = [int(line.split(b",")[0]) for line in outputs[0][1].splitlines()[1:]]
    assert days == sorted(set(days))


def test_a_recipe_makes_the_same_again(place: Path, tmp_path: Path) -> None:
    """The same layout on a simulated target, the same operations on a real one."""
    workload = history(tmp_path, 400)
    recipe, snapshot = tmp_path / "recipe.json", tmp_path / "first.parquet"
    first = aging.age(
        "ffs",
        workload,
        layout={"size": "24 MiB"},
        copies=4,
        utilization=0.7,
        until=["utilization=0.69"],
        log=tmp_path / "first-log.parquet",
        snapshot=snapshot,
        save_recipe=recipe,
    )
    again = aging.age(None, workload, recipe=recipe, snapshot=tmp_path / "again.parquet")
    assert snapshot.read_bytes() == (tmp_path / "again.parquet").read_bytes()
    assert again.document["report"]["planned"] == first.document["report"]["planned"]
    target = target_in(place)
    real = aging.age(target, workload, recipe=recipe, log=tmp_path / "real-log.parquet")
    assert real.document["report"]["planned"] == first.document["report"]["planned"]
    rows = [pq.read_table(tmp_path / f"{name}-log.parquet") for name in ("first", "real")]
    assert rows[0].equals(rows[1])
    with pytest.raises(InputError, match="not the workload of the recipe"):
        aging.age("ffs", history(tmp_path, 10, seed=5), recipe=recipe)
    with pytest.raises(InputError, match="--copies would make other operations"):
        aging.age("ffs", workload, recipe=recipe, copies=2)


def test_the_command_follows_a_recipe_without_a_target(tmp_path: Path) -> None:
    workload = history(tmp_path, 200)
    first, again = tmp_path / "first.parquet", tmp_path / "again.parquet"
    recipe = tmp_path / "recipe.json"
    size = ("--set", "layout.size=24 MiB")
    run("ffs", "-w", workload, *size, "--snapshot", first, "--save-recipe", recipe)
    run("--recipe", recipe, "-w", workload, "--snapshot", again)
    assert first.read_bytes() == again.read_bytes()
    done = run(
        "--recipe", recipe, "-w", workload, "--set", "layout.maxcontig=3", "--json", "--quiet"
    )
    layout = json.loads(done.stdout)["target"]["layout"]
    asked = json.loads(recipe.read_text())["target"]["layout"]
    assert layout == {**asked, "maxcontig": 3}


def test_no_target_and_no_recipe_of_one_is_said(tmp_path: Path) -> None:
    for more in ([], ["--set", "layout.maxcontig=3"]):
        done = run("-w", history(tmp_path, 5), *more, check=False)
        assert done.returncode == 2
        assert "no target: name a directory, ffs" in done.stderr


IGNORED_BY_SIMULATIONS = (
    ["--allocate", "fallocate"],
    ["--contents", "zeros"],
    ["--chunk", "4 KiB"],
    ["--threads", "2"],
    ["--state", "state.json"],
    ["--allow-occupied"],
    ["--allow-system-disk"],
    ["--resume"],
)


@pytest.mark.parametrize("option", IGNORED_BY_SIMULATIONS, ids=lambda option: option[0])
def test_an_option_that_a_simulated_target_ignores_is_refused(
    tmp_path: Path, option: list[str]
) -> None:
    done = run("ffs", "-w", history(tmp_path, 5), *option, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert option[0] in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"until": ["score"]}, "'score' is not an end"),
        ({"until": ["score=2"]}, "use a share like 0.8"),
        ({"utilization": 1.5}, "use a share like 0.8"),
        ({"sync_every": "often"}, "how often to sync"),
        ({"layout": {"sise": "1 MiB"}}, "size"),
        ({"resume": True}, "nothing to resume"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    """In one line that says what to do."""
    workload = history(tmp_path, 10)
    with pytest.raises(InputError) as refused:
        aging.age("ffs", workload, **options)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_damaged_workload_is_refused(tmp_path: Path) -> None:
    """Cut short, it is bad input, and leaves no outputs."""
    workload = history(tmp_path, 50)
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(workload.read_bytes()[:-100])
    refused = run("ffs", "-w", cut, "--log", tmp_path / "log.parquet", check=False)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert not (tmp_path / "log.parquet").exists()
