//! Numbers out of what was seen: functions of addresses and times, which know no disk and never panic on
//! any of them.

pub(crate) mod rotation;
pub(crate) mod seek;
pub(crate) mod statistics;
pub(crate) mod surfaces;
pub(crate) mod track;

#[cfg(test)]
mod tests;
