//! Experiments small enough to be run here, and those that must be refused.

use std::path::Path;

use agewell_sim::Places;
use serde_json::{Value, json};

use super::*;
use crate::workload::{OperationWriter, SourceFacts, WorkloadWriter};

fn places(base: &Path) -> Places<'_> {
    let catalogue = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../devices"));
    Places { base, catalogue }
}

/// Three days of files that come and go, as a workload file.
fn workload(path: &Path) {
    let sink = WorkloadWriter::create(path).expect("a file");
    let mut writer = OperationWriter::new(sink);
    let directory = writer.make_directory(0).expect("kept");
    let mut files = Vec::new();
    for step in 0..300_u64 {
        writer.set_time(step * agewell_core::DAY_NS / 100);
        let file = writer.create(directory).expect("kept");
        writer.write(file, 0, 3_000 + step * 977 % 200_000).expect("kept");
        files.push(file);
        if step % 3 == 2 {
            writer.delete(files.remove(step as usize % files.len())).expect("kept");
        }
    }
    let (facts, sink) = writer.finish(SourceFacts::default());
    sink.finish(&facts).expect("written");
}

fn experiment(kind: &str) -> Value {
    json!({
        "workload": {"kind": "file", "path": "workload.parquet"},
        "layout": {"kind": kind, "size": "64 MiB"},
        "device": {"model": "seagate-st32430n"},
        "measure": {
            "sequential": ["8 KiB", "104 KiB"],
            "sequential_size": "1 MiB",
            "hot": "1 d",
            "raw": true,
            "repetitions": 3,
        },
    })
}

fn run_in(directory: &Path, value: Value) -> AgingOutcome {
    let experiment = AgingExperiment::from_value(value).expect("an experiment");
    run(&experiment, places(directory), &mut |_| true).expect("it runs")
}

// Hot files are those of whole days before the last evening: as many as the workload says that it
// modifies in them, whenever on the last day its last modification is.
#[test]
fn hot_files_are_those_of_the_last_days() {
    let directory = tempfile::tempdir().expect("a directory");
    for seed in 1..5 {
        let outcome = run_in(
            directory.path(),
            json!({
                "workload": {"kind": "smith-1996", "parameters": {
                    "days": 30, "groups": 4, "file_system_bytes": 10 << 20,
                    "file_operations": 9_000, "written_bytes": 300 << 20,
                    "files_at_end": 200, "allocated_bytes_at_end": 6 << 20,
                    "recent_days": 5, "recent_files": 60, "recent_allocated_bytes": 1 << 20,
                    "utilization_path": [[0, 10.0], [10, 80.0]], "directories": 30,
                    "active_directories": 5, "bytes_max": 1 << 20,
                }},
                "layout": {"kind": "ffs", "size": "64 MiB"},
                "device": {"model": "seagate-st32430n"},
                "measure": {"hot": "5 d", "repetitions": 1},
                "run": {"seed": seed},
            }),
        );
        assert_eq!(outcome.document["metrics"]["hot_files"], 60, "seed {seed}");
    }
}

#[test]
fn an_experiment_ages_measures_and_can_be_run_again_from_its_record() {
    let directory = tempfile::tempdir().expect("a directory");
    workload(&directory.path().join("workload.parquet"));
    for kind in ["ffs", "ffs+realloc", "lfs"] {
        let read = Experiment::from_value(experiment(kind)).expect("an experiment");
        assert_eq!(read.kind().name(), "file-system");
        let outcome = run_in(directory.path(), experiment(kind));
        let metrics = &outcome.document["metrics"];
        assert_eq!(metrics["files"], 200, "{kind}");
        assert_eq!(metrics["no_space"], 0);
        assert_eq!(outcome.series.len(), 3, "a row a day");
        let score = metrics["layout_score"].as_f64();
        assert_eq!(outcome.document["score"]["layout"]["layout_score"].as_f64(), score);
        if kind != "lfs" {
            // What a log has not written yet has no place when the day ends.
            assert_eq!(outcome.series[2].layout_score(), score);
        }
        for name in ["raw_read", "raw_write", "hot_read", "hot_write"] {
            let rate = metrics[format!("{name}_mb_per_s")].as_f64().expect("a rate");
            assert!(rate > 0.05 && rate < 10.0, "{kind} {name} {rate}");
        }
        let rows = outcome.document["sequential"].as_array().expect("rows");
        assert_eq!(rows.len(), 2);
        assert_eq!((&rows[0]["files"], &rows[1]["files"]), (&json!(128), &json!(9)));
        let again = run_in(directory.path(), outcome.document["config"].clone());
        assert_eq!(again.document, outcome.document, "{kind}");
        outcome.write(&directory.path().join("out")).expect("written");
        assert!(directory.path().join("out/series.parquet").is_file());
    }
}

#[test]
fn days_end_a_replay_early() {
    let directory = tempfile::tempdir().expect("a directory");
    workload(&directory.path().join("workload.parquet"));
    let mut value = experiment("ffs");
    value["run"] = json!({"days": 1});
    value["measure"] = json!({});
    let outcome = run_in(directory.path(), value);
    assert_eq!(outcome.series.len(), 1);
    assert_eq!(outcome.document["sequential"], json!([]));
}

#[test]
fn an_empty_file_system_is_measured_too() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut value = experiment("ffs");
    value["workload"] = json!({"kind": "none"});
    value["measure"] = json!({"sequential": ["16 KiB"], "sequential_size": "1 MiB"});
    let outcome = run_in(directory.path(), value);
    assert_eq!(outcome.document["metrics"]["layout_score"], Value::Null);
    assert!(outcome.document["sequential"][0]["layout_score"].as_f64() > Some(0.9));
}

#[test]
fn what_does_not_do_is_refused_in_one_line() {
    let changed = |pointer: &str, value: Value| {
        let mut experiment = experiment("ffs");
        *experiment.pointer_mut(pointer).expect("there") = value;
        experiment
    };
    let mut without_device = experiment("ffs");
    without_device.as_object_mut().expect("a table").remove("device");
    for (value, expected) in [
        (
            changed("/measure/sequential", json!(["16 Kib"])),
            "sequential: must be \"default\" or a list of sizes",
        ),
        (changed("/measure/sequential", json!("all")), "must be \"default\" or a list"),
        (changed("/measure/repetitions", json!(0)), "repetitions: must be from 1 to 1000"),
        (changed("/measure", json!({"hott": "1 d"})), "did you mean 'hot'?"),
        (changed("/workload/kind", json!("smith-1997")), "did you mean 'smith-1996'?"),
        (changed("/workload", json!({"kind": "file"})), "'path' is missing"),
        (
            changed("/workload", json!({"kind": "smith-1996", "parameters": {"life": 3}})),
            "[workload]: parameters: unknown key 'life'; ",
        ),
        (
            changed("/workload", json!({"kind": "smith-1996", "parameters": {"days": 1}})),
            "[workload]: parameters: days: must be from 2 to 36500",
        ),
        (changed("/layout/kind", json!("ext2")), "[layout]: kind = 'ext2' is not known"),
        (without_device, "[device]: 'model' is missing"),
        (json!({"layout": {"kind": "ffs"}, "hots": {}}), "did you mean 'host'?"),
        (json!([]), "a set of tables"),
    ] {
        let error = AgingExperiment::from_value(value).expect_err("refused").to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains('\n'));
    }
}

#[test]
fn a_stop_is_heard() {
    let directory = tempfile::tempdir().expect("a directory");
    workload(&directory.path().join("workload.parquet"));
    let experiment = AgingExperiment::from_value(experiment("ffs")).expect("an experiment");
    let stopped = run(&experiment, places(directory.path()), &mut |_| false);
    assert!(matches!(stopped, Err(crate::AgeError::Stopped)));
}
