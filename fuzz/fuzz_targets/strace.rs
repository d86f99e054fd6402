//! The reader of strace output on any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| agewell_fuzz::read_strace(bytes));
