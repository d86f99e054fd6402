//! Layout metrics of a snapshot.
