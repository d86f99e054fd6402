//! The store against a map of versions: random operations, reopenings, crashes at every moment.

mod crashes;
mod explorer;
mod load;
mod operations;
mod simulation;
