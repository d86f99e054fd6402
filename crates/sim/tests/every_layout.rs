//! Every layout of blocks under the same requests on the same disk, as a whole.

mod layout_tables;
mod simulated;

use layout_tables::layouts;
use serde_json::{Value, json};
use simulated::simulate;

/// A small file, written, written again and read, on the drive of Matthews 1999, §6.2.2.
fn microbenchmark(write: &str, preallocated: f64, layout: &Value) -> Value {
    json!({
        "workload": {
            "kind": "microbenchmark", "blocks": 6000, "write": write, "read": "sequential",
            "reads": 1, "utilization": 0.5 + preallocated, "preallocated": preallocated,
        },
        "host": {
            "flush_interval": "0 s", "client_cache": "0 MB", "server_cache": "0 MB",
        },
        "layout": layout,
        "device": { "model": "hp-97560" },
        "run": { "lower_bound": false },
    })
}

#[test]
fn every_layout_runs_a_microbenchmark_at_half_and_at_nine_tenths() {
    for layout in layouts() {
        for preallocated in [0.0, 0.4] {
            let config = microbenchmark("random", preallocated, &layout);
            let document = simulate(&config).unwrap_or_else(|why| panic!("{layout}: {why}"));
            let metrics = &document["metrics"];
            let number = |name: &str| metrics[name].as_f64().expect("a number");
            assert_eq!(metrics["user_blocks"], json!(12_000), "{layout}");
            // All but what a write buffer may still hold, or what waits to be propagated.
            let is_journaled = layout["kind"] == "write-ahead";
            let in_memory = if is_journaled { 32.0 + 512.0 } else { 32.0 };
            let read = number("disk_read_blocks");
            assert!(read > 6000.0 - in_memory && read <= 6000.0, "{layout}: {read} blocks read");
            assert!(number("disk_seconds") > 25.0, "{layout}: 94 MB written, 47 read, at 2.1 MB/s");
            assert!(number("recovery_seconds") > 0.0, "{layout}");
        }
    }
}

/// Matthews 1999, §6.3.2: updates at random cost little where they go anywhere and much in place;
/// a file that stayed in its places is read faster than one that is scattered.
#[test]
fn writing_anywhere_wins_the_random_write_and_loses_the_sequential_read() {
    let seconds = |layout: &Value, name: &str| {
        let document = simulate(&microbenchmark("random", 0.0, layout)).expect("it runs");
        document["metrics"][name].as_f64().expect("a number")
    };
    for in_place in [json!({ "kind": "sequential" }), json!({ "kind": "ffs", "metadata": false })] {
        let anywhere = json!({ "kind": "write-anywhere" });
        let written = |layout: &Value| seconds(layout, "write_seconds");
        let read = |layout: &Value| seconds(layout, "read_seconds");
        assert!(written(&anywhere) * 1.2 < written(&in_place), "{in_place}");
        assert!(read(&anywhere) > 2.0 * read(&in_place), "{in_place}");
    }
}

/// Updates at random, eight of them synced at once.
fn synced_updates(layout: &Value) -> Value {
    json!({
        "workload": {
            "kind": "random-update", "blocks": 5000, "updates_per_block": 1,
            "utilization": 0.8,
        },
        "host": { "sync_every": 8 },
        "layout": layout,
        "device": { "model": "hp-97560" },
        "run": { "lower_bound": false },
    })
}

/// Matthews 1999, §3.4: "despite having to write everything twice [...] write-ahead logging can
/// actually improve write performance", because writes to the log are batched. (One block at a time
/// it does not on this drive: each commit waits for a turn, which is as long as an access.)
#[test]
fn a_journal_writes_twice_and_is_faster_all_the_same() {
    let metric = |layout: &Value, name: &str| {
        let document = simulate(&synced_updates(layout)).expect("it runs");
        document["metrics"][name].as_f64().expect("a number")
    };
    let journaled = |place: &str| json!({ "kind": "write-ahead", "inner": "sequential", "journal_place": place });
    let in_place = metric(&json!({ "kind": "sequential" }), "write_seconds");
    let same_disk = metric(&journaled("start"), "write_seconds");
    let own_disk = metric(&journaled("own-disk"), "write_seconds");
    assert!(own_disk < in_place, "{own_disk} s, in place {in_place} s");
    assert!(own_disk <= same_disk, "{own_disk} s, on the same disk {same_disk} s");
    // Updates of the same block between checkpoints are propagated once.
    assert!(metric(&journaled("start"), "write_amplification") < 2.0);
}

/// After a crash an update in place reads all there is; a journal bounds that (Matthews 1999,
/// §3.2, §3.4).
#[test]
fn recovery_goes_with_the_journal_and_not_with_the_disk() {
    let seconds = |layout: &Value| {
        let document = simulate(&synced_updates(layout)).expect("it runs");
        document["metrics"]["recovery_seconds"].as_f64().expect("a number")
    };
    let all = seconds(&json!({ "kind": "sequential" }));
    let fsck = seconds(&json!({ "kind": "ffs" }));
    let journal = seconds(&json!({
        "kind": "write-ahead", "journal_size": "512 KiB", "group_size": "64 KiB",
    }));
    let snapshot = seconds(&json!({ "kind": "write-anywhere", "recovery": "snapshot" }));
    assert!(fsck < all && journal < fsck && snapshot < all);
}

#[test]
fn what_does_not_go_together_is_refused_in_one_line() {
    for (layout, why) in [
        (
            json!({ "kind": "write-ahead", "inner": "sequential", "journal": "metadata" }),
            "needs an inner layout with metadata",
        ),
        (json!({ "kind": "write-ahead", "journal_size": "8 KiB" }), "must be at least 16384 bytes"),
        (json!({ "kind": "write-anywhere", "serach": "sweep" }), "did you mean 'search'?"),
        (
            json!({ "kind": "write-anywhere", "search": "stripe", "stripe_blocks": 5000 }),
            "1 to 4096",
        ),
        (json!({ "kind": "ffs", "block_size": "12 KiB" }), "power of two"),
        (json!({ "kind": "ffs", "fragment_size": "3 KiB" }), "fragment"),
        (json!({ "kind": "early-unix", "system_block_size": "3 KiB" }), "whole number"),
        (json!({ "kind": "early-unix", "system_block_size": "256 B" }), "power of two"),
    ] {
        let refused = simulate(&synced_updates(&layout)).expect_err("it is refused");
        let message = refused.to_string();
        assert!(message.contains(why) && !message.contains('\n'), "{layout}: {message}");
    }
}
