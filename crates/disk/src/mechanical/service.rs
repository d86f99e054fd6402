//! Cost of a request: the time line of reads and writes.

use agewell_core::{SimDuration, SimTime};

use super::buffer::{Stream, read_ahead_limit};
use super::platter::{Platter, Positioning, Stretch};
use super::positioning::{ReadHit, ReadStart, WriteStart};
use super::{Blocks, Mechanical};
use crate::Service;
use crate::parameters::{KeepRequested, ReadAhead};

/// The bus carrying a read's data to the host while the medium delivers them.
struct ReadTransfer<'a> {
    platter: &'a Platter,
    sector_ps: u64,
    /// Blocks that must be in the buffer before the bus starts.
    fence: u64,
    /// Blocks in the buffer so far.
    held: u64,
    /// Delay between the fence and the first block on the bus.
    delay_ns: u64,
    /// When the bus has carried everything so far; `None` before it starts.
    carried: Option<u64>,
}

impl ReadTransfer<'_> {
    fn bus_ns(&self, blocks: u64) -> u64 {
        blocks * self.sector_ps / 1000
    }

    /// `stretch` passes under the heads.
    fn arrive(&mut self, stretch: &Stretch) {
        let mut rest = stretch.blocks;
        let carried = match self.carried {
            Some(carried) => carried,
            None if self.held + stretch.blocks < self.fence => {
                self.held += stretch.blocks;
                return;
            }
            None => {
                let before = self.fence.saturating_sub(self.held);
                rest -= before;
                let start = self.platter.passed(stretch, before) + self.delay_ns;
                start + self.bus_ns(self.held + before)
            }
        };
        self.held += stretch.blocks;
        self.carried = Some(if rest == 0 {
            carried
        } else {
            let first = self.platter.passed(stretch, stretch.blocks - rest + 1);
            carried.max(first).saturating_add(self.bus_ns(rest)).max(stretch.end + self.bus_ns(1))
        });
    }
}

impl Mechanical {
    fn service(
        &mut self,
        issue: u64,
        finish: u64,
        command: u64,
        positioning: Positioning,
        write: bool,
        buffer_hit: bool,
    ) -> Service {
        self.after = usize::from(write);
        // Work of the heads while the command is being taken delays nothing; the parts follow one
        // another.
        let decoded = command.min(finish);
        let arm_free = positioning.departs.clamp(decoded, finish);
        let there = positioning.there.clamp(arm_free, finish);
        let start = positioning.start.clamp(there, finish);
        Service {
            finish: SimTime(finish),
            seek_cylinders: positioning.seek_cylinders,
            overhead: SimDuration(decoded - issue),
            seek: SimDuration(there - arm_free),
            rotation: SimDuration((arm_free - decoded) + (start - there)),
            transfer: SimDuration(finish - start),
            buffer_hit,
        }
    }

    pub(super) fn read(&mut self, issue: u64, blocks: Blocks) -> Service {
        self.buffer.drain(&self.platter, self.arrival(issue));
        match self.read_start(issue, self.buffer.stream.as_ref(), blocks) {
            ReadStart::Hit(hit) => self.read_hit(issue, hit, blocks),
            ReadStart::Miss { command } => self.read_miss(issue, command, blocks),
        }
    }

    fn read_hit(&mut self, issue: u64, hit: ReadHit, blocks: Blocks) -> Service {
        let ReadHit { segment, held, command, from } = hit;
        let overhead = &self.parameters.overhead;
        let completion = overhead.read_completion_ns;
        let bus_start = command + overhead.data_preparation_ns;
        let mut transfer = ReadTransfer {
            platter: &self.platter,
            sector_ps: self.parameters.bus.read_sector_ps,
            fence: 0,
            held: held - blocks.first,
            delay_ns: 0,
            carried: None,
        };
        transfer.carried = Some(bus_start + transfer.bus_ns(held - blocks.first));
        self.buffer.touch(segment);
        let mut positioning = Positioning::default();
        let all_there = from.is_none();
        if let Some(from) = from {
            let (position, cost) = self.platter.sweep(
                from,
                held,
                blocks.end,
                false,
                |_, _, _| 0,
                |stretch| {
                    transfer.arrive(&stretch);
                    true
                },
            );
            positioning = cost;
            self.position = position;
        }
        let finish = transfer.carried.map_or(bus_start, |carried| carried) + completion;
        self.buffer.grow(segment, blocks.end);
        let held_from = self.buffer.segments[segment].start;
        if self.parameters.buffer.requested_data != KeepRequested::Keep
            && self.parameters.buffer.read_ahead == ReadAhead::Segment
        {
            // Data that the host has taken are the first to be replaced by more read-ahead.
            let held = &mut self.buffer.segments[segment];
            held.start = held.start.max(blocks.end);
        }
        self.continue_stream(segment, blocks, held_from, all_there, finish);
        self.service(issue, finish, command, positioning, false, all_there)
    }

    fn continue_stream(
        &mut self,
        segment: usize,
        blocks: Blocks,
        held_from: u64,
        all_there: bool,
        finish: u64,
    ) {
        let limit = read_ahead_limit(
            &self.parameters.buffer,
            &self.platter,
            (blocks.first, blocks.end),
            held_from,
            self.buffer.room(segment),
        )
        .min(self.parameters.capacity);
        let end = self.buffer.segments[segment].end;
        if all_there {
            match &mut self.buffer.stream {
                Some(stream) if stream.segment == segment && stream.next < stream.limit => {
                    stream.limit = stream.limit.max(limit);
                }
                Some(stream)
                    if stream.segment == segment
                        && self.parameters.buffer.read_ahead_on_idle_hit =>
                {
                    stream.limit = stream.limit.max(limit);
                    stream.position.free = stream.position.free.max(finish);
                }
                _ => {}
            }
        } else {
            self.buffer.stream =
                Some(Stream { segment, next: end, limit, position: self.position });
        }
    }

    /// Gives up read-ahead at `now`; the heads are free from then, or from the end of the sector under them.
    fn stop_stream(&mut self, now: u64) {
        self.buffer.drain(&self.platter, now);
        let stream = self.buffer.stream.take();
        self.position = self.heads_at(stream.as_ref(), now);
    }

    fn read_miss(&mut self, issue: u64, command: u64, blocks: Blocks) -> Service {
        let overhead = self.parameters.overhead;
        self.buffer.drain(&self.platter, command);
        let rests = self.rests(self.buffer.stream.as_ref(), issue);
        self.stop_stream(command);
        let departs = self.position.free;
        let heads = self.settled(self.position, rests, blocks.first);
        let count = blocks.end - blocks.first;
        let mut fence = self.fence(count);
        if self.parameters.bus.read_on_crossing {
            // Sectors up to the end of the first track (or up to a slipped sector) open the fence.
            fence = fence.min(u64::from(self.platter.geometry.locate(blocks.first).run));
        }
        let mut transfer = ReadTransfer {
            platter: &self.platter,
            sector_ps: self.parameters.bus.read_sector_ps,
            fence,
            held: 0,
            delay_ns: self.parameters.bus.turnaround_ns,
            carried: None,
        };
        let (position, positioning) = self.platter.sweep(
            heads,
            blocks.first,
            blocks.end,
            false,
            |_, _, _| 0,
            |stretch| {
                transfer.arrive(&stretch);
                true
            },
        );
        let positioning = Positioning { departs, ..positioning };
        let carried = transfer.carried.expect("the fence is at most the request");
        let finish = carried + overhead.read_completion_ns;
        self.position = position;
        if let Some(segment) = self.claim_for_read(blocks) {
            let limit = read_ahead_limit(
                &self.parameters.buffer,
                &self.platter,
                (blocks.first, blocks.end),
                self.buffer.segments[segment].start,
                self.buffer.room(segment),
            )
            .min(self.parameters.capacity);
            self.buffer.stream = Some(Stream { segment, next: blocks.end, limit, position });
        }
        self.service(issue, finish, command, positioning, false, false)
    }

    /// The segment that a read from the medium fills. A drive that reads whole tracks ahead into segments smaller than a
    /// track keeps them for single reads; a read that goes on where another ended gets the whole buffer
    /// (docs/concepts/disk-model.md, Quantum Atlas III).
    fn claim_for_read(&mut self, blocks: Blocks) -> Option<usize> {
        let buffer = &self.parameters.buffer;
        let small = buffer.read_ahead == ReadAhead::TrackAhead
            && buffer.segment_sectors < self.platter.track_sectors(blocks.first);
        let stream =
            if small { self.buffer.widen_for_stream(blocks.first, blocks.end) } else { None };
        stream.or_else(|| self.buffer.claim_for_read(blocks.first, blocks.end))
    }

    /// Blocks of a read of `count` that must be in the buffer before the bus starts.
    fn fence(&self, count: u64) -> u64 {
        let parameters = &self.parameters;
        if let Some(bytes) = parameters.bus.read_fence_bytes {
            return bytes.div_ceil(u64::from(parameters.sector_bytes)).clamp(1, count);
        }
        let whole = if parameters.buffer.water_marks_by_request {
            count
        } else {
            parameters.buffer.segment_sectors
        };
        ((parameters.buffer.read_water_mark * whole as f64).floor() as u64).clamp(1, count)
    }

    pub(super) fn write(&mut self, issue: u64, blocks: Blocks) -> Service {
        let overhead = self.parameters.overhead;
        let early = self.reports_early();
        let command = self.write_command(issue, blocks);
        // Without read-ahead, the heads are busy only with data that were reported early.
        let pending = if self.buffer.stream.is_some() { 0 } else { self.position.free };
        self.stop_stream(command.decoded);
        let start = self.write_start(command, self.position, pending, blocks);
        let WriteStart { command, bus_start, .. } = start;
        let (position, positioning) = self.platter.sweep(
            start.position,
            blocks.first,
            blocks.end,
            true,
            |block, count, block_ns| start.ready(self, blocks, block, count, block_ns),
            |_| true,
        );
        let positioning = start.including_reading(positioning);
        self.position = position;
        let carried = bus_start + self.bus_write_ns(blocks.end - blocks.first);
        self.buffer.forget(blocks.first, blocks.end);
        if self.parameters.buffer.read_hits_on_write_data {
            self.buffer.claim_for_write(blocks.first, blocks.end);
        }
        if early {
            if !start.appends {
                self.run_start = blocks.first;
            }
            let finish = carried.max(self.room_made(blocks.end)) + overhead.write_completion_ns;
            return self.service(issue, finish, command, Positioning::default(), true, true);
        }
        let reselect = if overhead.extra_write_disconnect.is_some() {
            overhead.other_reselect_ns
        } else {
            overhead.first_reselect_ns
        };
        let finish = position.free.max(carried) + reselect + overhead.write_completion_ns;
        self.service(issue, finish, command, positioning, true, false)
    }

    /// When enough of the run of early-reported writes up to `end` is on the medium for the rest to fit a segment.
    fn room_made(&self, end: u64) -> u64 {
        let room = self.parameters.buffer.segment_sectors;
        if end - self.run_start <= room {
            return 0;
        }
        let block_ns = self.platter.turn_ns(self.platter.geometry.locate(end - 1).width);
        self.position.free.saturating_sub(room * block_ns)
    }

    pub(super) fn flush(&mut self, issue: u64) -> Service {
        let finish =
            if self.buffer.stream.is_some() { issue } else { issue.max(self.position.free) };
        self.service(issue, finish, issue, Positioning::default(), true, false)
    }

    pub(super) fn command_only(&mut self, issue: u64) -> Service {
        let command = issue + self.parameters.overhead.per_request_ns;
        self.service(issue, command, command, Positioning::default(), true, true)
    }
}
