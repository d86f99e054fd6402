//! Requests of file systems in user space.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| agewell_fuzz::read_fuse_request(bytes));
