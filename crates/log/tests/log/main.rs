//! The log held against slow models, crashes, published formulas and itself.

mod adaptive;
mod analytic;
mod case;
mod indifferent;
mod limit;
mod operations;
mod preloading;
mod reference;
mod restore;
mod repetition;
mod rosenblum;
mod steady;
