//! What a client has still to do: steps planned a job at a time.
//!
//! Invariant: steps come out in the order in which they went in. Cost: O(1) a step; the memory of
//! the longest job, which is kept.

use std::collections::VecDeque;

use agewell_core::FileAction;

use super::clients::{Step, Transfer};
use super::file_table::FileTable;

/// Steps of one client, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Agenda {
    steps: VecDeque<Step>,
    pace_ns: u64,
}

impl Agenda {
    /// An empty agenda of a client that makes a request every `pace_ns`.
    pub(super) fn new(pace_ns: u64) -> Self {
        Self { steps: VecDeque::new(), pace_ns }
    }

    /// The next step, if one is planned.
    pub(super) fn next(&mut self) -> Option<Step> {
        self.steps.pop_front()
    }

    /// Plans any step.
    pub(super) fn plan(&mut self, step: Step) {
        self.steps.push_back(step);
    }

    /// Plans to read or write `blocks` of `file` from `block` on; none is nothing to do.
    pub(super) fn transfer(&mut self, action: FileAction, file: u32, block: u32, blocks: u32) {
        if blocks > 0 {
            let pace_ns = self.pace_ns;
            self.plan(Step::Transfer(Transfer { action, file, block, blocks, pace_ns }));
        }
    }

    /// Plans to read all of `file`, front to back.
    pub(super) fn read_whole(&mut self, files: &FileTable, file: u32) {
        self.transfer(FileAction::Read, file, 0, files.blocks(file));
    }

    /// Plans to write all of `file`, front to back.
    pub(super) fn write_whole(&mut self, files: &FileTable, file: u32) {
        self.transfer(FileAction::Write, file, 0, files.blocks(file));
    }

    /// Plans to make `file` again under its name: it is emptied, then written as a whole.
    pub(super) fn replace(&mut self, files: &FileTable, file: u32) {
        self.plan(Step::Empty(file));
        self.write_whole(files, file);
    }
}
