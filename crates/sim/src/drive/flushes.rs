//! Flushes: a drive that reports writes before they are on the medium has to finish them whenever
//! the layout relies on it.
//!
//! That is at every commit (`BlockDevice::commit`): from there on the layout writes over what the map
//! on disk no longer names. A disk that nothing was written to since its last flush is left alone;
//! what goes on behind is flushed by the commit after it was caught up with.

/// What has been written and not flushed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Flushes {
    is_on: bool,
    /// Whether each of the two disks has something to flush.
    written: [bool; 2],
    /// Whether the first has from what goes on behind.
    written_behind: bool,
}

impl Flushes {
    /// Flushes at every commit from here on.
    pub(super) fn begin(&mut self) {
        self.is_on = true;
    }

    /// Whether disk `number` is to be flushed, which is then taken to be done.
    pub(super) fn take(&mut self, number: usize) -> bool {
        self.is_on && std::mem::take(&mut self.written[number])
    }

    /// Disk `number` has been written to, or is being, behind the host's back.
    pub(super) fn note(&mut self, number: usize, is_behind: bool) {
        if is_behind {
            self.written_behind = true;
        } else {
            self.written[number] = true;
        }
    }

    /// What went on behind is done.
    pub(super) fn caught_up(&mut self) {
        self.written[0] |= std::mem::take(&mut self.written_behind);
    }
}
