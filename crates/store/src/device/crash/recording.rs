//! The disk that remembers everything it was asked, and what it has recorded.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::{Disk, Piece, check_pieces, check_range};
use super::image::{Image, Source};
use super::states::{CrashState, CrashStates};
use super::{Discarded, SECTOR_BYTES};

/// What a disk was asked between two flushes, piece by piece.
#[derive(Debug, Clone)]
pub(super) enum Item {
    Write { offset: u64, data: Arc<[u8]> },
    Discard { offset: u64, bytes: u64 },
}

impl Item {
    pub(super) fn offset(&self) -> u64 {
        match self {
            Self::Write { offset, .. } | Self::Discard { offset, .. } => *offset,
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Write { data, .. } => data.len() as u64,
            Self::Discard { bytes, .. } => *bytes,
        }
    }

    pub(super) fn is_write(&self) -> bool {
        matches!(self, Self::Write { .. })
    }
}

/// An image for every way in which discarded sectors may read; one for all until something is
/// discarded.
#[derive(Debug, Clone)]
struct Variants {
    images: Vec<Image>,
}

impl Variants {
    fn of(&self, discarded: Discarded) -> &Image {
        self.images.get(discarded as usize).unwrap_or(&self.images[0])
    }

    fn enter(&mut self, item: &Item) {
        match item {
            Item::Write { offset, data } => {
                let source = Source::Bytes(Arc::clone(data), 0);
                for image in &mut self.images {
                    image.enter(*offset, data.len() as u64, &source);
                }
            }
            Item::Discard { offset, bytes } => {
                if self.images.len() == 1 {
                    self.images = vec![self.images[0].clone(); Discarded::ALL.len()];
                }
                for (image, discarded) in self.images.iter_mut().zip(Discarded::ALL) {
                    if let Some(source) = discarded.source() {
                        image.enter(*offset, *bytes, &source);
                    }
                }
            }
        }
    }
}

/// What happened between two flushes.
#[derive(Debug)]
pub(super) struct Epoch {
    /// What was on the medium before, whatever happened, for each way in which discarded sectors may
    /// read; one image if nothing had been discarded.
    pub(super) bases: Vec<Image>,
    pub(super) items: Vec<Item>,
    /// How many of all marks were made before the flush that ends it.
    pub(super) marks: usize,
}

#[derive(Debug)]
struct Recorder {
    live: Variants,
    /// What was on the medium at the last flush.
    base: Variants,
    done: Vec<Arc<Epoch>>,
    items: Vec<Item>,
    marks: Vec<u64>,
}

/// A disk in memory that remembers every write, discard, flush and mark, so that the states in which
/// a loss of power may leave it can be looked at ([`CrashDisk::recording`]).
///
/// What is discarded reads as garbage at once.
#[derive(Debug)]
pub struct CrashDisk {
    size_bytes: u64,
    seed: u64,
    recorder: Mutex<Recorder>,
}

impl CrashDisk {
    /// A disk of `size_bytes` zeros, a multiple of 512; `seed` is of what is drawn when its states are
    /// numbered.
    #[must_use]
    pub fn new(size_bytes: u64, seed: u64) -> Self {
        Self::over_image(Image::new(size_bytes), seed)
    }

    /// A disk that holds `image`, and is as large.
    #[must_use]
    pub fn from_image(image: &[u8], seed: u64) -> Self {
        let mut pages = Image::new(image.len() as u64);
        pages.enter(0, image.len() as u64, &Source::Bytes(image.into(), 0));
        Self::over_image(pages, seed)
    }

    /// A disk that begins as `state` is now: what is written from here on can be lost again.
    #[must_use]
    pub fn over(state: &CrashState, seed: u64) -> Self {
        Self::over_image(state.to_image(), seed)
    }

    fn over_image(image: Image, seed: u64) -> Self {
        let size_bytes = image.size_bytes();
        let live = Variants { images: vec![image] };
        let recorder = Recorder {
            base: live.clone(),
            live,
            done: Vec::new(),
            items: Vec::new(),
            marks: Vec::new(),
        };
        Self { size_bytes, seed, recorder: Mutex::new(recorder) }
    }

    fn recorder(&self) -> MutexGuard<'_, Recorder> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that `what` has happened, between what the disk was asked before and after.
    pub fn mark(&self, what: u64) {
        self.recorder().marks.push(what);
    }

    /// All so far. Recording goes on.
    #[must_use]
    pub fn recording(&self) -> Recording {
        let recorder = self.recorder();
        let mut epochs = recorder.done.clone();
        epochs.push(Arc::new(Epoch {
            bases: recorder.base.images.clone(),
            items: recorder.items.clone(),
            marks: recorder.marks.len(),
        }));
        let marks = recorder.marks.as_slice().into();
        Recording { size_bytes: self.size_bytes, seed: self.seed, epochs, marks }
    }

    fn enter(&self, items: impl Iterator<Item = Item>) {
        let mut recorder = self.recorder();
        for item in items {
            recorder.live.enter(&item);
            recorder.items.push(item);
        }
    }
}

/// Refuses a range that does not consist of whole sectors.
fn check_sectors(offset: u64, bytes: u64) -> io::Result<()> {
    if offset.is_multiple_of(SECTOR_BYTES) && bytes.is_multiple_of(SECTOR_BYTES) {
        return Ok(());
    }
    let message = format!("{bytes} bytes at byte {offset} are not whole sectors of 512 bytes");
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

impl Disk for CrashDisk {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        check_range(self.size_bytes, offset, into.len() as u64)?;
        self.recorder().live.of(Discarded::Garbage).read(offset, into);
        Ok(())
    }

    fn write(&self, pieces: &[Piece<'_>]) -> io::Result<()> {
        check_pieces(self.size_bytes, pieces)?;
        for piece in pieces {
            check_sectors(piece.offset, piece.data.len() as u64)?;
        }
        let filled = pieces.iter().filter(|piece| !piece.data.is_empty());
        self.enter(
            filled.map(|piece| Item::Write { offset: piece.offset, data: piece.data.into() }),
        );
        Ok(())
    }

    fn discard(&self, offset: u64, bytes: u64) -> io::Result<()> {
        check_range(self.size_bytes, offset, bytes)?;
        check_sectors(offset, bytes)?;
        self.enter((bytes > 0).then_some(Item::Discard { offset, bytes }).into_iter());
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        let recorder = &mut *self.recorder();
        let base = std::mem::replace(&mut recorder.base, recorder.live.clone());
        let items = std::mem::take(&mut recorder.items);
        let marks = recorder.marks.len();
        recorder.done.push(Arc::new(Epoch { bases: base.images, items, marks }));
        Ok(())
    }
}

/// What a [`CrashDisk`] has recorded: *epochs*, of which each ends with a flush, but for the last.
#[derive(Debug, Clone)]
pub struct Recording {
    size_bytes: u64,
    pub(super) seed: u64,
    epochs: Vec<Arc<Epoch>>,
    marks: Arc<[u64]>,
}

impl Recording {
    /// Epochs, numbered from 0.
    #[must_use]
    pub fn epochs(&self) -> usize {
        self.epochs.len()
    }

    /// Size of the disk.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// The pieces that were written and discarded in `epoch`.
    ///
    /// # Panics
    /// If there is no such epoch; so do the other methods that take one.
    #[must_use]
    pub fn items(&self, epoch: usize) -> usize {
        self.epochs[epoch].items.len()
    }

    /// What was written and discarded in `epoch`, in order: where, and what, of a discard nothing.
    pub fn pieces(&self, epoch: usize) -> impl Iterator<Item = (u64, Option<&[u8]>)> {
        self.epochs[epoch].items.iter().map(|item| match item {
            Item::Write { offset, data } => (*offset, Some(&**data)),
            Item::Discard { offset, .. } => (*offset, None),
        })
    }

    /// The marks made before the flush that ends `epoch`: what had happened when a loss of power in it
    /// came at the latest moment, just before that flush had reached the medium. Any state of the epoch
    /// is possible then, so that what a mark promises must hold in all of them.
    #[must_use]
    pub fn marks(&self, epoch: usize) -> &[u64] {
        &self.marks[..self.epochs[epoch].marks]
    }

    /// The states in which a loss of power in `epoch` may leave the disk.
    #[must_use]
    pub fn states(&self, epoch: usize) -> CrashStates {
        CrashStates::new(Arc::clone(&self.epochs[epoch]), self.seed, epoch)
    }

    /// State `number` of `epoch`.
    ///
    /// # Panics
    /// If there is no such state.
    #[must_use]
    pub fn state(&self, epoch: usize, number: u64) -> CrashState {
        self.states(epoch).state(number)
    }
}
