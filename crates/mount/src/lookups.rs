//! How often the kernel has been told of an inode: when it has forgotten as often, nobody has it any more.
//!
//! Nearly all are known once or not at all, which a bit says; the few others are counted.

use std::collections::HashMap;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Lookups {
    /// A bit for each of 64 inodes that follow one another.
    known: HashMap<u64, u64>,
    /// Of those that are known more than once: how often more.
    more: HashMap<u64, u64>,
}

impl Lookups {
    /// The kernel is told of `inode`.
    pub(crate) fn tell(&mut self, inode: u64) {
        let bits = self.known.entry(inode / 64).or_default();
        let bit = 1 << (inode % 64);
        if *bits & bit == 0 {
            *bits |= bit;
        } else {
            *self.more.entry(inode).or_default() += 1;
        }
    }

    /// The kernel forgets `count` times; whether it does not know the inode any more.
    pub(crate) fn forget(&mut self, inode: u64, count: u64) -> bool {
        let more = self.more.get(&inode).copied().unwrap_or(0);
        if count <= more {
            if count == more {
                self.more.remove(&inode);
            } else {
                self.more.insert(inode, more - count);
            }
            return false;
        }
        self.more.remove(&inode);
        if let Some(bits) = self.known.get_mut(&(inode / 64)) {
            *bits &= !(1 << (inode % 64));
            if *bits == 0 {
                self.known.remove(&(inode / 64));
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inode_is_forgotten_when_it_was_forgotten_as_often_as_it_was_told() {
        let mut lookups = Lookups::default();
        for inode in [5, 69, 70] {
            for told in 1..5 {
                (0..told).for_each(|_| lookups.tell(inode));
                for forgotten in 1..told {
                    assert!(!lookups.forget(inode, 1), "{forgotten} of {told}");
                }
                assert!(lookups.forget(inode, 1));
                (0..told).for_each(|_| lookups.tell(inode));
                assert!(lookups.forget(inode, told));
            }
        }
        assert!(lookups.known.is_empty() && lookups.more.is_empty());
    }
}
