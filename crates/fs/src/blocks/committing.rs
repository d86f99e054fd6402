//! What operations have changed handed over, as one transaction of the store: data whole, nodes whole or as changes in
//! the journal.

use agewell_store::Transaction;
use agewell_store::device::Disk;

use super::{Blocks, NumberSet};
use crate::FsError;
use crate::format::SUPERBLOCK;
use crate::journal::{self, Batch, Placed, Placement};
use crate::seeded::{SeededFault, is_seeded};
use crate::traced::Asked;

impl<D: Disk> Blocks<D> {
    /// Hands what waits to the store, as one transaction.
    pub(crate) fn commit(&mut self) -> Result<(), FsError> {
        if self.is_clean() {
            return Ok(());
        }
        let journaled = self.journal_changes()?;
        let mut writes: Vec<(u32, &[u8])> =
            self.data.iter().map(|(number, data)| (*number, &**data)).collect();
        // Data in the order of its numbers, in which it will be read; then what describes it.
        writes.sort_unstable_by_key(|write| write.0);
        let in_journal: NumberSet<u32> =
            journaled.iter().flat_map(|(batch, _)| batch.nodes()).collect();
        let whole = self.changed_nodes.iter().filter(|number| !in_journal.contains(number));
        writes.extend(whole.map(|number| (*number, &*self.nodes[number].bytes)));
        let in_journal = journaled.iter().flat_map(|(_, placed)| &placed.blocks);
        writes.extend(in_journal.map(|(number, block)| (*number, &**block)));
        let mut frees: Vec<u32> = self.freed.iter().copied().collect();
        frees.sort_unstable();
        let traces = self.traced.borrow().is_some();
        let asked: Vec<u32> = writes.iter().filter(|_| traces).map(|write| write.0).collect();
        let freed = if traces { frees.clone() } else { Vec::new() };
        if is_seeded(SeededFault::DataAfterMetadata) {
            let (data, nodes): (Vec<_>, Vec<_>) =
                writes.into_iter().partition(|write| self.data.contains_key(&write.0));
            self.store.write(&Transaction { writes: nodes, frees })?;
            self.store.write(&Transaction { writes: data, frees: Vec::new() })?;
        } else if is_seeded(SeededFault::FreedFirst) {
            self.store.write(&Transaction { writes: Vec::new(), frees })?;
            self.store.write(&Transaction { writes, frees: Vec::new() })?;
        } else {
            self.store.write(&Transaction { writes, frees })?;
        }
        self.trace(Asked::Free, freed);
        self.trace(Asked::Write, asked);
        self.is_unsynced = true;
        if let Some((batch, placed)) = journaled {
            self.journal.took(batch, placed);
        }
        self.handed_over();
        Ok(())
    }

    /// Nothing waits any more.
    fn handed_over(&mut self) {
        for number in self.changed_nodes.drain(..) {
            let node = self.nodes.get_mut(&number).expect("it was just written");
            (node.is_changed, node.before) = (false, None);
        }
        let spare_max = self.store.transaction_blocks_max() as usize;
        for (number, data) in self.data.drain() {
            let is_partial = self.partial.remove(&number);
            let data = if is_partial { self.recent.keep(number, data) } else { Some(data) };
            if self.spare.len() < spare_max {
                self.spare.extend(data);
            }
        }
        self.partial.clear();
        self.freed.clear();
        self.fresh.clear();
        self.steps.clear();
        self.noted.clear();
        self.drop_nodes();
    }

    /// What of the changed nodes is to come to the journal, and where; nothing if they are better written whole.
    /// If there is no room for it, the journal is emptied first.
    fn journal_changes(&mut self) -> Result<Option<(Batch, Placed)>, FsError> {
        if !self.journal.is_there() {
            return Ok(None);
        }
        loop {
            let batch = self.batch();
            let whole = self.changed_nodes.len() - batch.nodes().len();
            let placed = self.journal.place(&batch, whole > 0 || !self.freed.is_empty());
            let placed = placed.filter(|placed| {
                self.data.len() + whole + placed.blocks.len() <= self.transaction_blocks()
            });
            match placed {
                Some(placed) if self.journal.is_dear(&batch, &placed) => return Ok(None),
                Some(placed) => return Ok(Some((batch, placed))),
                None if self.journal.is_empty() => return Ok(None),
                None => self.checkpoint(self.placement())?,
            }
        }
    }

    /// Where nodes go at a checkpoint: on a disk they are read together later, and as many writes here and there would
    /// take as long as making room does.
    fn placement(&self) -> Placement {
        if self.store.has_arm() { Placement::Together } else { Placement::Anywhere }
    }

    /// What the journal would be told.
    fn batch(&self) -> Batch {
        let mut batch = Batch::default();
        let of_tree = self.changed_nodes.iter().filter(|number| **number != SUPERBLOCK);
        let changed = || of_tree.clone().filter(|number| self.nodes[number].before.is_some());
        // One by itself is as well written whole, if the journal need not know.
        let is_worth_it = !self.journal.is_empty() || changed().nth(1).is_some();
        if !is_worth_it {
            return batch;
        }
        for number in of_tree.clone() {
            let node = &self.nodes[number];
            let is_said = node.before.as_ref().is_some_and(|before| {
                self.journal.change(&mut batch, *number, before, &node.bytes)
            });
            if !is_said {
                self.journal.forget(&mut batch, *number);
            }
        }
        for number in self.freed.iter().chain(self.data.keys()) {
            self.journal.forget(&mut batch, *number);
        }
        batch
    }

    /// Has the store have all nodes as they were handed over: the journal is empty then.
    pub(crate) fn checkpoint(&mut self, placement: Placement) -> Result<(), FsError> {
        if self.journal.is_empty() {
            return Ok(());
        }
        let (mut nodes, freed) = (self.journal.nodes(), self.journal.used());
        journal::write_nodes(&self.store, &mut nodes, freed.clone(), placement)?;
        self.trace(Asked::Free, freed);
        self.trace(Asked::Write, nodes.iter().map(|(number, _)| *number));
        self.journal.clear();
        self.is_unsynced = true;
        Ok(())
    }
}
