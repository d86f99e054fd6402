//! The log held against slow models, crashes, published formulas and itself.

mod case;
mod operations;
mod recorder;
