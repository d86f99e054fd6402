//! Snapshots, layout metrics, aging workloads and their replay, from Python.
