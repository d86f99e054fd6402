//! The drive's buffer: segments, read-ahead, and what is done with writes.

use super::TableReader;
use super::geometry::read_choice;
use crate::DeviceError;

/// How far the drive reads on after a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadAhead {
    /// Not at all (DiskSim "buffer continuous read" 0).
    None,
    /// To the end of the track (1).
    Track,
    /// To the end of the cylinder (2).
    Cylinder,
    /// Until the segment is full (3).
    Segment,
    /// To the end of the next track, if a recent read was on the track before (4).
    TrackAhead,
}

impl ReadAhead {
    /// Every policy with its name in device files, in the order of DiskSim's numbers.
    pub const ALL: [(ReadAhead, &'static str); 5] = [
        (ReadAhead::None, "none"),
        (ReadAhead::Track, "track"),
        (ReadAhead::Cylinder, "cylinder"),
        (ReadAhead::Segment, "segment"),
        (ReadAhead::TrackAhead, "track-ahead"),
    ];
}

/// When a write is reported done before it is on the medium (DiskSim "fast write level").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FastWrite {
    /// Never (0).
    Never,
    /// If it continues the dirty data of the write just before (1).
    SequentialRun,
    /// If it continues dirty data, whatever came between (2).
    Sequential,
    /// Always: the drive reports every write once it is in the buffer (immediate reporting).
    Always,
}

impl FastWrite {
    /// Every level with its name in device files.
    pub const ALL: [(FastWrite, &'static str); 4] = [
        (FastWrite::Never, "never"),
        (FastWrite::SequentialRun, "sequential-run"),
        (FastWrite::Sequential, "sequential"),
        (FastWrite::Always, "always"),
    ];
}

/// What read-ahead may push out of a full segment (DiskSim "read-ahead over requested").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepRequested {
    /// Requested data stay; read-ahead stops when the segment is full (0).
    Keep,
    /// Read-ahead may replace requested data (1).
    Replace,
    /// Requested data are dropped as soon as the host has them (-1).
    Drop,
}

impl KeepRequested {
    /// Every policy with its name in device files.
    pub const ALL: [(KeepRequested, &'static str); 3] = [
        (KeepRequested::Keep, "keep"),
        (KeepRequested::Replace, "replace"),
        (KeepRequested::Drop, "drop"),
    ];
}

/// The buffer's size and policies.
#[allow(clippy::struct_excessive_bools)] // each is one switch of the drive's data sheet
#[derive(Debug, Clone, PartialEq)]
pub struct BufferParameters {
    /// Segments; 0 for a drive that keeps nothing.
    pub segments: u32,
    /// Sectors in a segment.
    pub segment_sectors: u64,
    /// Segments that may hold write data at a time.
    pub write_segments: u32,
    /// Whether one segment is set aside for writes.
    pub dedicated_write_segment: bool,
    /// Whether data stay in the buffer for later requests.
    pub caching: bool,
    /// Read-ahead policy.
    pub read_ahead: ReadAhead,
    /// Least read-ahead before another request is served, sectors.
    pub read_ahead_minimum: u64,
    /// Most read-ahead, sectors.
    pub read_ahead_maximum: u64,
    /// What read-ahead may overwrite.
    pub requested_data: KeepRequested,
    /// Whether a read that was all in the buffer starts read-ahead on an idle arm.
    pub read_ahead_on_idle_hit: bool,
    /// Whether sectors that pass before the requested ones are read too.
    pub read_any_free: bool,
    /// Whether the arm gives up read-ahead in the middle of a sector.
    pub stop_in_sector: bool,
    /// Fraction of the request that must be in the buffer before its bus transfer starts.
    pub read_water_mark: f64,
    /// Fraction of the write below which the drive asks for more data.
    pub write_water_mark: f64,
    /// Whether the marks are fractions of the request rather than of the segment.
    pub water_marks_by_request: bool,
    /// Early reporting of writes.
    pub fast_write: FastWrite,
    /// Read-on-arrival: sectors are taken in the order they pass.
    pub read_on_arrival: bool,
    /// Write-on-arrival.
    pub write_on_arrival: bool,
    /// Whether a write that continues dirty data joins its segment.
    pub combine_sequential_writes: bool,
    /// Whether reads find data that were written.
    pub read_hits_on_write_data: bool,
    /// Whether a write that hits stops read-ahead.
    pub write_hit_stops_read_ahead: bool,
    /// Whether a partial hit is sent at once.
    pub partial_hit_immediate: bool,
    /// Whether a read whose first sector is just being read ahead counts as a hit.
    pub almost_read_hits: bool,
}

impl Default for BufferParameters {
    fn default() -> Self {
        Self {
            segments: 0,
            segment_sectors: 0,
            write_segments: 1,
            dedicated_write_segment: false,
            caching: true,
            read_ahead: ReadAhead::None,
            read_ahead_minimum: 0,
            read_ahead_maximum: u64::MAX,
            requested_data: KeepRequested::Replace,
            read_ahead_on_idle_hit: false,
            read_any_free: false,
            stop_in_sector: false,
            read_water_mark: 0.0,
            write_water_mark: 0.0,
            water_marks_by_request: true,
            fast_write: FastWrite::Never,
            read_on_arrival: false,
            write_on_arrival: false,
            combine_sequential_writes: true,
            read_hits_on_write_data: true,
            write_hit_stops_read_ahead: true,
            partial_hit_immediate: true,
            almost_read_hits: false,
        }
    }
}

/// Segments of the largest buffer that is modelled, chosen by us: drives have up to a few hundred.
const SEGMENTS_MAX: u64 = 1 << 16;

fn count(table: &mut TableReader<'_>, key: &'static str, default: u32) -> Result<u32, DeviceError> {
    Ok(table.optional_whole(key, 0, SEGMENTS_MAX)?.map_or(default, |value| value as u32))
}

impl BufferParameters {
    pub(super) fn read(reader: &mut TableReader<'_>) -> Result<Self, DeviceError> {
        let default = Self::default();
        let Some(mut table) = reader.optional_table("buffer")? else { return Ok(default) };
        let segments = count(&mut table, "segments", default.segments)?;
        let segment_sectors =
            if segments > 0 { table.whole("segment_sectors", 1, 1 << 40)? } else { 0 };
        let buffer = Self {
            segments,
            segment_sectors,
            write_segments: count(&mut table, "write_segments", default.write_segments)?,
            dedicated_write_segment: table.flag("dedicated_write_segment", false)?,
            caching: table.flag("caching", default.caching)?,
            read_ahead: read_choice(&mut table, "read_ahead", &ReadAhead::ALL, default.read_ahead)?,
            read_ahead_minimum: table
                .optional_whole("read_ahead_minimum_sectors", 0, 1 << 40)?
                .unwrap_or(0),
            read_ahead_maximum: table
                .optional_whole("read_ahead_maximum_sectors", 0, 1 << 40)?
                .unwrap_or(segment_sectors),
            requested_data: read_choice(
                &mut table,
                "requested_data",
                &KeepRequested::ALL,
                default.requested_data,
            )?,
            read_ahead_on_idle_hit: table.flag("read_ahead_on_idle_hit", false)?,
            read_any_free: table.flag("read_any_free", false)?,
            stop_in_sector: table.flag("stop_in_sector", false)?,
            read_water_mark: table.optional_number("read_water_mark", 0.0, 1.0)?.unwrap_or(0.0),
            write_water_mark: table.optional_number("write_water_mark", 0.0, 1.0)?.unwrap_or(0.0),
            water_marks_by_request: table.flag("water_marks_by_request", true)?,
            fast_write: read_choice(&mut table, "fast_write", &FastWrite::ALL, default.fast_write)?,
            read_on_arrival: table.flag("read_on_arrival", false)?,
            write_on_arrival: table.flag("write_on_arrival", false)?,
            combine_sequential_writes: table.flag("combine_sequential_writes", true)?,
            read_hits_on_write_data: table.flag("read_hits_on_write_data", true)?,
            write_hit_stops_read_ahead: table.flag("write_hit_stops_read_ahead", true)?,
            partial_hit_immediate: table.flag("partial_hit_immediate", true)?,
            almost_read_hits: table.flag("almost_read_hits", false)?,
        };
        if buffer.read_ahead_maximum > 0
            && buffer.segments == 0
            && buffer.read_ahead != ReadAhead::None
        {
            return Err(table.inconsistent("read_ahead", "needs at least one segment, there are 0"));
        }
        table.finish()?;
        Ok(buffer)
    }
}
