//! Rules of the format, one by one.
