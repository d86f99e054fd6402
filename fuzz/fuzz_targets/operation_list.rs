//! The reader of lists of operations on any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| agewell_fuzz::read_operation_list(bytes));
