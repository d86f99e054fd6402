//! The reader of stores: an image with blocks changed, its checksums made right again or not.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| agewell_fuzz::read_store(bytes));
