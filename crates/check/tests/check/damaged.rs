//! Damage is detected and named, or has no effect; whatever the bytes are, a check ends.
