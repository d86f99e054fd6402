//! The reader of UFS1 images on any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| agewell_fuzz::read_ufs_image(bytes));
