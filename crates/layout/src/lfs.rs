//! Log-structured writing: segments, their collection, and the policies that decide about both.

pub mod policy;
