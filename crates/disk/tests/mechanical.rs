//! The mechanical disk against a plain model that steps the platter sector by sector.
//!
//! The plain model knows only the map of the disk. Time is floating point, nothing is computed in closed form: every
//! sector that is read, written or read ahead is one step of a loop, and what the drive does between two requests is run
//! through before the second.

use agewell_core::{BlockRequest, Operation, Sector, SectorCount, SimTime};
use agewell_disk::geometry::{Geometry, Location};
use agewell_disk::parameters::{
    BufferParameters, BusParameters, GeometryParameters, KeepRequested, MechanicalParameters,
    OverheadParameters, ReadAhead, SeekCurve, Sparing, TrackOrder, ZoneParameters,
};
use agewell_disk::{Device, Mechanical};
use proptest::prelude::*;

/// A turn away from its sector by less than this, the plain model cannot say on which side of it the other is, ns.
const UNSURE_NS: f64 = 200.0;

/// The plain model.
struct Plain<'a> {
    parameters: &'a MechanicalParameters,
    geometry: Geometry,
    period: f64,
    cylinder: u32,
    head: u32,
    /// When the heads can do something else.
    free: f64,
    after_write: usize,
    /// Blocks in the buffer, if any.
    held: Option<(u64, u64)>,
    /// Up to where the drive is reading ahead.
    ahead: Option<u64>,
    /// Whether some sector was so near that rounding decides.
    unsure: bool,
}

impl<'a> Plain<'a> {
    fn new(parameters: &'a MechanicalParameters) -> Self {
        Self {
            parameters,
            geometry: Geometry::new(&parameters.geometry),
            period: parameters.rotation_period_ps as f64 / 1000.0,
            cylinder: 0,
            head: 0,
            free: 0.0,
            after_write: 0,
            held: None,
            ahead: None,
            unsure: false,
        }
    }

    fn turns(angle: u64) -> f64 {
        angle as f64 / 18_446_744_073_709_551_616.0
    }

    /// Passes one sector under the heads, not before `ready`; returns when it starts and ends.
    fn pass(&mut self, block: u64, write: bool, ready: f64) -> (f64, f64) {
        let location: Location = self.geometry.locate(block);
        let distance = self.cylinder.abs_diff(location.cylinder);
        let mut move_ns = self.parameters.seek.ms(distance) * 1e6;
        if location.head != self.head {
            move_ns = move_ns.max(self.parameters.head_switch_ns as f64);
        }
        if move_ns > 0.0 && write {
            move_ns += self.parameters.write_settle_ns as f64;
        }
        let there = (self.free + move_ns.max(0.0)).max(ready);
        let mut wait =
            (Self::turns(location.angle) - there / self.period).rem_euclid(1.0) * self.period;
        let gone = self.period - wait;
        if gone < 1000.0 && block_follows(gone) {
            wait = 0.0;
        } else if gone < UNSURE_NS || (wait < UNSURE_NS && wait > 20.0) {
            self.unsure = true;
        }
        let start = there + wait;
        let end = start + Self::turns(location.width) * self.period;
        self.cylinder = location.cylinder;
        self.head = location.head;
        self.free = end;
        (start, end)
    }

    /// Reads ahead, a sector at a time, as long as sectors are complete by `now`.
    fn read_ahead_until(&mut self, now: f64) {
        while let (Some((from, next)), Some(limit)) = (self.held, self.ahead) {
            if next >= limit {
                break;
            }
            let before = (self.cylinder, self.head, self.free, self.unsure);
            let (_, end) = self.pass(next, false, 0.0);
            if (end - now).abs() < UNSURE_NS {
                self.unsure = true;
            }
            if end > now {
                (self.cylinder, self.head, self.free, self.unsure) = before;
                break;
            }
            let room = self.parameters.buffer.segment_sectors;
            self.held = Some((from.max((next + 1).saturating_sub(room)), next + 1));
        }
    }

    fn keep_nothing_without_segments(&mut self) {
        if self.parameters.buffer.segments == 0 {
            self.held = None;
            self.ahead = None;
        }
    }

    fn serve(&mut self, issue: f64, request: &BlockRequest) -> f64 {
        let (first, end) = (request.sector.0, request.sector.0 + request.sectors.0);
        if request.operation == Operation::Read {
            self.read(issue, first, end)
        } else {
            self.write(issue, first, end)
        }
    }

    fn read(&mut self, issue: f64, first: u64, end: u64) -> f64 {
        let overhead = self.parameters.overhead;
        let bus = self.parameters.bus.read_sector_ps as f64 / 1000.0;
        self.read_ahead_until(issue);
        let hit = self.held.is_some_and(|(from, to)| from <= first && first < to);
        let cost = if hit { overhead.read_hit_ns } else { overhead.read_miss_ns };
        let command = issue + cost[self.after_write] as f64;
        let mut carried = command;
        let mut next = first;
        if hit {
            let (_, to) = self.held.expect("a hit has data");
            while next < to.min(end) {
                carried += bus;
                next += 1;
            }
            if self.ahead.is_none_or(|limit| to >= limit) {
                self.free = self.free.max(command);
            }
        } else {
            self.read_ahead_until(command);
            self.free = self.free.max(command);
            self.held = None;
            carried = 0.0;
        }
        let all_there = next == end;
        while next < end {
            let (_, passed) = self.pass(next, false, 0.0);
            carried = carried.max(passed) + bus;
            next += 1;
        }
        let from = self.held.filter(|_| hit).map_or(first, |(from, _)| from);
        let to = self.held.filter(|_| hit).map_or(end, |(_, to)| to.max(end));
        let room = self.parameters.buffer.segment_sectors;
        // Data that the host has taken are replaced first.
        let from = if hit { from.max(end) } else { from };
        self.held = Some((from.max(to.saturating_sub(room)), to));
        let limit =
            (end + room.min(self.parameters.buffer.read_ahead_maximum)).min(self.geometry.blocks());
        self.ahead = match self.ahead {
            // After a full hit a stream that had ended stays ended, and none begins: the data may be
            // what was written, behind which nothing was being read.
            None if hit && all_there => None,
            Some(before) if hit && all_there => {
                Some(if to >= before { before.min(to) } else { before.max(limit) })
            }
            _ => Some(limit),
        };
        self.after_write = 0;
        self.keep_nothing_without_segments();
        carried + overhead.read_completion_ns as f64
    }

    fn write(&mut self, issue: f64, first: u64, end: u64) -> f64 {
        let overhead = self.parameters.overhead;
        let bus = self.parameters.bus.write_sector_ps as f64 / 1000.0;
        let command = issue + overhead.write_miss_ns[self.after_write] as f64;
        let decoded = command.min(issue + overhead.read_miss_ns[self.after_write] as f64);
        self.read_ahead_until(decoded);
        self.ahead = None;
        let target = self.geometry.locate(first);
        let stays = (target.cylinder, target.head) == (self.cylinder, self.head);
        self.free = self.free.max(if stays { decoded } else { command });
        let mut on_bus = decoded;
        let mut passed = 0.0;
        let mut track = None;
        for block in first..end {
            on_bus += bus;
            let location = self.geometry.locate(block);
            // The first sector of each track must be in the buffer; the bus is faster from there on.
            let ready =
                if track == Some((location.cylinder, location.head)) { 0.0 } else { on_bus };
            track = Some((location.cylinder, location.head));
            passed = self.pass(block, true, ready).1;
        }
        if self.held.is_some_and(|(from, to)| from < end && first < to) {
            self.held = None;
        }
        // The only segment takes the written data.
        self.held =
            Some((first.max(end.saturating_sub(self.parameters.buffer.segment_sectors)), end));
        self.after_write = 1;
        self.keep_nothing_without_segments();
        passed.max(on_bus) + overhead.write_completion_ns as f64
    }
}

/// Whether a sector that has just gone by so little was in fact met: rounding of its neighbour's end.
fn block_follows(gone_ns: f64) -> bool {
    gone_ns < 16.0
}

fn disk(
    surfaces: u32,
    spares: u64,
    seek: (f64, f64),
    head_switch_us: u32,
    settle_us: i32,
    segments: u32,
) -> MechanicalParameters {
    let zone = |first: u32, last: u32, per_track: u32| ZoneParameters {
        first_cylinder: first,
        last_cylinder: last,
        sectors_per_track: per_track,
        first_sector_offset: 5.0,
        track_skew: 7.0,
        cylinder_skew: 11.0,
        reserved_sectors: 0,
        spares,
        slips: if spares > 0 { vec![37] } else { Vec::new() },
        defects: Vec::new(),
    };
    MechanicalParameters {
        sector_bytes: 512,
        capacity: 0,
        rotation_period_ps: 11_119_347_664,
        geometry: GeometryParameters {
            surfaces,
            cylinders: 60,
            track_order: TrackOrder::Serpentine,
            sparing: Sparing::SectorsPerCylinder,
            group_cylinders: 0,
            spare_range_cylinders: 1,
            zones: vec![zone(0, 29, 48), zone(30, 59, 37)],
        },
        seek: SeekCurve::Formula {
            short_ns: vec![900_000],
            boundary: 30,
            root_ms: seek,
            line_ms: (seek.0 + seek.1 * 4.0, 0.05),
        },
        head_switch_ns: u64::from(head_switch_us) * 1000,
        same_cylinder_ns: 0,
        write_settle_ns: i64::from(settle_us) * 1000,
        overhead: OverheadParameters {
            read_hit_ns: [300_000, 350_000],
            read_miss_ns: [600_000, 500_000],
            write_miss_ns: [800_000, 450_000],
            read_completion_ns: 50_000,
            write_completion_ns: 20_000,
            ..OverheadParameters::default()
        },
        bus: BusParameters {
            read_sector_ps: 100_000_000,
            write_sector_ps: 90_000_000,
            ..BusParameters::default()
        },
        queue_depth: 1,
        buffer: BufferParameters {
            segments,
            segment_sectors: 64,
            read_ahead: if segments > 0 { ReadAhead::Segment } else { ReadAhead::None },
            read_ahead_maximum: 50,
            requested_data: KeepRequested::Replace,
            ..BufferParameters::default()
        },
    }
}

fn request(sector: u64, sectors: u64, write: bool) -> BlockRequest {
    BlockRequest {
        enqueue: SimTime(0),
        sector: Sector(sector),
        sectors: SectorCount(sectors),
        operation: if write { Operation::Write } else { Operation::Read },
        synchronous: true,
    }
}

/// A request relative to the one before: a jump (0: go on where it ended), a length, a kind, and the time between.
type Step = (u64, u64, bool, u64);

fn compare(parameters: &MechanicalParameters, steps: &[Step]) {
    let blocks = Geometry::check(&parameters.geometry).expect("a sound geometry");
    let parameters = MechanicalParameters { capacity: blocks, ..parameters.clone() };
    let mut fast = Mechanical::new(&parameters);
    let mut plain = Plain::new(&parameters);
    let (mut now, mut at) = (0_u64, 0);
    for (jump, sectors, write, think_ns) in steps {
        let first = (at + jump) % (blocks - sectors);
        at = first + sectors;
        let request = request(first, *sectors, *write);
        let expected = plain.serve(now as f64, &request);
        let found = fast.serve(SimTime(now), &request).finish.0;
        if plain.unsure {
            // Rounding may have decided: from here on the two may rightly part.
            return;
        }
        assert!(
            (found as f64 - expected).abs() < 150.0,
            "request {request:?} at {now}: {found} ns, the plain model says {expected}"
        );
        now = found + think_ns;
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let jump = prop_oneof![3 => Just(0_u64), 2 => 0_u64..80, 3 => 0_u64..4000];
    prop::collection::vec((jump, 1_u64..60, any::<bool>(), 0_u64..30_000_000), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn service_times_agree_without_a_buffer(
        surfaces in 1_u32..4, spares in 0_u64..3, root in 1.0_f64..3.0, slope in 0.1_f64..0.5,
        switch in 0_u32..1500, settle in -300_i32..600, steps in steps(),
    ) {
        compare(&disk(surfaces, spares, (root, slope), switch, settle, 0), &steps);
    }

    #[test]
    fn service_times_agree_with_read_ahead_into_one_segment(
        surfaces in 1_u32..4, root in 1.0_f64..3.0, switch in 0_u32..1500, steps in steps(),
    ) {
        compare(&disk(surfaces, 0, (root, 0.2), switch, 100, 1), &steps);
    }
}

#[test]
fn regression_a_hit_on_written_data_begins_no_read_ahead() {
    let steps = [(1, 48, true, 3_417_693), (2480, 22, false, 4_781_671), (0, 27, false, 0)];
    compare(&disk(1, 0, (1.0, 0.2), 0, 100, 1), &steps);
}

#[test]
fn a_revolution_is_exact_over_a_day() {
    let mut parameters = disk(1, 0, (1.0, 0.2), 0, 0, 0);
    parameters.capacity = Geometry::check(&parameters.geometry).expect("a sound geometry");
    let mut device = Mechanical::new(&parameters);
    let first = device.serve(SimTime(0), &request(0, 1, false));
    // A whole number of turns later the same sector is as far away: 11.119347664 ms a turn, 10^6 turns.
    let turns = 11_119_347_664_000_u64 / 1000 * 1000;
    let later = device.serve(SimTime(turns), &request(0, 1, false));
    let (wait, again) = (first.rotation.0, later.rotation.0);
    assert!(wait.abs_diff(again) < 100, "{wait} ns at first, {again} ns after 10^6 turns");
}
