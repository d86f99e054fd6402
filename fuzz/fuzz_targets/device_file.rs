//! The reader of device files on any text.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| agewell_fuzz::read_device_file(bytes));
