//! Prefetching: what the host reads before it is requested (Matthews 1999, §3.7, §7.2.1).
//!
//! A policy only says which blocks of which files; the host reads those that no cache has, after the
//! request that set it off has been answered. What it costs when it is wrong is counted: disk time
//! that later requests wait for, and cache space.

mod file_graph;

pub use file_graph::FileGraph;

/// The blocks that are read ahead.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Prefetch {
    /// Nothing.
    None,
    /// The next blocks of a file that is read sequentially.
    Sequential {
        /// How many.
        blocks: u32,
    },
    /// What a reorganising layout has put together with a block that had to be read.
    Cluster,
    /// Files that follow the one just begun (Griffioen & Appleton 1994).
    FileGraph {
        /// Openings that a file may come later and still follow.
        lookahead: u32,
        /// Least probability.
        chance: f64,
        /// Blocks of each file, from its beginning, that are read at most.
        blocks: u32,
    },
}

/// The read position of each file, for sequential prefetching.
///
/// A file that is read on where it was left, or from its beginning, has a window of blocks ahead;
/// when the reader has come to its second half the next window is due, so that whole windows are
/// read and not single blocks.
#[derive(Debug, Clone, Default)]
pub struct Streams {
    /// The block after the one last read, and the block after those read ahead, file by file.
    files: Vec<(u32, u32)>,
}

impl Streams {
    /// `blocks` blocks from `first` of `file` are read, in windows of `window`; which blocks are
    /// worth reading ahead now.
    pub fn read(
        &mut self,
        file: u32,
        first: u32,
        blocks: u32,
        window: u32,
    ) -> std::ops::Range<u32> {
        let file = file as usize;
        if file >= self.files.len() {
            self.files.resize(file + 1, (0, 0));
        }
        let (expected, ahead) = &mut self.files[file];
        let end = first.saturating_add(blocks);
        let goes_on = first == *expected || first == 0;
        if !goes_on || first == 0 {
            *ahead = 0;
        }
        *expected = end;
        if !goes_on || end.saturating_add(window / 2) <= *ahead {
            return 0..0;
        }
        let from = end.max(*ahead);
        *ahead = from.saturating_add(window);
        from..*ahead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_windows_are_read_ahead_of_who_goes_on() {
        let mut streams = Streams::default();
        assert_eq!(streams.read(3, 0, 4, 8), 4..12);
        assert_eq!(streams.read(3, 4, 3, 8), 0..0);
        assert_eq!(streams.read(3, 7, 2, 8), 12..20, "the second half of the window begins");
        assert_eq!(streams.read(3, 30, 1, 8), 0..0, "elsewhere");
        assert_eq!(streams.read(3, 31, 2, 8), 33..41, "and on from there");
        assert_eq!(streams.read(3, 0, 1, 8), 1..9, "from the beginning again");
        assert_eq!(streams.read(1, 7, 1, 8), 0..0);
    }
}
