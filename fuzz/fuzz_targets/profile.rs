//! The reader of profiles on any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| agewell_fuzz::read_profile(bytes));
