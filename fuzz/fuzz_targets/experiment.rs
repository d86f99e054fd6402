//! The configuration of experiments on any JSON.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| agewell_fuzz::read_experiment(bytes));
