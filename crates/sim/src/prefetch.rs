//! Prefetching: what the host reads before anybody has asked for it (Matthews 1999, §3.7, §7.2.1).
//!
//! A policy only says which blocks of which files; the host reads those that no cache has, after the
//! request that set it off has been answered. What it costs when it is wrong is counted: disk time
//! that later requests wait for, and cache space.

mod file_graph;

pub use file_graph::FileGraph;

/// What is read ahead.
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

/// Who reads what from where: what sequential prefetching goes by.
#[derive(Debug, Clone, Default)]
pub struct Streams {
    /// The block after the one last read, file by file.
    next: Vec<u32>,
}

impl Streams {
    /// `blocks` blocks from `first` of `file` are read; whether that goes on where the file was left,
    /// or begins it.
    pub fn read(&mut self, file: u32, first: u32, blocks: u32) -> bool {
        let file = file as usize;
        if file >= self.next.len() {
            self.next.resize(file + 1, 0);
        }
        let expected = std::mem::replace(&mut self.next[file], first.saturating_add(blocks));
        first == expected || first == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_goes_on_or_begins() {
        let mut streams = Streams::default();
        assert!(streams.read(3, 0, 4));
        assert!(streams.read(3, 4, 1));
        assert!(!streams.read(3, 9, 1));
        assert!(streams.read(3, 10, 2));
        assert!(streams.read(3, 0, 1) && streams.read(3, 1, 1));
        assert!(!streams.read(1, 7, 1));
    }
}
