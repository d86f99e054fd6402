//! Stores written from the page of the format, read, damaged and salvaged.

mod damaged;
mod golden;
mod histories;
mod real_store;
mod rules;
mod salvaged;
mod writer;

use agewell_check::{CheckError, CheckOptions, Checked, check};

/// A check of everything.
fn checked(image: &Vec<u8>) -> Result<Checked, CheckError> {
    check(image, CheckOptions { data: true }, &mut |_, _| true)
}

/// Everything that a check found, a line each.
fn lines(checked: &Checked) -> Vec<String> {
    checked.findings.iter().map(ToString::to_string).collect()
}
