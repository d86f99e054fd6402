//! The store against a map of versions: random operations, reopenings, crashes at every moment.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "they say what they looked at")]
#![allow(
    clippy::disallowed_methods,
    reason = "how long it takes is measured, and nothing else follows"
)]

mod corruption;
mod crashes;
mod explorer;
mod faults;
mod golden;
mod growing;
mod grown;
mod injected;
mod learning;
mod load;
mod operations;
mod reading;
mod replay;
mod simulation;
mod together;
mod zoned;
