//! The reader of snapshots on any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| agewell_fuzz::read_snapshot(bytes));
