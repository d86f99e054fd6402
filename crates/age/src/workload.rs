//! Where aging workloads come from, and their files.
