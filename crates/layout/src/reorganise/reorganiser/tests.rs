//! Policies alone, over places that a test says.
