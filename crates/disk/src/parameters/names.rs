//! Choices by their names in device files.

use agewell_config::{Choice, choice};

/// One of `all`, by name.
pub(super) fn one_of<T: Copy>(all: &[(T, &'static str)]) -> Choice<T> {
    choice(&all.iter().map(|(value, name)| (*name, *value)).collect::<Vec<_>>())
}

/// What `all` calls `value`, which is among them.
pub(super) fn name_of<T: Copy + PartialEq>(all: &[(T, &'static str)], value: T) -> &'static str {
    all.iter().find(|(each, _)| *each == value).expect("every choice is in its list").1
}
