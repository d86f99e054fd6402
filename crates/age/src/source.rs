//! Where snapshots come from: mounted file systems and images.
