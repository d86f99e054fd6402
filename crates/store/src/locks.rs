//! The locks of a store, and the order in which they are taken.
//!
//! 1. *commit*: who waits for a flush, and whether someone carries one out. Held for a look at it.
//! 2. *medium*: what is written, and in which order. Whoever holds it may read, write and flush.
//! 3. *front*: the engine, and what it has planned. No input or output, ever.
//! 4. *damaged*: the blocks that are known to be damaged.
//!
//! What takes long without input or output, the rehearsals of the mechanisms, holds none: they have a copy.
//!
//! How the store is divided, and the short sums, are looked at without a lock: who holds the medium has them
//! grow, and nobody takes away what there was.
//!
//! A lock is never waited for by who holds one further down. Reading takes the third, for a moment, and
//! the second only if what it has read is not what it should be.

#[cfg(feature = "model-checked")]
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(feature = "model-checked"))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

/// Takes `mutex`.
///
/// # Panics
/// If a thread that held it has panicked, which is a bug: what it left may be torn.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("whoever held it has not failed")
}
