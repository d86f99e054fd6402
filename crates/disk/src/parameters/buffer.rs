//! The drive's buffer: segments, read-ahead, and what is done with writes.

use agewell_config::{ConfigError, Keyed, Table, flag, keys, natural, number, whole};

use super::names::one_of;

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
const SEGMENTS_MAX: u32 = 1 << 16;

/// Sectors of the largest segment: more than any drive has.
const SECTORS_MAX: u64 = 1 << 40;

keys! {
    /// The table `[buffer]` of a device file.
    pub(super) struct BufferTable over BufferParameters::default() => BufferParameters {
        /// segments; 0 for a drive that keeps nothing
        segments = "segments" natural().to(SEGMENTS_MAX);
        /// sectors of a segment
        segment_sectors = "segment_sectors" whole().to(SECTORS_MAX) => "required with `segments`";
        /// segments that may hold write data at a time
        write_segments = "write_segments" natural().to(SEGMENTS_MAX);
        /// one segment is set aside for writes
        dedicated_write_segment = "dedicated_write_segment" flag();
        /// data stay in the buffer for later requests
        caching = "caching" flag();
        /// how far the drive reads on after a read
        read_ahead = "read_ahead" one_of(&ReadAhead::ALL);
        /// least read-ahead before another request is served
        read_ahead_minimum = "read_ahead_minimum_sectors" whole().to(SECTORS_MAX);
        /// most read-ahead
        read_ahead_maximum = "read_ahead_maximum_sectors" whole().to(SECTORS_MAX)
            => "`segment_sectors`";
        /// what read-ahead may do with requested data in a full segment
        requested_data = "requested_data" one_of(&KeepRequested::ALL);
        /// a read that was all in the buffer starts read-ahead on an idle arm
        read_ahead_on_idle_hit = "read_ahead_on_idle_hit" flag();
        /// sectors that pass before the requested ones are read too
        read_any_free = "read_any_free" flag();
        /// the arm gives up read-ahead in the middle of a sector
        stop_in_sector = "stop_in_sector" flag();
        /// share of the request that must be in the buffer before its bus transfer starts
        read_water_mark = "read_water_mark" number(0.0, 1.0);
        /// share of the write below which the drive asks for more data
        write_water_mark = "write_water_mark" number(0.0, 1.0);
        /// the marks are shares of the request rather than of the segment
        water_marks_by_request = "water_marks_by_request" flag();
        /// which writes are reported before they are on the medium
        fast_write = "fast_write" one_of(&FastWrite::ALL);
        /// sectors are read in the order they pass
        read_on_arrival = "read_on_arrival" flag();
        /// sectors are written in the order they pass
        write_on_arrival = "write_on_arrival" flag();
        /// a write that continues dirty data joins its segment
        combine_sequential_writes = "combine_sequential_writes" flag();
        /// reads find data that were written
        read_hits_on_write_data = "read_hits_on_write_data" flag();
        /// a write that hits stops read-ahead
        write_hit_stops_read_ahead = "write_hit_stops_read_ahead" flag();
        /// a partial hit is sent at once
        partial_hit_immediate = "partial_hit_immediate" flag();
        /// a read whose first sector is just being read ahead counts as a hit
        almost_read_hits = "almost_read_hits" flag();
    }
}

impl BufferParameters {
    pub(super) fn read(drive: &mut Table) -> Result<Self, ConfigError> {
        let Some(mut table) = drive.table("buffer")? else { return Ok(Self::default()) };
        let mut buffer = BufferTable::read(&mut table)?;
        if !table.has("read_ahead_maximum_sectors") {
            buffer.read_ahead_maximum = buffer.segment_sectors;
        }
        if buffer.segments > 0 && buffer.segment_sectors == 0 {
            return Err(
                table.invalid("segment_sectors", "must be at least 1 where there are segments")
            );
        }
        if buffer.segments == 0 && buffer.segment_sectors > 0 {
            return Err(table.invalid("segment_sectors", "needs at least one segment, there are 0"));
        }
        if buffer.segments == 0
            && buffer.read_ahead_maximum > 0
            && buffer.read_ahead != ReadAhead::None
        {
            return Err(table.invalid("read_ahead", "needs at least one segment, there are 0"));
        }
        table.finish()?;
        Ok(buffer)
    }
}
