//! The log held against slow models, crashes, published formulas and itself.

mod analytic;
mod case;
mod operations;
mod recorder;
mod reference;
mod repetition;
