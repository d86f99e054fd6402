//! Reading ahead: what it saves where it is right, and costs where it is wrong.

mod simulated;

use serde_json::{Value, json};
use simulated::simulate;

fn metrics(read: &str, host: &Value) -> Value {
    let value = json!({
        "workload": { "kind": "microbenchmark", "blocks": 4096, "write": "pattern",
            "read": read, "utilization": 0.5 },
        "host": host,
        "layout": { "kind": "sequential" },
        "device": { "kind": "simple", "access_time": "15 ms", "bandwidth": "5 MB/s" },
        "run": { "lower_bound": false },
    });
    simulate(&value).unwrap()["metrics"].clone()
}

fn host(prefetch: &str) -> Value {
    json!({ "client_cache": "0 MB", "server_cache": "1 MiB", "prefetch": prefetch })
}

#[test]
fn a_sequential_reader_finds_what_was_read_ahead() {
    let plain = metrics("sequential", &host("none"));
    let ahead = metrics("sequential", &host("sequential"));
    assert_eq!(ahead["prefetch_used_fraction"], json!(1.0));
    assert_eq!(ahead["disk_read_blocks"].as_u64(), Some(1), "the first block of the file");
    // At the beginning the cache still has some of the 128 blocks written last.
    let blocks = ahead["prefetched_blocks"].as_u64().unwrap();
    assert!((4095 - 128..=4095).contains(&blocks), "{blocks}");
    // Windows of 16 blocks are read by one access, apart from those that the cache had a part of.
    let [plain_s, ahead_s] = [&plain, &ahead].map(|run| {
        run["read_seconds"].as_f64().unwrap() + run["prefetch_seconds"].as_f64().unwrap_or(0.0)
    });
    let transfer_s = 8192.0 / 5e6;
    let (each, window) = (0.015 + transfer_s, 0.015 / 16.0 + transfer_s);
    assert!((plain_s / (4096.0 * each) - 1.0).abs() < 0.05, "{plain_s}");
    assert!((ahead_s / (4096.0 * window) - 1.0).abs() < 0.1, "{ahead_s}");
    assert!(plain["prefetched_blocks"].is_null());
    assert!(plain["disk_read_blocks"].as_u64().unwrap() > 4096 - 128);
}

#[test]
fn who_reads_out_of_order_is_left_alone() {
    let ahead = metrics("pattern", &host("sequential"));
    let blocks = ahead["prefetched_blocks"].as_u64().unwrap();
    // A permutation goes on by itself once in 4096 steps, and the first block of the file once.
    assert!(blocks <= 16 * 8, "{blocks} blocks read ahead of a reader without order");
    let [read_s, prefetch_s] =
        ["read_seconds", "prefetch_seconds"].map(|name| ahead[name].as_f64().unwrap_or(0.0));
    assert!(prefetch_s < 0.02 * read_s, "{prefetch_s} s against {read_s} s");
}

#[test]
fn reading_ahead_needs_a_cache() {
    let value = json!({
        "workload": { "kind": "microbenchmark", "utilization": 0.5 },
        "host": { "server_cache": "0 MB", "prefetch": "sequential" },
        "layout": { "kind": "sequential" },
        "device": { "kind": "simple", "access_time": "15 ms", "bandwidth": "5 MB/s" },
    });
    let refused = simulate(&value).unwrap_err().to_string();
    assert!(refused.contains("prefetch") && refused.contains("server_cache"), "{refused}");
}
