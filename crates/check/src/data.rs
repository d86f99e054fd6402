//! The data of blocks, held against their short sums.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::checksum::short_sum;
use crate::geometry::Geometry;
use crate::image::Image;

/// Bytes that are read at once; chosen by us: an order above what a disk reads in the time of a seek.
const READ_BYTES: u32 = 1 << 20;

/// Reads that are under way before the caller hears of it; chosen by us: more than there are processors.
const READS_AT_ONCE: usize = 64;

/// A block that lies somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lying {
    pub(crate) slot: u32,
    pub(crate) block: u32,
    pub(crate) short_sum: u32,
}

/// What became of reading a block.
pub(crate) enum Read<'a> {
    /// Its data, which match its sum.
    Intact(&'a [u8]),
    /// It does not match its sum.
    Differs,
    /// It cannot be read, and why.
    Unreadable(String),
}

impl Lying {
    fn read<'a>(&self, geometry: &Geometry, data: &'a [u8]) -> Read<'a> {
        let sum = short_sum(&geometry.uuid, self.block, self.slot, data);
        if sum == self.short_sum { Read::Intact(data) } else { Read::Differs }
    }
}

/// Blocks of `sorted`, which is in order of slots, that are read at once.
fn windows<'a>(geometry: &Geometry, sorted: &'a [Lying]) -> Vec<&'a [Lying]> {
    let blocks = (READ_BYTES / geometry.block_bytes).max(1);
    sorted.chunk_by(|one, next| one.slot / blocks == next.slot / blocks).collect()
}

/// Reads the blocks of a window one way or another, each in turn.
pub(crate) fn read_window<I: Image + ?Sized, T>(
    image: &I,
    geometry: &Geometry,
    window: &[Lying],
    mut with: impl FnMut(&Lying, Read<'_>) -> T,
) -> Vec<T> {
    let (Some(first), Some(last)) = (window.first(), window.last()) else { return Vec::new() };
    let blocks = u64::from(last.slot - first.slot) + 1;
    let whole = geometry.read(image, geometry.slot_address(first.slot), blocks);
    let block_bytes = geometry.block_bytes as usize;
    let each = window.iter().map(|one| match &whole {
        Ok(data) => {
            let at = (one.slot - first.slot) as usize * block_bytes;
            with(one, one.read(geometry, &data[at..at + block_bytes]))
        }
        // One that cannot be read must not hide its neighbours.
        Err(_) => match geometry.read(image, geometry.slot_address(one.slot), 1) {
            Ok(data) => with(one, one.read(geometry, &data)),
            Err(why) => with(one, Read::Unreadable(why.to_string())),
        },
    });
    each.collect()
}

/// What is wrong with the data of which blocks, in order of slots; `None` where `go_on` says to stop. It is
/// called with how many blocks have been read.
pub(crate) fn verify<I: Image + ?Sized>(
    image: &I,
    geometry: &Geometry,
    sorted: &[Lying],
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Option<Vec<(Lying, String)>> {
    let problem = |one: &Lying, read: Read<'_>| match read {
        Read::Intact(_) => None,
        Read::Differs => Some((*one, "its data does not match its short sum".to_owned())),
        Read::Unreadable(why) => Some((*one, format!("its data cannot be read: {why}"))),
    };
    let of_window = |window: &&[Lying]| {
        read_window(image, geometry, window, problem).into_iter().flatten().collect::<Vec<_>>()
    };
    let mut found = Vec::new();
    let mut done = 0;
    for batch in windows(geometry, sorted).chunks(READS_AT_ONCE) {
        found.extend(each_at_once(batch, of_window).into_iter().flatten());
        done += batch.iter().map(|window| window.len() as u64).sum::<u64>();
        if !go_on(done) {
            return None;
        }
    }
    Some(found)
}

/// What `of` makes of each, in their order, by as many threads as there are processors.
fn each_at_once<T: Sync, R: Send>(all: &[T], of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    if all.len() <= 1 || processors == 1 {
        return all.iter().map(of).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = all.get(index) else { return done };
            done.push((index, of(one)));
        }
    };
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        let others: Vec<_> = (1..processors.min(all.len())).map(|_| scope.spawn(work)).collect();
        let mut done = work();
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_unstable_by_key(|&(index, _)| index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Reads the blocks of `sorted`, which is in order of slots, one after another; whether it came to the end.
pub(crate) fn read_each<I: Image + ?Sized, E>(
    image: &I,
    geometry: &Geometry,
    sorted: &[Lying],
    mut with: impl FnMut(&Lying, Read<'_>) -> Result<(), E>,
    mut go_on: impl FnMut(u64) -> bool,
) -> Result<bool, E> {
    let mut done = 0;
    for window in windows(geometry, sorted) {
        for one in read_window(image, geometry, window, &mut with) {
            one?;
        }
        done += window.len() as u64;
        if !go_on(done) {
            return Ok(false);
        }
    }
    Ok(true)
}
