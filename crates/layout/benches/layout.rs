//! Operations per second of the log.

fn main() {}
