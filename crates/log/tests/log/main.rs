//! The log held against slow models, crashes, published formulas and itself.

mod adaptive;
mod analytic;
mod case;
mod indifferent;
mod limit;
mod operations;
mod outside;
mod parts;
mod preloading;
mod reference;
mod repetition;
mod restore;
mod rosenblum;
mod steady;
mod sweeps;
mod whole_syncs;
