//! The importer of DiskSim parameter files on any text.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| agewell_fuzz::import_diskspecs(bytes));
