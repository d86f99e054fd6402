//! The Fast File System against its invariants, a slow model, and what the papers say of it.

mod invariants;
mod layout;
mod model;
mod recorder;
mod transfers;
