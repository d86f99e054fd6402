//! The decision by gain against the value alone.
