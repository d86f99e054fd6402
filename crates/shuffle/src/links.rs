//! Forward and backward links between quanta that are accessed one after the other.
//!
//! Each quantum has one forward and one backward pointer, each with a count that saturates at 255.
//! When quantum `b` is accessed right after `a`, the forward slot of `a` sees `b` and the backward
//! slot of `b` sees `a`. A slot that sees the quantum it points to counts up; one that sees another
//! counts down, and at zero takes the other one.
//!
//! Source: Ruemmler & Wilkes 1991, §5.6 and figure 13. Ten bytes a quantum, as the report counts
//! (1.6 MB for 8 KB blocks on 1.3 GB). Left open there and chosen by us: a slot that takes a new
//! quantum starts with count 1, the traversal that it just saw; repeated access to the same quantum
//! is no traversal and changes nothing; links are carried over from one interval to the next, since
//! the count decides by itself what has gone stale.

/// Stands in a pointer that was never set.
const NO_LINK: u32 = u32::MAX;

/// The links of every quantum, as plain columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkTable {
    forward: Vec<u32>,
    forward_count: Vec<u8>,
    backward: Vec<u32>,
    backward_count: Vec<u8>,
}

impl LinkTable {
    /// A table of `quanta` quanta without links.
    #[must_use]
    pub fn new(quanta: u32) -> Self {
        let quanta = quanta as usize;
        Self {
            forward: vec![NO_LINK; quanta],
            forward_count: vec![0; quanta],
            backward: vec![NO_LINK; quanta],
            backward_count: vec![0; quanta],
        }
    }

    /// Records that `to` was accessed directly after `from`.
    #[inline]
    pub fn traverse(&mut self, from: u32, to: u32) {
        if from == to {
            return;
        }
        see(&mut self.forward[from as usize], &mut self.forward_count[from as usize], to);
        see(&mut self.backward[to as usize], &mut self.backward_count[to as usize], from);
    }

    /// The quantum that mostly follows `quantum`.
    #[must_use]
    pub fn forward(&self, quantum: u32) -> Option<u32> {
        Some(self.forward[quantum as usize]).filter(|other| *other != NO_LINK)
    }

    /// The quantum that mostly precedes `quantum`.
    #[must_use]
    pub fn backward(&self, quantum: u32) -> Option<u32> {
        Some(self.backward[quantum as usize]).filter(|other| *other != NO_LINK)
    }

    /// Count of the forward and of the backward link of `quantum`, 0 to 255.
    #[must_use]
    pub fn counts(&self, quantum: u32) -> (u8, u8) {
        (self.forward_count[quantum as usize], self.backward_count[quantum as usize])
    }
}

#[inline]
fn see(pointer: &mut u32, count: &mut u8, seen: u32) {
    if *pointer == seen {
        *count = count.saturating_add(1);
    } else {
        *count = count.saturating_sub(1);
        if *count == 0 {
            *pointer = seen;
            *count = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_recorded_at_both_ends() {
        let mut links = LinkTable::new(4);
        links.traverse(1, 2);
        assert_eq!((links.forward(1), links.backward(2)), (Some(2), Some(1)));
        assert_eq!((links.backward(1), links.forward(2)), (None, None));
    }

    #[test]
    fn counts_saturate_at_255_and_a_rival_must_wear_them_down() {
        let mut links = LinkTable::new(4);
        for _ in 0..300 {
            links.traverse(1, 2);
        }
        assert_eq!(links.counts(1), (255, 0));
        for _ in 0..254 {
            links.traverse(1, 3);
        }
        assert_eq!((links.forward(1), links.counts(1).0), (Some(2), 1));
        links.traverse(1, 3);
        assert_eq!((links.forward(1), links.counts(1).0), (Some(3), 1));
    }

    #[test]
    fn staying_on_a_quantum_is_no_traversal() {
        let mut links = LinkTable::new(2);
        links.traverse(1, 1);
        assert_eq!(links, LinkTable::new(2));
    }
}
