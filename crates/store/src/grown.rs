//! What a store adds as it grows, and never takes away: whoever has a part keeps it, and nobody waits to look.

use std::sync::OnceLock;

/// The first part, and those that have come since.
#[derive(Debug)]
pub(crate) struct Grown<T> {
    part: T,
    more: OnceLock<Box<Grown<T>>>,
}

impl<T> Grown<T> {
    pub(crate) fn new(part: T) -> Self {
        Self { part, more: OnceLock::new() }
    }

    /// All parts, the first one first.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &T> {
        self.links().map(|link| &link.part)
    }

    /// The part that came last.
    pub(crate) fn last(&self) -> &T {
        &self.last_link().part
    }

    /// Adds a part; one thread at a time does.
    pub(crate) fn add(&self, part: T) {
        let added = self.last_link().more.set(Box::new(Self::new(part)));
        assert!(added.is_ok(), "one thread at a time has a store grow");
    }

    fn links(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |link| link.more.get().map(Box::as_ref))
    }

    fn last_link(&self) -> &Self {
        self.links().last().expect("there is a first one")
    }
}
