//! Every layout of blocks held against a disk that remembers.

mod case;
mod kinds;
mod properties;
mod shadow;
