//! How a request begins: what it finds in the buffer, when its command is decoded, where the heads are then, and when
//! the medium comes to its data.
//!
//! Service goes on from here, and the estimate that disciplines and command queues order by ends
//! here: both are the same functions, which change nothing. The part that depends on the time alone
//! and not on the request (where read-ahead has got to, where it leaves the heads) is worked out
//! once for all requests that are compared ([`Mechanics`]).
//!
//! Invariants, held by property tests over the catalogue: an estimate is what service takes then, to the nanosecond;
//! no request is positioned for sooner than the bound of its cylinder says, unless its data are in the buffer.
//!
//! Cost of an estimate: a look at each segment of the buffer, one look-up of an address, two multiplications.

use agewell_core::{BlockRequest, SimTime};

use super::buffer::Stream;
use super::platter::{Position, Positioning};
use super::{Blocks, Mechanical};
use crate::parameters::FastWrite;

/// Sectors by which the bus must stay ahead of the medium in a write, where the device file does not say. From the HP
/// C2247A: sequential writes of up to 8 sectors start once all are in, longer ones earlier (docs/concepts/disk-model.md).
const WRITE_RESERVE_SECTORS: u64 = 8;

/// How a read begins.
#[derive(Debug, Clone, Copy)]
pub(super) enum ReadStart {
    Hit(ReadHit),
    /// Nothing of it is in the buffer: the arm starts when the command is decoded.
    Miss {
        command: u64,
    },
}

/// A read whose first block is in the buffer, or the next to come there.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadHit {
    pub(super) segment: usize,
    /// Up to where its data are in the buffer.
    pub(super) held: u64,
    pub(super) command: u64,
    /// Where the heads go on reading; `None` if all is there.
    pub(super) from: Option<Position>,
}

/// When the command of a write is taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct WriteCommand {
    /// Whether it continues written data that are on their way to the medium.
    pub(super) appends: bool,
    /// When it is decoded, and read-ahead given up.
    pub(super) decoded: u64,
    /// When the drive is done with it.
    pub(super) command: u64,
}

/// How a write begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct WriteStart {
    pub(super) appends: bool,
    pub(super) command: u64,
    pub(super) bus_start: u64,
    /// Where the heads are, and when they are free to write.
    pub(super) position: Position,
    /// The reading of the device sectors that a write covers in part, before it.
    reading: Option<Positioning>,
}

/// The state that is common to the estimates of one time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mechanics {
    /// Read-ahead when a command has arrived.
    stream: Option<Stream>,
    /// Where the heads are, and when they are free, for a read that is not in the buffer, a write, and a write that
    /// continues the one under way.
    read: Position,
    write: Position,
    append: Position,
    /// Whether the heads rest, so that a read on their cylinder settles.
    rests: bool,
}

impl Mechanics {
    /// The cylinder that distances are counted from.
    pub(super) fn cylinder(&self) -> u32 {
        self.read.cylinder
    }
}

impl WriteStart {
    /// When a stretch of `count` blocks from `block` on may start to be written, its sectors passing in `block_ns`.
    #[inline]
    pub(super) fn ready(
        &self,
        disk: &Mechanical,
        blocks: Blocks,
        block: u64,
        count: u64,
        block_ns: u64,
    ) -> u64 {
        let (first, bus_start) = (blocks.first, self.bus_start);
        let bus_ns = |count| disk.bus_write_ns(count);
        if let Some(reserve) = disk.parameters.bus.write_reserve_sectors {
            // The bus never falls behind the medium, and the medium starts no later than that allows.
            let reserve = reserve.min(count);
            let last = bus_start + bus_ns(block + count - first);
            return (bus_start + bus_ns(block + reserve - first))
                .max(last.saturating_sub((count - reserve) * block_ns));
        }
        let mark = disk.parameters.buffer.write_water_mark;
        let one = bus_start + bus_ns(block + 1 - first);
        let all = bus_start + bus_ns(blocks.end - first);
        if mark >= 1.0 {
            return bus_start + bus_ns(block + count - first);
        }
        if mark == 0.0 && disk.parameters.bus.write_sector_ps / 1000 <= block_ns {
            return one;
        }
        let reserved = (blocks.end - block).saturating_sub(WRITE_RESERVE_SECTORS);
        let enough =
            bus_start + bus_ns((block - first + WRITE_RESERVE_SECTORS).min(blocks.end - first));
        enough.max(all.saturating_sub(reserved * block_ns)) + block_ns
    }

    /// The positioning of a write, `writing` being that of its data: what is read first comes before it, and the turn
    /// that this takes is a missed one.
    #[inline]
    pub(super) fn including_reading(&self, writing: Positioning) -> Positioning {
        match self.reading {
            Some(reading) => Positioning { start: writing.start, ..reading },
            None => writing,
        }
    }
}

impl Mechanical {
    /// When the drive begins with a command issued at `issue`.
    #[inline]
    pub(super) fn arrival(&self, issue: u64) -> u64 {
        issue + self.parameters.overhead.per_request_ns
    }

    /// Whether writes are reported when they are in the buffer.
    #[inline]
    pub(super) fn reports_early(&self) -> bool {
        self.parameters.buffer.fast_write != FastWrite::Never
    }

    /// Time for `count` blocks from the host, ns.
    #[inline]
    pub(super) fn bus_write_ns(&self, count: u64) -> u64 {
        count * self.parameters.bus.write_sector_ps / 1000
    }

    /// Where the heads are at `now` and when they are free: where `stream` has got to, or where they were left.
    #[inline]
    pub(super) fn heads_at(&self, stream: Option<&Stream>, now: u64) -> Position {
        let position = stream.map_or(self.position, |stream| stream.position);
        Position { free: position.free.max(now), ..position }
    }

    /// Whether the heads, reading ahead as far as `stream` or left where they were, had nothing to do at `issue`.
    #[inline]
    pub(super) fn rests(&self, stream: Option<&Stream>, issue: u64) -> bool {
        stream.map_or(self.position, |stream| stream.position).free <= issue
    }

    /// `heads` once they have settled for a read of `block`, which they need if they rested on its cylinder.
    #[inline]
    pub(super) fn settled(&self, heads: Position, rested: bool, block: u64) -> Position {
        if !rested || self.parameters.same_cylinder_ns == 0 {
            return heads;
        }
        let settling = self.platter.settle_ns(&heads, &self.platter.geometry.locate(block));
        Position { free: heads.free + settling, ..heads }
    }

    /// How a read issued at `issue` begins, read-ahead having got as far as `stream` when it arrives.
    #[inline]
    pub(super) fn read_start(
        &self,
        issue: u64,
        stream: Option<&Stream>,
        blocks: Blocks,
    ) -> ReadStart {
        let (overhead, after) = (&self.parameters.overhead, self.after);
        let arrived = self.arrival(issue);
        let almost = self.parameters.buffer.almost_read_hits;
        let Some(segment) = self.buffer.find(blocks.first, stream, almost) else {
            return ReadStart::Miss { command: arrived + overhead.read_miss_ns[after] };
        };
        let command = arrived + overhead.read_hit_ns[after];
        let held = self.buffer.segment_at(segment, stream).end.min(blocks.end);
        let goes_on = stream.is_some_and(|stream| {
            stream.segment == segment && stream.next == held && stream.next < stream.limit
        });
        let from = (held < blocks.end).then(|| match stream {
            // Read-ahead goes on under the command.
            Some(stream) if goes_on => stream.position,
            _ => self.heads_at(stream, command),
        });
        ReadStart::Hit(ReadHit { segment, held, command, from })
    }

    /// When the command of a write issued at `issue` is taken.
    #[inline]
    pub(super) fn write_command(&self, issue: u64, blocks: Blocks) -> WriteCommand {
        let arrived = self.arrival(issue);
        let continues =
            |segment: &super::buffer::Segment| segment.written && segment.end == blocks.first;
        let appends = self.reports_early()
            && self.position.free > arrived
            && self.buffer.stream.is_none()
            && self.buffer.segments.iter().any(continues);
        self.command_of_write(issue, appends)
    }

    fn command_of_write(&self, issue: u64, appends: bool) -> WriteCommand {
        let (overhead, arrived) = (&self.parameters.overhead, self.arrival(issue));
        let command = arrived
            + if appends {
                overhead.write_hit_ns[self.after]
            } else if let Some(extra) = &overhead.extra_write_disconnect {
                extra.command_ns
            } else {
                overhead.write_miss_ns[self.after]
            };
        let decoded = command.min(arrived + overhead.read_miss_ns[self.after]);
        WriteCommand { appends, decoded, command }
    }

    /// How a write begins whose command is taken as `taken` says, the heads being at `heads` then; what the heads were
    /// asked to write before is on the medium at `pending`.
    #[inline]
    pub(super) fn write_start(
        &self,
        taken: WriteCommand,
        heads: Position,
        pending: u64,
        blocks: Blocks,
    ) -> WriteStart {
        let overhead = &self.parameters.overhead;
        let WriteCommand { appends, decoded, command } = taken;
        let (bus_start, arm_start) = match &overhead.extra_write_disconnect {
            Some(extra) => (
                command
                    + extra.disconnect_ns
                    + extra.away_ns
                    + overhead.first_reselect_ns
                    + overhead.data_preparation_ns,
                command + extra.seek_delay_ns,
            ),
            // Overheads of drives that report early were measured on writes that end with the bus. Those of
            // other drives were measured on writes that seek. The command is decoded in what it takes for a read; from
            // then on the host's data flow, and a write on the track under the heads needs nothing else.
            None if !self.reports_early() => {
                let location = self.platter.geometry.locate(blocks.first);
                let stays = (location.cylinder, location.head) == (heads.cylinder, heads.head);
                let arm_start = if stays { decoded } else { command };
                (decoded + overhead.data_preparation_ns, arm_start)
            }
            None => (command + overhead.data_preparation_ns, command),
        };
        let bus_start = bus_start + self.parameters.bus.turnaround_ns;
        // Dirty data that this write does not continue are written first.
        let bus_start = if appends { bus_start } else { bus_start.max(pending) };
        let mut position = Position { free: heads.free.max(arm_start), ..heads };
        let mut reading = None;
        if blocks.partial {
            // Part of a device sector is written over the sector as read: the whole stretch passes once for that.
            let (first, end) = (blocks.first, blocks.end);
            let (after, cost) =
                self.platter.sweep(position, first, end, false, |_, _, _| 0, |_| true);
            position = after;
            reading = Some(cost);
        }
        WriteStart { appends, command, bus_start, position, reading }
    }

    /// The state that is common to the estimates of requests issued at `issue`.
    pub(super) fn mechanics(&self, issue: u64) -> Mechanics {
        let overhead = &self.parameters.overhead;
        let arrived = self.arrival(issue);
        let stream = self.buffer.stream_at(&self.platter, arrived);
        let missed = arrived + overhead.read_miss_ns[self.after];
        // In the steps in which service brings read-ahead up, so that nothing is rounded otherwise.
        let read = stream.map(|stream| stream.advanced(&self.platter, missed));
        let heads_of_write = |appends| {
            let decoded = self.command_of_write(issue, appends).decoded;
            let stream = self.buffer.stream_at(&self.platter, decoded);
            self.heads_at(stream.as_ref(), decoded)
        };
        Mechanics {
            stream,
            read: self.heads_at(read.as_ref(), missed),
            write: heads_of_write(false),
            append: heads_of_write(true),
            rests: self.rests(read.as_ref(), issue),
        }
    }

    /// When a transfer issued at `issue` would have its heads on its data: decoded, positioned, and nothing before it.
    #[inline]
    pub(super) fn positioned(
        &self,
        issue: SimTime,
        mechanics: &Mechanics,
        request: &BlockRequest,
    ) -> u64 {
        let blocks = self.blocks(request);
        if blocks.write {
            let taken = self.write_command(issue.0, blocks);
            let heads = if taken.appends { mechanics.append } else { mechanics.write };
            let pending = if self.buffer.stream.is_some() { 0 } else { self.position.free };
            let start = self.write_start(taken, heads, pending, blocks);
            let ready = |block, count, block_ns| start.ready(self, blocks, block, count, block_ns);
            let (first, end) = (blocks.first, blocks.end);
            let stretch = self.platter.stretch(&start.position, first, end, true, ready).0;
            return stretch.start.max(start.command);
        }
        let (command, heads, first) =
            match self.read_start(issue.0, mechanics.stream.as_ref(), blocks) {
                ReadStart::Hit(ReadHit { command, from: None, .. }) => return command,
                ReadStart::Hit(ReadHit { command, from: Some(heads), held, .. }) => {
                    (command, heads, held)
                }
                ReadStart::Miss { command } => {
                    let heads = self.settled(mechanics.read, mechanics.rests, blocks.first);
                    (command, heads, blocks.first)
                }
            };
        let stretch = self.platter.stretch(&heads, first, blocks.end, false, |_, _, _| 0).0;
        stretch.start.max(command)
    }

    /// No request whose first sector lies `distance` cylinders from [`Mechanics::cylinder`] or further, and is not in
    /// the buffer, has the heads on its data before this.
    #[inline]
    pub(super) fn positioned_at_least(&self, mechanics: &Mechanics, distance: u32) -> u64 {
        let from = |heads: &Position| {
            let off = heads.cylinder.abs_diff(mechanics.cylinder());
            heads.free + self.platter.least_move_ns(distance.saturating_sub(off))
        };
        from(&mechanics.read).min(from(&mechanics.write)).min(from(&mechanics.append))
    }

    /// Calls `visit` for each cylinder that holds something of what is in the buffer or next to come there.
    pub(super) fn visit_buffered(&self, mechanics: &Mechanics, visit: &mut dyn FnMut(u32)) {
        let stream = mechanics.stream.as_ref();
        let geometry = &self.platter.geometry;
        let segments = (0..self.buffer.segments.len())
            .map(|index| self.buffer.segment_at(index, stream))
            .map(|segment| (segment.start, segment.end));
        let next = stream.map(|stream| (stream.next, (stream.next + 1).min(stream.limit)));
        let mut before = None;
        for (start, end) in segments.chain(next) {
            let mut block = start;
            while block < end {
                let location = geometry.locate(block);
                if before != Some(location.cylinder) {
                    visit(location.cylinder);
                    before = Some(location.cylinder);
                }
                block += u64::from(location.run);
            }
        }
    }
}
