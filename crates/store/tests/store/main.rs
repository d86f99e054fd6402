//! The store against a map of versions: random operations, reopenings, crashes at every moment.

mod corruption;
mod crashes;
mod explorer;
mod faults;
mod injected;
mod load;
mod operations;
mod replay;
mod simulation;
