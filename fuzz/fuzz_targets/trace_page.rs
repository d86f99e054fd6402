//! Pages of the kernel's trace buffer, whatever is in them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| agewell_fuzz::read_trace_page(bytes));
