//! The reader of ext2, ext3 and ext4 images on any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| agewell_fuzz::read_ext_image(bytes));
