//! Reading one block after another, more at once the longer it goes on. A ring is read at two places in turn: where
//! it goes on, and where it begins.

use std::io;
use std::sync::{Mutex, PoisonError};

use crate::aligned::AlignedBytes;
use crate::device::{Disk, Piece};

/// Bytes that are read at once in the beginning, and at most; chosen by us: a quarter of what is always looked at,
/// and an order above what a disk reads in the time of a seek.
const FIRST_BYTES: u64 = 1 << 20;
const MOST_BYTES: u64 = 4 << 20;

/// What is on a disk before `end`, which nobody writes meanwhile.
pub(super) struct ReadAhead<'a, D> {
    disk: &'a D,
    end: u64,
    /// The one that was read last, and the one before it.
    windows: Mutex<[Window; 2]>,
}

#[derive(Default)]
struct Window {
    offset: u64,
    bytes: AlignedBytes,
}

impl Window {
    /// What was read of the bytes from `offset` on, if that is `length` bytes.
    fn get(&self, offset: u64, length: usize) -> Option<&[u8]> {
        let from = usize::try_from(offset.checked_sub(self.offset)?).ok()?;
        self.bytes.get(from..from.checked_add(length)?)
    }
}

impl<'a, D: Disk> ReadAhead<'a, D> {
    pub(super) fn new(disk: &'a D, end: u64) -> Self {
        Self { disk, end, windows: Mutex::default() }
    }
}

impl<D: Disk> Disk for ReadAhead<'_, D> {
    fn size_bytes(&self) -> u64 {
        self.disk.size_bytes()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        if windows[0].get(offset, into.len()).is_none() {
            windows.swap(0, 1);
        }
        let [window, other] = &mut *windows;
        if window.get(offset, into.len()).is_none() {
            // Twice as much where it goes on from what was read.
            let before = other.bytes.len() as u64;
            let goes_on = (other.offset..=other.offset + before).contains(&offset);
            let wanted =
                if goes_on { (2 * before).clamp(FIRST_BYTES, MOST_BYTES) } else { FIRST_BYTES };
            let length = wanted.min(self.end.saturating_sub(offset));
            window.offset = offset;
            window.bytes.set_length(length as usize);
            if self.disk.read(offset, &mut window.bytes).is_err() {
                window.bytes.set_length(0);
            }
        }
        match window.get(offset, into.len()) {
            Some(bytes) => {
                into.copy_from_slice(bytes);
                Ok(())
            }
            // What cannot be read with what is behind it may be by itself.
            None => self.disk.read(offset, into),
        }
    }

    fn write(&self, _pieces: &[Piece<'_>]) -> io::Result<()> {
        unreachable!("it is only read");
    }

    fn discard(&self, _offset: u64, _bytes: u64) -> io::Result<()> {
        unreachable!("it is only read");
    }

    fn flush(&self) -> io::Result<()> {
        unreachable!("it is only read");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Fault, FaultDisk, FaultKind, MemoryDisk, When};

    #[test]
    fn what_is_read_ahead_is_what_is_there_and_ends_where_it_ends() {
        const BLOCK: usize = 64 << 10;
        let bytes: Vec<u8> = (0..302 * BLOCK).map(|at| (at * 7 / BLOCK) as u8).collect();
        let disk = MemoryDisk::new(bytes.len() as u64);
        disk.write(&[Piece { offset: 0, data: &bytes }]).unwrap();
        // The third read of the device fails: it was one that reads ahead.
        let fault = Fault::new(FaultKind::ReadError, When::At(vec![2]));
        let disk = FaultDisk::new(disk, vec![fault], 0);
        let ahead = ReadAhead::new(&disk, 150 * BLOCK as u64);
        for block in (0..150).chain([3, 149, 20, 21, 300]) {
            let mut into = vec![0; BLOCK];
            ahead.read((block * BLOCK) as u64, &mut into).unwrap();
            assert_eq!(into[..], bytes[block * BLOCK..][..BLOCK], "block {block}");
        }
        // Sixteen blocks at first and then twice as many each time; what lies behind, by itself.
        assert!(disk.requests()[0] < 16, "{:?}", disk.requests());
    }

    #[test]
    fn two_places_are_read_in_turn_and_each_once() {
        // It counts reads, and none fails.
        let fault = Fault::new(FaultKind::ReadError, When::At(Vec::new()));
        let disk = FaultDisk::new(MemoryDisk::new(16 << 20), vec![fault], 0);
        let ahead = ReadAhead::new(&disk, 16 << 20);
        let mut into = vec![0; 4096];
        for at in 0..256 {
            ahead.read((8 << 20) + at * 4096, &mut into).unwrap();
            ahead.read(at * 4096, &mut into).unwrap();
        }
        assert_eq!(disk.requests()[0], 2);
    }
}
