//! Leaves that are read one behind another, as those of the files of a directory are: then those behind them
//! are read ahead, in requests that are sent together.

use std::ops::Range;

/// Leaves that were read lately and are remembered; chosen by us: a directory's entries and the files of a few
/// directories are walked at the same time.
const REMEMBERED: usize = 16;

/// Two leaves of a node are read one behind another if they are at most so far apart; chosen by us: what lies
/// between may be in memory.
const STEP_MAX: u32 = 4;

/// Leaves that are read ahead at most; chosen by us: as many requests as disks take at a time
/// (NCQ: 32, Serial ATA Revision 3.0, 13.6).
const AHEAD_MAX: u32 = 32;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct LeavesAhead {
    /// The node above each, which of its children it is, and how many were read in a row before it.
    read: [(u32, u32, u32); REMEMBERED],
    /// The one that is forgotten next.
    oldest: usize,
}

impl LeavesAhead {
    /// The child `at` of the node `above`, of which there are `children`, is not in memory: the children, from it
    /// on, that are worth reading with it; none if it is read by itself.
    pub(crate) fn worth_reading(&mut self, above: u32, at: u32, children: u32) -> Range<u32> {
        let is_before =
            |of: u32, before: u32| of == above && before < at && at - before <= STEP_MAX;
        let found = self.read.iter().position(|&(of, before, _)| is_before(of, before));
        let Some(found) = found else {
            self.read[self.oldest] = (above, at, 0);
            self.oldest = (self.oldest + 1) % REMEMBERED;
            return at..at;
        };
        let in_row = (self.read[found].2 + 1).min(AHEAD_MAX);
        self.read[found] = (above, at, in_row);
        // Few at first: what is read in vain costs as well.
        at..children.min(at + (2 << in_row.min(4)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_in_a_row_is_read_ahead_more_and_more() {
        let mut leaves = LeavesAhead::default();
        let far: Vec<u32> =
            (10..17).map(|at| leaves.worth_reading(5, at, 100).len() as u32).collect();
        assert_eq!(far, [0, 4, 8, 16, AHEAD_MAX, AHEAD_MAX, AHEAD_MAX]);
        // Not beyond the node.
        assert_eq!(leaves.worth_reading(5, 17, 20), 17..20);
        assert_eq!(leaves.worth_reading(5, 19, 20), 19..20);
    }

    #[test]
    fn several_rows_are_followed_at_once_and_no_others() {
        let mut leaves = LeavesAhead::default();
        for step in 0..5 {
            for row in 0..8 {
                let range = leaves.worth_reading(row, 10 + 2 * step, 100);
                assert_eq!(range.is_empty(), step == 0, "row {row}, step {step}");
            }
        }
        let mut leaves = LeavesAhead::default();
        for at in [50, 40, 30, 35, 60, 65, 45] {
            assert!(leaves.worth_reading(1, at, 100).is_empty(), "{at}");
        }
    }
}
