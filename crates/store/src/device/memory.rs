//! A disk in memory.

use std::io;
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::{Disk, Piece, check_pieces, check_range};

/// Memory is taken, given back and locked by so much; chosen by us: a lock costs nothing beside
/// copying a block, and few chunks of a store in use hold nothing.
const CHUNK_BYTES: u64 = 1 << 20;
/// Chunks whose locks are made together, when one of them is first written; chosen by us: of a disk of
/// 2 TB that holds little there are 2,000 groups.
const GROUP_CHUNKS: u64 = 1 << 10;

/// Memory of a chunk, once something was written there.
type Chunk = Option<Box<[u8]>>;
type Group = Box<[RwLock<Chunk>]>;

/// A disk in memory, of which only what was written takes any. It begins as zeros; whole chunks that
/// are discarded are given back and are zeros again, all else that is discarded stays as it was.
///
/// Threads wait for one another only within a chunk of 1 MiB; a piece within one is written whole or
/// not at all, as others see it.
#[derive(Debug)]
pub struct MemoryDisk {
    size_bytes: u64,
    groups: Vec<OnceLock<Group>>,
}

impl MemoryDisk {
    /// A disk of `size_bytes` zeros.
    #[must_use]
    pub fn new(size_bytes: u64) -> Self {
        let groups = size_bytes.div_ceil(CHUNK_BYTES * GROUP_CHUNKS);
        Self { size_bytes, groups: (0..groups).map(|_| OnceLock::new()).collect() }
    }

    /// A disk that holds `image`, and is as large.
    #[must_use]
    pub fn from_image(image: &[u8]) -> Self {
        let disk = Self::new(image.len() as u64);
        for (number, part) in (0..).zip(image.chunks(CHUNK_BYTES as usize)) {
            if part.iter().any(|byte| *byte != 0) {
                fill(&mut write_lock(disk.made(number)), part.len(), 0, part);
            }
        }
        disk
    }

    /// All that is on it.
    #[must_use]
    pub fn image(&self) -> Vec<u8> {
        let mut image = vec![0; self.size_bytes as usize];
        self.copy_to(0, &mut image);
        image
    }

    /// Fills `into` with what lies from `offset` on, which is within the disk.
    fn copy_to(&self, offset: u64, into: &mut [u8]) {
        Self::each_chunk(offset, into.len(), |number, within, range| {
            let into = &mut into[range];
            let chunk = self.chunk(number).map(read_lock);
            match chunk.as_deref().and_then(Option::as_ref) {
                Some(memory) => into.copy_from_slice(&memory[within..within + into.len()]),
                None => into.fill(0),
            }
        });
    }

    /// Memory that it takes at the moment, in bytes.
    #[must_use]
    pub fn allocated_bytes(&self) -> u64 {
        self.groups
            .iter()
            .filter_map(OnceLock::get)
            .flatten()
            .map(|chunk| read_lock(chunk).as_ref().map_or(0, |memory| memory.len() as u64))
            .sum()
    }

    /// Chunk `number`, unless nothing near it was ever written.
    fn chunk(&self, number: u64) -> Option<&RwLock<Chunk>> {
        let group = self.groups[(number / GROUP_CHUNKS) as usize].get();
        group.map(|group| &group[(number % GROUP_CHUNKS) as usize])
    }

    /// Chunk `number`, to be written.
    fn made(&self, number: u64) -> &RwLock<Chunk> {
        let group = self.groups[(number / GROUP_CHUNKS) as usize]
            .get_or_init(|| (0..GROUP_CHUNKS).map(|_| RwLock::default()).collect());
        &group[(number % GROUP_CHUNKS) as usize]
    }

    /// Length of chunk `number`: that of all others, but for the last.
    fn chunk_bytes(&self, number: u64) -> usize {
        CHUNK_BYTES.min(self.size_bytes - number * CHUNK_BYTES) as usize
    }

    /// Calls `visit` with each chunk that `bytes` bytes from `offset` on touch: its number, where in it
    /// they begin, and which of the bytes they are.
    fn each_chunk(
        offset: u64,
        bytes: usize,
        mut visit: impl FnMut(u64, usize, std::ops::Range<usize>),
    ) {
        let mut done = 0;
        while done < bytes {
            let at = offset + done as u64;
            let within = (at % CHUNK_BYTES) as usize;
            let length = (CHUNK_BYTES as usize - within).min(bytes - done);
            visit(at / CHUNK_BYTES, within, done..done + length);
            done += length;
        }
    }
}

/// Nobody panics while a chunk is half changed but by running out of memory, which ends the process.
fn read_lock(chunk: &RwLock<Chunk>) -> RwLockReadGuard<'_, Chunk> {
    chunk.read().unwrap_or_else(PoisonError::into_inner)
}

fn write_lock(chunk: &RwLock<Chunk>) -> RwLockWriteGuard<'_, Chunk> {
    chunk.write().unwrap_or_else(PoisonError::into_inner)
}

/// Puts `data` into `chunk`, of `bytes` bytes, from byte `within` on.
fn fill(chunk: &mut Chunk, bytes: usize, within: usize, data: &[u8]) {
    match chunk {
        Some(memory) => memory[within..within + data.len()].copy_from_slice(data),
        // Memory that is written all over need not be zeros first.
        None if data.len() == bytes => *chunk = Some(data.into()),
        None => {
            let mut memory = vec![0; bytes].into_boxed_slice();
            memory[within..within + data.len()].copy_from_slice(data);
            *chunk = Some(memory);
        }
    }
}

impl Disk for MemoryDisk {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        check_range(self.size_bytes, offset, into.len() as u64)?;
        self.copy_to(offset, into);
        Ok(())
    }

    fn write(&self, pieces: &[Piece<'_>]) -> io::Result<()> {
        check_pieces(self.size_bytes, pieces)?;
        for piece in pieces {
            Self::each_chunk(piece.offset, piece.data.len(), |number, within, range| {
                fill(
                    &mut write_lock(self.made(number)),
                    self.chunk_bytes(number),
                    within,
                    &piece.data[range],
                );
            });
        }
        Ok(())
    }

    fn discard(&self, offset: u64, bytes: u64) -> io::Result<()> {
        check_range(self.size_bytes, offset, bytes)?;
        let end = offset + bytes;
        let ends_with_disk = end == self.size_bytes;
        let last = if ends_with_disk { end.div_ceil(CHUNK_BYTES) } else { end / CHUNK_BYTES };
        for chunk in (offset.div_ceil(CHUNK_BYTES)..last).filter_map(|number| self.chunk(number)) {
            *write_lock(chunk) = None;
        }
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}
