//! Arm, platter, controller and bus of a mechanical disk.

use agewell_config::{
    ConfigError, Form, Keyed, Table, count, flag, keys, list, milliseconds, natural, number, pair,
    rate, whole,
};

use super::buffer::BufferParameters;
use super::geometry::GeometryParameters;
use crate::geometry::Geometry;

/// Measured seek curves scatter; a point may lie this far below an earlier one before the curve is called falling.
/// Chosen by us: the worst of the published curves that we hold dips by 12 % (HP C3323A, 4 to 5 cylinders).
const SEEK_DIP_ALLOWED: f64 = 0.25;

/// Time to move the arm, as a function of the distance in cylinders.
#[derive(Debug, Clone, PartialEq)]
pub enum SeekCurve {
    /// Measured distances and times (ns), joined by straight lines; the last line goes on beyond the last point.
    Points(Vec<(u32, u64)>),
    /// A formula (Ruemmler & Wilkes 1991, table 3; 1994), in ms.
    Formula {
        /// Times of distances 1, 2, ... where the formula is not used, ns.
        short_ns: Vec<u64>,
        /// First distance of the linear part.
        boundary: u32,
        /// `a + b sqrt(d)` below the boundary, ms.
        root_ms: (f64, f64),
        /// `a + b d` from the boundary on, ms.
        line_ms: (f64, f64),
    },
}

/// Controller overheads, ns. Named after the DiskSim parameters they take their meaning from (`disk.modspec`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OverheadParameters {
    /// On every request, at its arrival.
    pub per_request_ns: u64,
    /// Read found in the buffer, by what the request before was: after a read, after a write.
    pub read_hit_ns: [u64; 2],
    /// Read not found in the buffer.
    pub read_miss_ns: [u64; 2],
    /// Write that continues data which the drive has reported and is still bringing to the medium.
    pub write_hit_ns: [u64; 2],
    /// Every other write.
    pub write_miss_ns: [u64; 2],
    /// Before the completion message of a read.
    pub read_completion_ns: u64,
    /// Before the completion message of a write.
    pub write_completion_ns: u64,
    /// Before data move over the bus, in parallel with the medium.
    pub data_preparation_ns: u64,
    /// Reconnecting to the bus, first time in a request.
    pub first_reselect_ns: u64,
    /// Reconnecting, later times.
    pub other_reselect_ns: u64,
    /// A read leaving the bus, by what the request before was.
    pub read_disconnect_ns: [u64; 2],
    /// A write leaving the bus.
    pub write_disconnect_ns: u64,
    /// A write that leaves the bus before it takes any data.
    pub extra_write_disconnect: Option<ExtraDisconnect>,
    /// Least time between a write's command and its access to the medium, unless it is sequential.
    pub minimum_seek_delay_ns: u64,
}

keys! {
    /// Overheads of a drive that leaves the bus between a write's command and its data: the table
    /// `[overhead.extra_write_disconnect]` of a device file.
    #[derive(Copy, Eq, Default)]
    pub struct ExtraDisconnect {
        /// command processing, in place of the write overheads
        command_ns: u64 = "command_ms" milliseconds().or(0);
        /// leaving the bus, in parallel with positioning
        disconnect_ns: u64 = "disconnect_ms" milliseconds().or(0);
        /// off the bus
        away_ns: u64 = "away_ms" milliseconds().or(0);
        /// leaving the bus the second time, after the data
        second_disconnect_ns: u64 = "second_disconnect_ms" milliseconds().or(0);
        /// positioning starts this long after the command
        seek_delay_ns: u64 = "seek_delay_ms" milliseconds().or(0);
    }
}

keys! {
    /// The table `[overhead]` of a device file.
    pub(super) struct OverheadTable over OverheadParameters::default() => OverheadParameters {
        /// on every request, at its arrival
        per_request_ns = "per_request_ms" milliseconds();
        /// read found in the buffer, after a read
        read_hit_ns[0] = "read_hit_after_read_ms" milliseconds();
        /// read found in the buffer, after a write
        read_hit_ns[1] = "read_hit_after_write_ms" milliseconds();
        /// read not found in the buffer, after a read
        read_miss_ns[0] = "read_miss_after_read_ms" milliseconds();
        /// read not found in the buffer, after a write
        read_miss_ns[1] = "read_miss_after_write_ms" milliseconds();
        /// write that continues data which the drive has reported and is still bringing to the medium,
        /// after a read
        write_hit_ns[0] = "write_hit_after_read_ms" milliseconds();
        /// the same after a write
        write_hit_ns[1] = "write_hit_after_write_ms" milliseconds();
        /// every other write, after a read
        write_miss_ns[0] = "write_miss_after_read_ms" milliseconds();
        /// every other write, after a write
        write_miss_ns[1] = "write_miss_after_write_ms" milliseconds();
        /// before the completion message of a read
        read_completion_ns = "read_completion_ms" milliseconds();
        /// before the completion message of a write
        write_completion_ns = "write_completion_ms" milliseconds();
        /// before data move over the bus, in parallel with the medium
        data_preparation_ns = "data_preparation_ms" milliseconds();
        /// reconnecting to the bus, first time in a request
        first_reselect_ns = "first_reselect_ms" milliseconds();
        /// reconnecting, later times
        other_reselect_ns = "other_reselect_ms" milliseconds();
        /// a read leaving the bus, after a read
        read_disconnect_ns[0] = "read_disconnect_after_read_ms" milliseconds();
        /// a read leaving the bus, after a write
        read_disconnect_ns[1] = "read_disconnect_after_write_ms" milliseconds();
        /// a write leaving the bus
        write_disconnect_ns = "write_disconnect_ms" milliseconds();
        /// least time between a write's command and its access to the medium, unless it is sequential
        minimum_seek_delay_ns = "minimum_seek_delay_ms" milliseconds();
    }
}

/// The bus between drive and host, as the drive uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BusParameters {
    /// Time for one device sector from drive to host, ps; 0: as fast as the medium delivers.
    pub read_sector_ps: u64,
    /// Time for one device sector from host to drive, ps.
    pub write_sector_ps: u64,
    /// Whether a read keeps the bus from its first to its last sector.
    pub hold_read: bool,
    /// Whether a write does.
    pub hold_write: bool,
    /// Data that must be in the buffer before a read's bus transfer starts; at most the request.
    pub read_fence_bytes: Option<u64>,
    /// Whether a read that goes on to another track starts its bus transfer at the end of the first, however little
    /// that holds ("read on crossing" in HP's trace headers).
    pub read_on_crossing: bool,
    /// Bus protocol and host between the drive's readiness for data and the first byte, ns: before a read's data once
    /// the fence is open, before a write's once the command is taken. SCSI drives have it in their overheads.
    pub turnaround_ns: u64,
    /// Sectors of a write that must be in the buffer beyond what the bus brings while the medium takes the rest;
    /// `None`: as SCSI drives do.
    pub write_reserve_sectors: Option<u64>,
}

/// Everything a mechanical disk's file says.
#[derive(Debug, Clone, PartialEq)]
pub struct MechanicalParameters {
    /// Bytes in a device sector.
    pub sector_bytes: u32,
    /// Addressable device sectors.
    pub capacity: u64,
    /// One revolution, ps.
    pub rotation_period_ps: u64,
    /// Surfaces, cylinders, zones.
    pub geometry: GeometryParameters,
    /// Arm movement.
    pub seek: SeekCurve,
    /// Changing heads, ns.
    pub head_switch_ns: u64,
    /// Added to a seek or head switch before a write, ns.
    pub write_settle_ns: i64,
    /// Least time to position the heads for a read on the cylinder where they rest, ns; a read that takes over heads
    /// at work does not pay it.
    pub same_cylinder_ns: u64,
    /// Controller.
    pub overhead: OverheadParameters,
    /// Bus.
    pub bus: BusParameters,
    /// Buffer.
    pub buffer: BufferParameters,
    /// Commands that it holds at once and serves in an order of its own; 1 for a drive that takes one
    /// after another.
    pub queue_depth: u32,
}

keys! {
    /// The table `[bus]` of a device file, rates apart.
    pub(super) struct BusTable for BusParameters, ..BusParameters::default(), {
        /// a read keeps the bus from its first to its last sector
        hold_read = "hold_read" flag().or(false);
        /// a write does
        hold_write = "hold_write" flag().or(false);
        /// data gathered in the buffer before a read's bus transfer starts, at most the request
        read_fence_bytes = "read_fence_bytes" whole().from(1).to(1 << 40)
            .or_else("by `buffer.read_water_mark`");
        /// leaving a track opens the fence too
        read_on_crossing = "read_on_crossing" flag().or(false);
        /// bus protocol and host before the data, after the fence or a write's command
        turnaround_ns = "turnaround_ms" milliseconds().or(0);
        /// sectors by which a write's bus transfer stays ahead of the medium
        write_reserve_sectors = "write_reserve_sectors" whole().from(1).to(1 << 20)
            .or_else("as SCSI drives do");
    }
}

keys! {
    /// The rates of the table `[bus]`.
    pub(super) struct BusRates {
        /// rate from drive to host
        read_rate: Option<u64> = "read_rate" rate().or_else("as the medium delivers");
        /// or the time of one sector
        read_sector_ms: Option<f64> = "read_sector_ms" number(0.0, 1e3).optional();
        /// rate from host to drive
        write_rate: Option<u64> = "write_rate" rate().or_else("as the medium takes");
        /// or the time of one sector
        write_sector_ms: Option<f64> = "write_sector_ms" number(0.0, 1e3).optional();
    }
}

keys! {
    /// The table `[seek]` of a device file: measured points, or a formula.
    pub(super) struct SeekTable {
        /// measured distances, in cylinders, and times, joined by straight lines
        points: Option<Vec<(u32, u64)>> = "points_ms"
            list(pair(count(), milliseconds())).or_else("this, or the formula");
        /// a formula: times of the distances 1, 2, ... where it is not used
        short_ns: Option<Vec<u64>> = "short_ms" list(milliseconds()).optional();
        /// a formula: first distance of its straight part
        boundary: Option<u32> = "boundary_cylinders" natural().optional();
        /// a formula: `a + b sqrt(distance)` below that
        root_ms: Option<(f64, f64)> = "root_ms"
            pair(number(-1e6, 1e6), number(-1e6, 1e6)).optional();
        /// a formula: `a + b distance` from there on
        line_ms: Option<(f64, f64)> = "line_ms"
            pair(number(-1e6, 1e6), number(-1e6, 1e6)).optional();
        /// changing heads
        head_switch_ns: u64 = "head_switch_ms" milliseconds().or(0);
        /// added to a seek or head switch before a write; negative if the overhead that goes with it
        /// was measured as part of a longer one
        write_settle_ms: f64 = "write_settle_ms" number(-1e3, 1e3).or(0.0);
        /// least time to position the heads for a read on the cylinder where they rest
        same_cylinder_ns: u64 = "same_cylinder_ms" milliseconds().or(0);
    }
}

keys! {
    /// What a mechanical disk's file says outside tables.
    pub(super) struct DriveTable {
        /// bytes of the drive's own sectors, which other keys count in: 256, 512 or 4096
        sector_bytes: u32 = "sector_bytes" natural().or(512);
        /// addressable sectors; refused if the zones hold fewer
        capacity: Option<u64> = "capacity_sectors" whole().from(1).to(1 << 50)
            .or_else("what the zones hold");
        /// turns a minute
        rpm: Option<f64> = "rpm" number(1.0, 1e6).or_else("this, or the next");
        /// a turn
        rotation_period_ms: Option<f64> = "rotation_period_ms" number(1e-3, 1e6).optional();
        /// commands held at once and served nearest first; 1: one after another
        queue_depth: u32 = "queue_depth" count().to(65_536).or(1);
    }
}

impl MechanicalParameters {
    pub(super) fn read(drive: &mut Table) -> Result<Self, ConfigError> {
        let keys = DriveTable::read(drive)?;
        if ![256, 512, 4096].contains(&keys.sector_bytes) {
            let why = format!("is {}; it must be 256, 512 or 4096", keys.sector_bytes);
            return Err(drive.invalid("sector_bytes", why));
        }
        let geometry = GeometryParameters::read(drive)?;
        let held =
            Geometry::check(&geometry).map_err(|(key, message)| drive.invalid(&key, message))?;
        let capacity = keys.capacity.unwrap_or(held);
        if capacity > held {
            let why = format!("is {capacity}, but the zones hold only {held} sectors");
            return Err(drive.invalid("capacity_sectors", why));
        }
        let last = Geometry::new(&geometry).zone_sectors(geometry.zones.len() - 1);
        if capacity <= held - last {
            let why = format!(
                "is {capacity}, but the zones hold {held}: the last of them ({last} sectors) would \
                 be empty"
            );
            return Err(drive.invalid("capacity_sectors", why));
        }
        let mut table = drive.table("seek")?.ok_or_else(|| drive.missing("seek"))?;
        let seek = SeekTable::read(&mut table)?;
        let curve = SeekCurve::read(&seek, &table, geometry.cylinders)?;
        table.finish()?;
        Ok(Self {
            sector_bytes: keys.sector_bytes,
            capacity,
            rotation_period_ps: rotation_period_ps(&keys, drive)?,
            geometry,
            seek: curve,
            head_switch_ns: seek.head_switch_ns,
            write_settle_ns: (seek.write_settle_ms * 1e6).round() as i64,
            same_cylinder_ns: seek.same_cylinder_ns,
            overhead: OverheadParameters::read(drive)?,
            bus: BusParameters::read(drive, keys.sector_bytes)?,
            buffer: BufferParameters::read(drive)?,
            queue_depth: keys.queue_depth,
        })
    }
}

fn rotation_period_ps(keys: &DriveTable, drive: &Table) -> Result<u64, ConfigError> {
    match (keys.rpm, keys.rotation_period_ms) {
        (Some(rpm), None) => Ok((60e12 / rpm).round() as u64),
        (None, Some(period)) => Ok((period * 1e9).round() as u64),
        (None, None) => Err(drive.invalid("rpm", "is missing (or give rotation_period_ms)")),
        (Some(rpm), Some(period)) => {
            let why = format!("is {rpm} and rotation_period_ms is {period}: give one of the two");
            Err(drive.invalid("rpm", why))
        }
    }
}

impl OverheadParameters {
    fn read(drive: &mut Table) -> Result<Self, ConfigError> {
        let Some(mut table) = drive.table("overhead")? else { return Ok(Self::default()) };
        let mut overhead = OverheadTable::read(&mut table)?;
        if table.has("extra_write_disconnect") {
            overhead.extra_write_disconnect =
                Some(table.whole_table::<ExtraDisconnect>("extra_write_disconnect")?);
        }
        table.finish()?;
        Ok(overhead)
    }
}

impl BusParameters {
    fn read(drive: &mut Table, sector_bytes: u32) -> Result<Self, ConfigError> {
        let Some(mut table) = drive.table("bus")? else { return Ok(Self::default()) };
        let rates = BusRates::read(&mut table)?;
        let sector_ps = |key: &str, rate: Option<u64>, ms: Option<f64>| match (rate, ms) {
            (Some(_), Some(_)) => {
                let why = "and the time of a sector say the same: give one of the two";
                Err(table.invalid(key, why))
            }
            (Some(rate), None) => Ok((f64::from(sector_bytes) * 1e12 / rate as f64).round() as u64),
            (None, ms) => Ok(ms.map_or(0, |ms| (ms * 1e9).round() as u64)),
        };
        let read_sector_ps = sector_ps("read_rate", rates.read_rate, rates.read_sector_ms)?;
        let write_sector_ps = sector_ps("write_rate", rates.write_rate, rates.write_sector_ms)?;
        let bus = Self { read_sector_ps, write_sector_ps, ..BusTable::read(&mut table)? };
        table.finish()?;
        Ok(bus)
    }
}

impl SeekCurve {
    /// The curve that `seek` describes, whose `table` is named in messages.
    fn read(seek: &SeekTable, table: &Table, cylinders: u32) -> Result<Self, ConfigError> {
        match (&seek.points, seek.boundary, seek.root_ms, seek.line_ms) {
            (Some(points), None, None, None) if seek.short_ns.is_none() => {
                check_points(points, table)?;
                Ok(Self::Points(points.clone()))
            }
            (Some(_), ..) => {
                Err(table.invalid("points_ms", "and a formula are two curves: give one"))
            }
            (None, Some(boundary), Some(root_ms), Some(line_ms)) => {
                let short_ns = seek.short_ns.clone().unwrap_or_default();
                let curve = Self::Formula { short_ns, boundary, root_ms, line_ms };
                check_formula(&curve, table, cylinders)?;
                Ok(curve)
            }
            (None, ..) => Err(table.invalid(
                "points_ms",
                "is missing (or give boundary_cylinders, root_ms and line_ms)",
            )),
        }
    }
}

fn check_points(points: &[(u32, u64)], table: &Table) -> Result<(), ConfigError> {
    let invalid = |why: String| Err(table.invalid("points_ms", why));
    if points.is_empty() {
        return invalid("is empty".to_owned());
    }
    let (mut before, mut highest_ms) = (0, 0.0_f64);
    for (distance, ns) in points {
        let ms = *ns as f64 / 1e6;
        if *distance <= before {
            return invalid(format!("distance {distance} does not ascend"));
        }
        if ms < highest_ms * (1.0 - SEEK_DIP_ALLOWED) {
            return invalid(format!(
                "the seek curve falls from {highest_ms} ms to {ms} ms at {distance} cylinders"
            ));
        }
        (before, highest_ms) = (*distance, highest_ms.max(ms));
    }
    Ok(())
}

fn check_formula(curve: &SeekCurve, table: &Table, cylinders: u32) -> Result<(), ConfigError> {
    let invalid = |why: String| Err(table.invalid("root_ms", why));
    let mut before = 0.0_f64;
    for distance in 1..cylinders.max(2) {
        let ms = curve.ms(distance);
        if !(0.0..1e6).contains(&ms) {
            return invalid(format!("gives {ms} ms at {distance} cylinders"));
        }
        // Published formulas meet at the boundary only to their rounding (C2200A: 18.27 against 18.23 ms).
        if ms < before * (1.0 - SEEK_DIP_ALLOWED) || (distance > 64 && ms < before - 0.25) {
            return invalid(format!(
                "the seek curve falls from {before} ms to {ms} ms at {distance} cylinders"
            ));
        }
        before = before.max(ms);
    }
    Ok(())
}

impl SeekCurve {
    /// Time to move the arm by `distance` cylinders, ms; 0 for no movement.
    pub fn ms(&self, distance: u32) -> f64 {
        if distance == 0 {
            return 0.0;
        }
        match self {
            SeekCurve::Points(points) => interpolate(points, distance) / 1e6,
            SeekCurve::Formula { short_ns, boundary, root_ms, line_ms } => {
                if let Some(ns) = short_ns.get(distance as usize - 1) {
                    *ns as f64 / 1e6
                } else if distance < *boundary {
                    root_ms.0 + root_ms.1 * f64::from(distance).sqrt()
                } else {
                    line_ms.0 + line_ms.1 * f64::from(distance)
                }
            }
        }
    }

    /// Mean over all pairs of cylinders, staying put included (the "average seek" of data sheets), ms.
    pub fn mean_ms(&self, cylinders: u32) -> f64 {
        let total = f64::from(cylinders);
        // A distance d > 0 joins 2 (n - d) of the n^2 ordered pairs.
        let sum: f64 = (1..cylinders)
            .map(|distance| 2.0 * (total - f64::from(distance)) * self.ms(distance))
            .sum();
        sum / (total * total)
    }

    /// Time of every distance from 0 to `cylinders - 1`, ns.
    pub fn table_ns(&self, cylinders: u32) -> Vec<u32> {
        (0..cylinders).map(|distance| (self.ms(distance) * 1e6).round().max(0.0) as u32).collect()
    }
}

fn interpolate(points: &[(u32, u64)], distance: u32) -> f64 {
    if points.len() == 1 {
        return points[0].1 as f64;
    }
    let above = points.partition_point(|(at, _)| *at < distance).clamp(1, points.len() - 1);
    let (x0, y0) = (f64::from(points[above - 1].0), points[above - 1].1 as f64);
    let (x1, y1) = (f64::from(points[above].0), points[above].1 as f64);
    y0 + (y1 - y0) * (f64::from(distance) - x0) / (x1 - x0)
}
