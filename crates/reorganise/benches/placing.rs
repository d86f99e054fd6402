//! Files placed a second.
fn main() {}
