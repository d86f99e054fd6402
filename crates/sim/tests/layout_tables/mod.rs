//! Every layout of blocks, by the table `[layout]` that asks for it.

use serde_json::{Value, json};

/// Every kind with its principal choices.
pub(crate) fn layouts() -> Vec<Value> {
    vec![
        json!({ "kind": "lfs", "collect": "clean" }),
        json!({ "kind": "lfs", "collect": "matthews-1999" }),
        json!({ "kind": "lfs" }),
        json!({ "kind": "lfs", "reorganise": "blocks", "decide": "value" }),
        json!({ "kind": "lfs", "reorganise": "blocks", "placement": "user-collected" }),
        json!({ "kind": "lfs", "reorganise": "files", "when": "at-once" }),
        json!({ "kind": "lfs", "reorganise": "non-sequential", "when": "eviction" }),
        json!({ "kind": "lfs", "reorganise": "whole-file", "when": "idle", "budget": 0.5 }),
        json!({ "kind": "lfs", "reorganise": "directory", "moves_max": 1 }),
        json!({ "kind": "lfs", "reorganise": "frequency", "partition_size": "64 KiB" }),
        json!({ "kind": "sequential" }),
        json!({ "kind": "sequential", "order": "written" }),
        json!({ "kind": "write-anywhere" }),
        json!({ "kind": "write-anywhere", "search": "nearest", "recovery": "snapshot" }),
        json!({ "kind": "write-anywhere", "search": "stripe", "recovery": "checkpoint" }),
        json!({ "kind": "ffs", "metadata": false }),
        json!({ "kind": "ffs+realloc" }),
        json!({ "kind": "early-unix", "ordered": false }),
        json!({ "kind": "early-unix", "system_block_size": "8 KiB", "metadata": false }),
        json!({ "kind": "write-ahead" }),
        json!({ "kind": "write-ahead", "inner": "sequential", "journal_place": "middle" }),
        json!({ "kind": "write-ahead", "inner": "ffs+realloc", "journal": "full",
            "journal_place": "own-disk", "checkpoint_commits": 16 }),
    ]
}
