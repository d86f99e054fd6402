//! Logs that reorganise, held against what the paper shows and against plain logs.

mod bench_disk;
mod decision;
mod loads;
mod operations;
mod passes;
