//! Where blocks are written, decided by somebody else: the seam for policies from outside.

use std::fmt::Debug;

use super::search::{Choice, View};

/// Chooses the place that is written next.
pub trait Allocator: Debug + Send + Sync {
    /// What it is called in results.
    fn name(&self) -> String;

    /// A free place, and in which direction the free ones beside it are filled; none leaves the choice to
    /// the search of the setting.
    fn choose(&mut self, view: View<'_>) -> Option<Choice>;

    /// One that goes on from what this one has learnt.
    fn copied(&self) -> Box<dyn Allocator>;
}

/// An allocator, if there is one, that is copied with its layout.
#[derive(Debug, Default)]
pub(super) struct Outside(pub(super) Option<Box<dyn Allocator>>);

impl Clone for Outside {
    fn clone(&self) -> Self {
        Self(self.0.as_ref().map(|allocator| allocator.copied()))
    }
}
