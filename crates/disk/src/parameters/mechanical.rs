//! Arm, platter, controller and bus of a mechanical disk.

use agewell_core::{SECTOR_BYTES, parse_bytes_per_second};

use super::{BufferParameters, GeometryParameters, TableReader};
use crate::DeviceError;
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

/// Overheads of a drive that leaves the bus between a write's command and its data, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExtraDisconnect {
    /// Command processing, in place of the write overheads.
    pub command_ns: u64,
    /// Leaving the bus, in parallel with positioning.
    pub disconnect_ns: u64,
    /// Off the bus.
    pub away_ns: u64,
    /// Leaving the bus the second time, after the data.
    pub second_disconnect_ns: u64,
    /// Positioning starts this long after the command.
    pub seek_delay_ns: u64,
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
    /// Data gathered in the buffer before a read's bus transfer starts; at most the request.
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

impl MechanicalParameters {
    pub(super) fn read(reader: &mut TableReader<'_>) -> Result<Self, DeviceError> {
        let sector_bytes =
            reader.optional_whole("sector_bytes", 1, 1 << 20)?.unwrap_or(SECTOR_BYTES);
        if ![256, 512, 4096].contains(&sector_bytes) {
            return Err(reader.error(
                "sector_bytes",
                format!("is {sector_bytes}; sectors of 256, 512 and 4096 bytes are known"),
            ));
        }
        let rotation_period_ps = read_rotation(reader)?;
        let geometry = GeometryParameters::read(reader)?;
        let held = Geometry::check(&geometry)
            .map_err(|(key, message)| reader.inconsistent(&key, message))?;
        let capacity = reader.optional_whole("capacity_sectors", 1, 1 << 50)?.unwrap_or(held);
        if capacity > held {
            return Err(reader.inconsistent(
                "capacity_sectors",
                format!("is {capacity}, but the zones hold only {held} sectors"),
            ));
        }
        let last_zone = geometry.zones.len() - 1;
        let before_last = held - Geometry::new(&geometry).zone_sectors(last_zone);
        if capacity <= before_last {
            return Err(reader.inconsistent(
                "capacity_sectors",
                format!(
                    "is {capacity}, but the zones hold {held}: the last of them ({} sectors) would be empty",
                    held - before_last
                ),
            ));
        }
        let arm = read_seek(reader, geometry.cylinders)?;
        Ok(Self {
            sector_bytes: sector_bytes as u32,
            capacity,
            rotation_period_ps,
            geometry,
            seek: arm.curve,
            head_switch_ns: arm.head_switch_ns,
            write_settle_ns: arm.write_settle_ns,
            same_cylinder_ns: arm.same_cylinder_ns,
            overhead: read_overhead(reader)?,
            bus: read_bus(reader, sector_bytes)?,
            buffer: BufferParameters::read(reader)?,
            queue_depth: reader.optional_whole("queue_depth", 1, 65_536)?.unwrap_or(1) as u32,
        })
    }
}

fn read_rotation(reader: &mut TableReader<'_>) -> Result<u64, DeviceError> {
    let rpm = reader.optional_number("rpm", 0.0, 1e6)?;
    let period = reader.optional_number("rotation_period_ms", 0.0, 1e6)?;
    match (rpm, period) {
        (Some(rpm), None) if rpm >= 1.0 => Ok((60e12 / rpm).round() as u64),
        (Some(rpm), None) => Err(reader.error("rpm", format!("is {rpm}; the platter must turn"))),
        (None, Some(period)) if period >= 1e-3 => Ok((period * 1e9).round() as u64),
        (None, Some(period)) => {
            Err(reader.error("rotation_period_ms", format!("is {period}; the platter must turn")))
        }
        (None, None) => Err(reader.error("rpm", "is missing (or give rotation_period_ms)")),
        (Some(rpm), Some(period)) => Err(reader.inconsistent(
            "rpm",
            format!("is {rpm} and rotation_period_ms is {period}: give one of the two"),
        )),
    }
}

/// What the table `seek` holds.
struct Arm {
    curve: SeekCurve,
    head_switch_ns: u64,
    write_settle_ns: i64,
    same_cylinder_ns: u64,
}

fn read_seek(reader: &mut TableReader<'_>, cylinders: u32) -> Result<Arm, DeviceError> {
    let mut table = reader.table("seek")?;
    let head_switch_ns = table.time_ns("head_switch_ms", 0)?;
    let write_settle_ns = table
        .optional_number("write_settle_ms", -1e3, 1e3)?
        .map_or(0, |ms| (ms * 1e6).round() as i64);
    let same_cylinder_ns = table.time_ns("same_cylinder_ms", 0)?;
    let curve = if table.has("points_ms") {
        SeekCurve::Points(read_points(&mut table)?)
    } else {
        read_formula(&mut table)?
    };
    if let SeekCurve::Formula { .. } = &curve {
        check_formula(&table, &curve, cylinders)?;
    }
    table.finish()?;
    Ok(Arm { curve, head_switch_ns, write_settle_ns, same_cylinder_ns })
}

fn read_points(table: &mut TableReader<'_>) -> Result<Vec<(u32, u64)>, DeviceError> {
    let mut points: Vec<(u32, u64)> = Vec::new();
    let mut highest = 0.0_f64;
    for (distance, ms) in table.pairs("points_ms")? {
        if distance < 1.0 || distance.fract() != 0.0 || distance > f64::from(u32::MAX) {
            return Err(table.error("points_ms", format!("holds the distance {distance}")));
        }
        if !(0.0..=1e6).contains(&ms) {
            return Err(table.error("points_ms", format!("holds the time {ms} ms at {distance}")));
        }
        if points.last().is_some_and(|(before, _)| f64::from(*before) >= distance) {
            return Err(
                table.inconsistent("points_ms", format!("distance {distance} does not ascend"))
            );
        }
        if ms < highest * (1.0 - SEEK_DIP_ALLOWED) {
            return Err(table.inconsistent(
                "points_ms",
                format!(
                    "the seek curve falls from {highest} ms to {ms} ms at {distance} cylinders"
                ),
            ));
        }
        highest = highest.max(ms);
        points.push((distance as u32, (ms * 1e6).round() as u64));
    }
    if points.is_empty() {
        return Err(table.error("points_ms", "is empty"));
    }
    Ok(points)
}

fn read_formula(table: &mut TableReader<'_>) -> Result<SeekCurve, DeviceError> {
    let short_ns: Vec<u64> = table
        .numbers("short_ms")?
        .into_iter()
        .map(|ms| (ms.max(0.0) * 1e6).round() as u64)
        .collect();
    let boundary = table.whole("boundary_cylinders", 0, u64::from(u32::MAX))? as u32;
    let mut pair = |key: &'static str| -> Result<(f64, f64), DeviceError> {
        match table.numbers(key)?.as_slice() {
            [offset, slope] => Ok((*offset, *slope)),
            other => Err(table.error(key, format!("needs two numbers, it has {}", other.len()))),
        }
    };
    let root_ms = pair("root_ms")?;
    let line_ms = pair("line_ms")?;
    Ok(SeekCurve::Formula { short_ns, boundary, root_ms, line_ms })
}

fn check_formula(
    table: &TableReader<'_>,
    curve: &SeekCurve,
    cylinders: u32,
) -> Result<(), DeviceError> {
    let mut before = 0.0_f64;
    for distance in 1..cylinders.max(2) {
        let ms = curve.ms(distance);
        if !(0.0..1e6).contains(&ms) {
            return Err(
                table.inconsistent("root_ms", format!("gives {ms} ms at {distance} cylinders"))
            );
        }
        // Published formulas meet at the boundary only to their rounding (C2200A: 18.27 against 18.23 ms).
        if ms < before * (1.0 - SEEK_DIP_ALLOWED) || (distance > 64 && ms < before - 0.25) {
            return Err(table.inconsistent(
                "root_ms",
                format!("the seek curve falls from {before} ms to {ms} ms at {distance} cylinders"),
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

fn read_overhead(reader: &mut TableReader<'_>) -> Result<OverheadParameters, DeviceError> {
    let Some(mut table) = reader.optional_table("overhead")? else {
        return Ok(OverheadParameters::default());
    };
    let extra = if table.has("extra_write_disconnect") {
        let mut extra = table.table("extra_write_disconnect")?;
        let read = ExtraDisconnect {
            command_ns: extra.time_ns("command_ms", 0)?,
            disconnect_ns: extra.time_ns("disconnect_ms", 0)?,
            away_ns: extra.time_ns("away_ms", 0)?,
            second_disconnect_ns: extra.time_ns("second_disconnect_ms", 0)?,
            seek_delay_ns: extra.time_ns("seek_delay_ms", 0)?,
        };
        extra.finish()?;
        Some(read)
    } else {
        None
    };
    let overhead = OverheadParameters {
        per_request_ns: table.time_ns("per_request_ms", 0)?,
        read_hit_ns: [
            table.time_ns("read_hit_after_read_ms", 0)?,
            table.time_ns("read_hit_after_write_ms", 0)?,
        ],
        read_miss_ns: [
            table.time_ns("read_miss_after_read_ms", 0)?,
            table.time_ns("read_miss_after_write_ms", 0)?,
        ],
        write_hit_ns: [
            table.time_ns("write_hit_after_read_ms", 0)?,
            table.time_ns("write_hit_after_write_ms", 0)?,
        ],
        write_miss_ns: [
            table.time_ns("write_miss_after_read_ms", 0)?,
            table.time_ns("write_miss_after_write_ms", 0)?,
        ],
        read_completion_ns: table.time_ns("read_completion_ms", 0)?,
        write_completion_ns: table.time_ns("write_completion_ms", 0)?,
        data_preparation_ns: table.time_ns("data_preparation_ms", 0)?,
        first_reselect_ns: table.time_ns("first_reselect_ms", 0)?,
        other_reselect_ns: table.time_ns("other_reselect_ms", 0)?,
        read_disconnect_ns: [
            table.time_ns("read_disconnect_after_read_ms", 0)?,
            table.time_ns("read_disconnect_after_write_ms", 0)?,
        ],
        write_disconnect_ns: table.time_ns("write_disconnect_ms", 0)?,
        extra_write_disconnect: extra,
        minimum_seek_delay_ns: table.time_ns("minimum_seek_delay_ms", 0)?,
    };
    table.finish()?;
    Ok(overhead)
}

fn read_bus(reader: &mut TableReader<'_>, sector_bytes: u64) -> Result<BusParameters, DeviceError> {
    let Some(mut table) = reader.optional_table("bus")? else {
        return Ok(BusParameters::default());
    };
    let mut sector_ps = |rate: &'static str, time: &'static str| -> Result<u64, DeviceError> {
        let ms = table.optional_number(time, 0.0, 1e3)?;
        let Some(text) = table.optional_text(rate)? else {
            return Ok(ms.map_or(0, |ms| (ms * 1e9).round() as u64));
        };
        if ms.is_some() {
            return Err(
                table.inconsistent(rate, format!("and {time} say the same: give one of the two"))
            );
        }
        match parse_bytes_per_second(text).map_err(|error| table.error(rate, error))? {
            0 => Err(table.error(rate, "is zero: nothing would ever cross the bus")),
            bytes => Ok((sector_bytes as f64 * 1e12 / bytes as f64).round() as u64),
        }
    };
    let bus = BusParameters {
        read_sector_ps: sector_ps("read_rate", "read_sector_ms")?,
        write_sector_ps: sector_ps("write_rate", "write_sector_ms")?,
        hold_read: table.flag("hold_read", false)?,
        hold_write: table.flag("hold_write", false)?,
        read_fence_bytes: table.optional_whole("read_fence_bytes", 1, 1 << 40)?,
        read_on_crossing: table.flag("read_on_crossing", false)?,
        turnaround_ns: table.time_ns("turnaround_ms", 0)?,
        write_reserve_sectors: table.optional_whole("write_reserve_sectors", 1, 1 << 20)?,
    };
    table.finish()?;
    Ok(bus)
}
