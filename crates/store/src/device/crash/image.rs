//! The bytes of a disk as a tree of pages, of which copies share all that is the same.
//!
//! A copy costs eight bytes for each 256 KiB of the disk, and the first write to any of those 1.5 KiB
//! more. Pages are parts of what was written: nothing is copied but at ragged ends.

use std::sync::{Arc, OnceLock};

use rand_core::Rng;

use agewell_core::RandomStreams;

/// The unit that images share; chosen by us: the block of most stores.
pub(super) const PAGE_BYTES: u64 = 4096;
/// Pages of a node; chosen by us, so that a copy of an image of 64 MiB and one of a node cost alike.
const NODE_PAGES: u64 = 64;

/// What discarded or torn sectors hold when they hold garbage, page after page: random bytes, of
/// which nothing can be a record.
pub(super) fn garbage() -> &'static Arc<[u8]> {
    static GARBAGE: OnceLock<Arc<[u8]>> = OnceLock::new();
    GARBAGE.get_or_init(|| {
        let mut bytes = vec![0; PAGE_BYTES as usize];
        RandomStreams::new(0).stream("garbage").fill_bytes(&mut bytes);
        bytes.into()
    })
}

/// What lies somewhere.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// What was written: these bytes, from that one on.
    Bytes(Arc<[u8]>, usize),
    Zeros,
    Garbage,
}

impl Source {
    /// Fills `into`, whose first byte lies at byte `offset` of the disk.
    pub(super) fn copy_to(&self, offset: u64, into: &mut [u8]) {
        match self {
            Self::Bytes(bytes, at) => into.copy_from_slice(&bytes[*at..*at + into.len()]),
            Self::Zeros => into.fill(0),
            Self::Garbage => {
                let (mut done, mut at) = (0, (offset % PAGE_BYTES) as usize);
                while done < into.len() {
                    let length = (PAGE_BYTES as usize - at).min(into.len() - done);
                    into[done..done + length].copy_from_slice(&garbage()[at..at + length]);
                    (done, at) = (done + length, 0);
                }
            }
        }
    }

    /// The same from `bytes` bytes on.
    pub(super) fn skip(&self, bytes: u64) -> Self {
        match self {
            Self::Bytes(whole, at) => Self::Bytes(Arc::clone(whole), at + bytes as usize),
            other => other.clone(),
        }
    }
}

/// A page within something that was written.
#[derive(Debug, Clone)]
struct Page {
    bytes: Arc<[u8]>,
    at: usize,
}

/// Pages that lie side by side; zeros where there is none.
type Node = [Option<Page>; NODE_PAGES as usize];

/// The bytes of a disk.
#[derive(Debug, Clone)]
pub(super) struct Image {
    size_bytes: u64,
    nodes: Vec<Option<Arc<Node>>>,
}

impl Image {
    /// Zeros.
    pub(super) fn new(size_bytes: u64) -> Self {
        let nodes = size_bytes.div_ceil(PAGE_BYTES * NODE_PAGES) as usize;
        Self { size_bytes, nodes: vec![None; nodes] }
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn page(&self, number: u64) -> Option<&[u8]> {
        let node = self.nodes[(number / NODE_PAGES) as usize].as_ref()?;
        let page = node[(number % NODE_PAGES) as usize].as_ref()?;
        Some(&page.bytes[page.at..page.at + PAGE_BYTES as usize])
    }

    fn page_mut(&mut self, number: u64) -> &mut Option<Page> {
        let node = &mut self.nodes[(number / NODE_PAGES) as usize];
        let node = node.get_or_insert_with(|| Arc::new([const { None }; NODE_PAGES as usize]));
        &mut Arc::make_mut(node)[(number % NODE_PAGES) as usize]
    }

    /// Fills `into` with what lies from `offset` on.
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) {
        let mut done = 0;
        while done < into.len() {
            let at = offset + done as u64;
            let within = (at % PAGE_BYTES) as usize;
            let length = (PAGE_BYTES as usize - within).min(into.len() - done);
            let part = &mut into[done..done + length];
            match self.page(at / PAGE_BYTES) {
                Some(page) => part.copy_from_slice(&page[within..within + length]),
                None => part.fill(0),
            }
            done += length;
        }
    }

    /// Enters `bytes` bytes of `source` from `offset` on.
    pub(super) fn enter(&mut self, offset: u64, bytes: u64, source: &Source) {
        let mut done = 0;
        while done < bytes {
            let at = offset + done;
            let within = at % PAGE_BYTES;
            let length = (PAGE_BYTES - within).min(bytes - done);
            let part = source.skip(done);
            if length < PAGE_BYTES {
                let mut whole = vec![0; PAGE_BYTES as usize];
                if let Some(page) = self.page(at / PAGE_BYTES) {
                    whole.copy_from_slice(page);
                }
                part.copy_to(at, &mut whole[within as usize..(within + length) as usize]);
                *self.page_mut(at / PAGE_BYTES) = Some(Page { bytes: whole.into(), at: 0 });
            } else {
                *self.page_mut(at / PAGE_BYTES) = match part {
                    Source::Bytes(bytes, at) => Some(Page { bytes, at }),
                    Source::Zeros => None,
                    Source::Garbage => Some(Page { bytes: Arc::clone(garbage()), at: 0 }),
                };
            }
            done += length;
        }
    }
}
