//! The drive's segmented buffer and its stream of read-ahead.

use super::platter::{Platter, Position};
use crate::parameters::{BufferParameters, KeepRequested, ReadAhead};

/// Contiguous blocks held by the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Segment {
    pub(super) start: u64,
    pub(super) end: u64,
    /// When it was last used, in requests; 0 for never.
    used: u64,
    /// Whether it holds written data.
    pub(super) written: bool,
    /// Most sectors that it holds.
    room: u64,
}

/// Read-ahead under way: the heads are where `position` says, about to read `next`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stream {
    pub(super) segment: usize,
    pub(super) next: u64,
    pub(super) limit: u64,
    pub(super) position: Position,
}

impl Segment {
    /// Reaches up to `end`, holding the last `room` blocks at most.
    #[inline]
    fn reach(&mut self, end: u64) {
        self.end = self.end.max(end);
        self.start = self.start.max(self.end.saturating_sub(self.room));
    }
}

impl Stream {
    /// The same stream brought up to `now`.
    #[inline]
    pub(super) fn advanced(self, platter: &Platter, now: u64) -> Stream {
        let mut stream = self;
        if stream.next >= stream.limit || stream.position.free >= now {
            return stream;
        }
        platter.sweep(
            self.position,
            self.next,
            self.limit,
            false,
            |_, _, _| 0,
            |stretch| {
                let passed = platter.passed_by(&stretch, now);
                if passed == 0 {
                    return false;
                }
                stream.next = stretch.first + passed;
                stream.position = Position {
                    cylinder: stretch.cylinder,
                    head: stretch.head,
                    free: platter.passed(&stretch, passed),
                };
                passed == stretch.blocks
            },
        );
        stream
    }
}

#[derive(Debug, Clone)]
pub(super) struct Buffer {
    pub(super) segments: Vec<Segment>,
    pub(super) stream: Option<Stream>,
    capacity: u64,
    uses: u64,
    /// Segment for writes only, if one is set aside: always the last.
    dedicated: bool,
    write_segments: usize,
}

impl Buffer {
    pub(super) fn new(parameters: &BufferParameters) -> Self {
        let segments = if parameters.caching { parameters.segments as usize } else { 0 };
        Self {
            segments: vec![Segment::default(); segments],
            stream: None,
            capacity: parameters.segment_sectors,
            uses: 0,
            dedicated: parameters.dedicated_write_segment && segments > 1,
            write_segments: parameters.write_segments as usize,
        }
    }

    /// Segment number `index` when its read-ahead, if there is one, has got as far as `stream`.
    #[inline]
    pub(super) fn segment_at(&self, index: usize, stream: Option<&Stream>) -> Segment {
        let mut segment = self.segments[index];
        if let Some(stream) = stream.filter(|stream| stream.segment == index) {
            segment.reach(stream.next);
        }
        segment
    }

    /// The segment that holds `block` when the read-ahead has got as far as `stream`; if `almost`, also that in which
    /// it is the next to be read ahead.
    #[inline]
    pub(super) fn find(&self, block: u64, stream: Option<&Stream>, almost: bool) -> Option<usize> {
        let holds = |index: &usize| {
            let segment = self.segment_at(*index, stream);
            segment.start <= block && block < segment.end
        };
        (0..self.segments.len()).find(holds).or_else(|| {
            stream
                .filter(|stream| almost && stream.next == block && stream.next < stream.limit)
                .map(|stream| stream.segment)
        })
    }

    /// Where the read-ahead has got to at `now`.
    #[inline]
    pub(super) fn stream_at(&self, platter: &Platter, now: u64) -> Option<Stream> {
        self.stream.map(|stream| stream.advanced(platter, now))
    }

    /// Marks `segment` as the most recently used.
    #[inline]
    pub(super) fn touch(&mut self, segment: usize) {
        self.uses += 1;
        self.segments[segment].used = self.uses;
    }

    /// Brings the stream's segment up to `now`.
    #[inline]
    pub(super) fn drain(&mut self, platter: &Platter, now: u64) {
        let Some(stream) = self.stream_at(platter, now) else { return };
        self.grow(stream.segment, stream.next);
        // A stream that has reached its limit stays, to say where the heads are.
        self.stream = Some(stream);
    }

    /// Lets `segment` reach up to `end`, dropping its oldest blocks if it is full.
    #[inline]
    pub(super) fn grow(&mut self, segment: usize, end: u64) {
        self.segments[segment].reach(end);
    }

    /// The segment to read `start..end` into: the least recently used one that is not set aside for writes.
    #[inline]
    pub(super) fn claim_for_read(&mut self, start: u64, end: u64) -> Option<usize> {
        let count = self.segments.len() - usize::from(self.dedicated && !self.segments.is_empty());
        let segment = (0..count).min_by_key(|index| self.segments[*index].used)?;
        self.fill(segment, start, end, false);
        Some(segment)
    }

    /// The segment of a read that goes on at `start`, where the data of an earlier read end; it takes over the room of all
    /// others, and what they hold is dropped.
    pub(super) fn widen_for_stream(&mut self, start: u64, end: u64) -> Option<usize> {
        let goes_on = |segment: &Segment| {
            !segment.written && segment.start < segment.end && segment.end == start
        };
        let found = self.segments.iter().position(goes_on)?;
        let room = self.capacity * self.segments.len() as u64;
        for (index, segment) in self.segments.iter_mut().enumerate() {
            if index == found {
                segment.room = room;
            } else {
                segment.end = segment.start;
            }
        }
        self.grow(found, end);
        self.touch(found);
        Some(found)
    }

    /// Most sectors that `segment` holds.
    pub(super) fn room(&self, segment: usize) -> u64 {
        self.segments[segment].room
    }

    /// The segment to write `start..end` into.
    #[inline]
    pub(super) fn claim_for_write(&mut self, start: u64, end: u64) -> Option<usize> {
        let last = self.segments.len().checked_sub(1)?;
        let written = self.segments.iter().filter(|segment| segment.written).count();
        let segment = if self.dedicated {
            last
        } else if written >= self.write_segments {
            (0..=last)
                .filter(|index| self.segments[*index].written)
                .min_by_key(|index| self.segments[*index].used)?
        } else {
            (0..=last).min_by_key(|index| self.segments[*index].used)?
        };
        self.fill(segment, start, end, true);
        Some(segment)
    }

    fn fill(&mut self, segment: usize, start: u64, end: u64, written: bool) {
        let capacity = self.capacity;
        let kept = &mut self.segments[segment];
        kept.start = start.max(end.saturating_sub(capacity));
        kept.end = end;
        kept.written = written;
        kept.room = capacity;
        self.touch(segment);
    }

    /// Forgets every segment that holds a block of `start..end`: the medium is about to change under it, and drives
    /// give up the whole segment (seen on both Seagate drives of 1996 that we hold measurements of).
    #[inline]
    pub(super) fn forget(&mut self, start: u64, end: u64) {
        for segment in &mut self.segments {
            if segment.start < end && start < segment.end {
                segment.start = segment.end;
            }
        }
    }
}

/// How far to read ahead after a read of `start..end` into a segment with `room` that holds data from `held_from` on.
pub(super) fn read_ahead_limit(
    parameters: &BufferParameters,
    platter: &Platter,
    (start, end): (u64, u64),
    held_from: u64,
    segment_room: u64,
) -> u64 {
    let blocks = platter.geometry.blocks();
    let room = match parameters.requested_data {
        KeepRequested::Keep => (start + segment_room).max(end),
        KeepRequested::Replace | KeepRequested::Drop => end + segment_room,
    };
    // The file's bound is meant for a segment; a stream that was given several has several times as much.
    let widened = segment_room / parameters.segment_sectors.max(1);
    let most = end.saturating_add(parameters.read_ahead_maximum.saturating_mul(widened));
    let policy = match parameters.read_ahead {
        ReadAhead::None => end,
        ReadAhead::Segment => u64::MAX,
        ReadAhead::Track => track_end(platter, end - 1),
        ReadAhead::Cylinder => cylinder_end(platter, end - 1),
        // Less than a track: nothing until the reader is seen to go on, when it gets more room.
        ReadAhead::TrackAhead if segment_room < platter.track_sectors(start) => end,
        ReadAhead::TrackAhead => track_ahead(platter, end, held_from, widened > 1),
    };
    policy.max(end + parameters.read_ahead_minimum).min(room).min(most).min(blocks).max(end)
}

/// The block behind the last one of `block`'s track.
fn track_end(platter: &Platter, block: u64) -> u64 {
    let here = platter.geometry.locate(block);
    let mut end = block + u64::from(here.run);
    // A slip or a remapped sector ends a run before the track does.
    while end < platter.geometry.blocks() {
        let next = platter.geometry.locate(end);
        if (next.cylinder, next.head) != (here.cylinder, here.head) {
            break;
        }
        end += u64::from(next.run);
    }
    end
}

fn cylinder_end(platter: &Platter, block: u64) -> u64 {
    let cylinder = platter.geometry.cylinder_of(block);
    let mut end = track_end(platter, block);
    while end < platter.geometry.blocks() && platter.geometry.cylinder_of(end) == cylinder {
        end = track_end(platter, end);
    }
    end
}

/// To the end of the track that holds the next block, and of the one behind it if the reader is known to go on or the
/// segment's data (from `held_from`) came from an earlier track (DiskSim "buffer continuous read" 4).
fn track_ahead(platter: &Platter, end: u64, held_from: u64, goes_on: bool) -> u64 {
    if end >= platter.geometry.blocks() {
        return end;
    }
    let here = platter.geometry.locate(end);
    let from = platter.geometry.locate(held_from);
    let this = track_end(platter, end);
    let moving = goes_on || (from.cylinder, from.head) != (here.cylinder, here.head);
    if moving && this < platter.geometry.blocks() { track_end(platter, this) } else { this }
}
