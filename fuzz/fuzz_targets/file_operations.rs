//! The reader of file operations in Parquet on any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| agewell_fuzz::read_file_operations(bytes));
