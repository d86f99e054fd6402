//! A journal on a disk of its own: the two disks work side by side, and each has its account.

#[path = "../../disk/tests/documented/mod.rs"]
mod documented;
mod simulated;

use documented::documented;
use serde_json::{Value, json};
use simulated::simulate;

fn metrics(journal_place: &str, device: &Value) -> Value {
    let value = json!({
        "workload": { "kind": "random-update", "blocks": 4000, "updates_per_block": 4,
            "utilization": 0.6 },
        "host": { "sync_every": 16, "discards": true },
        "layout": { "kind": "write-ahead", "inner": "sequential", "journal": "full",
            "journal_place": journal_place, "journal_size": "8 MiB" },
        "device": device,
        "run": { "lower_bound": false },
    });
    simulate(&value).expect("the run ends")["metrics"].clone()
}

fn seconds(metrics: &Value, name: &str) -> f64 {
    metrics[format!("{name}_seconds")].as_f64().expect("a number")
}

#[test]
fn commits_go_on_while_what_they_held_before_is_propagated() {
    let mut table = String::from(
        "| drives | journal busy | propagation | both | elapsed | on one drive |\n\
         |---|---|---|---|---|---|\n",
    );
    for name in ["hp-97560", "hp-c3323a", "hgst-hus728t8tale6l4", "flash-sata-tlc"] {
        let device = json!({ "model": name });
        let own = metrics("own-disk", &device);
        let (busy, elapsed) = (seconds(&own, "disk"), seconds(&own, "elapsed"));
        let (journal, propagate) = (seconds(&own, "journal"), seconds(&own, "propagate"));
        assert!((busy - journal - propagate).abs() < 1e-6, "{device}: nothing else is done");
        // Neither disk does two things at once; and what can overlap, does: all but what the ring
        // makes them wait for each other.
        assert!(elapsed >= journal.max(propagate) - 1e-6, "{device}");
        assert!(elapsed < busy - 0.5 * journal.min(propagate), "{device}: {elapsed} of {busy} s");
        let one = seconds(&metrics("middle", &device), "elapsed");
        // Flash has no arm that a journal of its own would keep still: it only has less to do between
        // two commits, of which each reads the sectors around its header from a die that programs.
        assert!(elapsed < one || name == "flash-sata-tlc", "{device}");
        let line = [journal, propagate, busy, elapsed, one].map(|spent| format!("{spent:.2}"));
        table.push_str(&["| `", name, "` | ", &line.join(" | "), " |\n"].concat());
    }
    documented("docs/concepts/layouts.md", "journal", &table);
}

#[test]
fn on_one_disk_there_is_nothing_to_overlap() {
    for place in ["start", "middle"] {
        let one = metrics(place, &json!({ "model": "hp-97560" }));
        let (busy, elapsed) = (seconds(&one, "disk"), seconds(&one, "elapsed"));
        assert!((busy - elapsed).abs() < 1e-6, "{place}: {elapsed} of {busy} s");
    }
}
