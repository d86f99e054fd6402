//! The file system against a plain model: random operations, damage, crashes at every moment.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "they say what they looked at")]
#![allow(
    clippy::disallowed_methods,
    reason = "how long it takes is measured, and nothing else follows"
)]

mod compare;
mod crashes;
mod damage;
mod explorer;
mod full;
mod held;
mod journal;
mod lists;
mod load;
mod model;
mod operations;
mod sequences;
