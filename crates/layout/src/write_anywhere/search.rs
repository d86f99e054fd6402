//! Which free place is written next: a pure function of what is free and where the head is.

use super::Stripes;
use agewell_log::free_places::FreePlaces;

/// The direction in which the head searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heading {
    /// Towards the last place.
    Up,
    /// Towards the first place.
    Down,
}

/// How the next free place is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Search {
    /// The nearest in one direction until the edge of the disk, then in the other (Wang et al. 1999,
    /// after Matthews 1999, §3.6, §6.2.2).
    Sweep,
    /// The nearest in either direction (English & Stepanov 1992): short seeks, but the head may be
    /// caught among few scattered places while large free regions lie further away.
    Nearest,
    /// All holes of one stripe, then of the stripe with the most holes (after Hitz et al. 1995).
    /// Of stripes with as many the next one behind is taken.
    Stripe {
        /// Places of a stripe; at least 1.
        stripe_blocks: u32,
    },
}

/// The input of a search.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Which places are free.
    pub free: &'a FreePlaces,
    /// The same by stripe, for the search that asks for it.
    pub stripes: Option<&'a Stripes>,
    /// The place behind the last transfer.
    pub head: u32,
    /// The place written last.
    pub last_written: u32,
    /// Where the last search led.
    pub heading: Heading,
}

/// Where to write next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The free place.
    pub place: u32,
    /// From it on, places that are free too are filled in this direction.
    pub heading: Heading,
    /// First place that must not be filled by the same transfer.
    pub end: u32,
}

impl Search {
    /// The place to write next, if any is free.
    #[must_use]
    #[inline]
    pub fn choose(self, view: View) -> Option<Choice> {
        let View { free, head, .. } = view;
        let end = free.places();
        let up = |place| Choice { place, heading: Heading::Up, end };
        let down = |place| Choice { place, heading: Heading::Down, end };
        // The head stands behind the place that it passed last.
        let below = || head.checked_sub(1).and_then(|place| free.at_or_before(place));
        let above = || free.at_or_after(head);
        match self {
            Search::Sweep => match view.heading {
                Heading::Up => above().map(up).or_else(|| below().map(down)),
                Heading::Down => below().map(down).or_else(|| above().map(up)),
            },
            Search::Nearest => match (below(), above()) {
                (Some(before), Some(after)) if head - before < after - head => Some(down(before)),
                (_, Some(after)) => Some(up(after)),
                (before, None) => before.map(down),
            },
            Search::Stripe { .. } => {
                let stripes = view.stripes?;
                let stripe = stripes.next(view.last_written)?;
                let (first, end) = stripes.bounds(stripe);
                let place = free.at_or_after(first)?;
                Some(Choice { place, heading: Heading::Up, end })
            }
        }
    }
}

impl Choice {
    /// The places side by side, `most` at most, that one transfer fills: the first, and how many.
    #[must_use]
    #[inline]
    pub fn run(self, free: &FreePlaces, most: u32) -> (u32, u32) {
        let mut length = 1;
        match self.heading {
            Heading::Up => {
                let most = most.min(self.end - self.place);
                while length < most && free.is_free(self.place + length) {
                    length += 1;
                }
                (self.place, length)
            }
            Heading::Down => {
                let most = most.min(self.place + 1);
                while length < most && free.is_free(self.place - length) {
                    length += 1;
                }
                (self.place + 1 - length, length)
            }
        }
    }
}
