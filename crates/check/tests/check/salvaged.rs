//! What is intact is copied out, and what is lost is named.
