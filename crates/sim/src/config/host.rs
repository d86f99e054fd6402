//! The `[host]` table: write buffers, syncs, caches, and idle-time work.

use agewell_config::{Form, Key, Keyed, choice, count, flag, keys, natural, number, size, time};
use agewell_core::SimDuration;
use serde_json::{Value, json};

use super::layout::SEGMENT_BLOCKS_MAX;
use super::{ConfigError, Table};
use crate::cache::Eviction;
use crate::prefetch::Prefetch;

/// Write buffers and caches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Host {
    /// The keys that are plain.
    pub keys: HostTable,
    /// Collection in idle periods, if any.
    pub idle_cleaning: Option<IdleCleaning>,
    /// What is prefetched.
    pub prefetch: Prefetch,
}

/// Size of a write buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferSize {
    /// As large as the largest segment (Matthews 1999, §5.2.2).
    Segment,
    /// No buffer: every block is sent to the disk at once.
    Block,
    /// This number of bytes.
    Bytes(u64),
}

/// Collecting while the disk has nothing else to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleCleaning {
    /// Idle time before it begins.
    pub after: SimDuration,
    /// Free segments beyond the reserve that it stops at.
    pub segments: u32,
}

/// A way of reading ahead by name; its numbers stand in keys of their own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PrefetchName {
    /// Nothing.
    None,
    /// Files in order.
    Sequential,
    /// Blocks that were regrouped together.
    Cluster,
    /// Files that follow.
    FileGraph,
}

const PREFETCHES: &[(&str, PrefetchName)] = &[
    ("none", PrefetchName::None),
    ("sequential", PrefetchName::Sequential),
    ("cluster", PrefetchName::Cluster),
    ("file-graph", PrefetchName::FileGraph),
];

/// The size of a buffer as a key has it.
#[derive(Debug, Clone, Copy)]
struct BufferForm;

impl Form for BufferForm {
    type Value = BufferSize;

    fn read(&self, given: &Value) -> Result<BufferSize, String> {
        match given.as_str() {
            Some("segment") => Ok(BufferSize::Segment),
            Some("block") => Ok(BufferSize::Block),
            _ => size().read(given).map(BufferSize::Bytes),
        }
    }

    fn write(&self, value: &BufferSize) -> Value {
        match value {
            BufferSize::Segment => json!("segment"),
            BufferSize::Block => json!("block"),
            BufferSize::Bytes(bytes) => size().write(bytes),
        }
    }

    fn describe(&self) -> String {
        "`\"segment\"`, `\"block\"`, or a size".to_owned()
    }

    fn schema(&self) -> Value {
        json!({"type": "string"})
    }
}

keys! {
    /// The keys of a host.
    #[derive(Copy)]
    pub struct HostTable {
        /// a sync follows every so many block writes of a client; 0: never. Syncs of the workload count
        /// besides
        <"1999 syncs random updates every 4">
        sync_every: u32 = "sync_every" natural().or(0);
        /// buffers are written out this often; zero: never
        <"1999, section 5.2.2">
        flush_interval: SimDuration = "flush_interval" time().or(SimDuration(30_000_000_000));
        /// one write buffer, or one each
        <"ours">
        buffers_per_client: bool = "buffers"
            choice(&[("shared", false), ("per-client", true)]).or(false);
        /// as large as a segment, of 1 to 2^24 whole blocks, or `"block"`: straight to the disk
        <"1999, section 5.2.2">
        buffer_size: BufferSize = "buffer_size" BufferForm.or(BufferSize::Segment);
        /// size of each client's cache
        <"1999, section 5.2.2">
        client_cache_bytes: u64 = "client_cache" size().or(16_000_000);
        /// size of the server's cache
        <"1999, section 5.2.2">
        server_cache_bytes: u64 = "server_cache" size().or(128_000_000);
        /// what the caches throw out
        <"1999">
        eviction: Eviction = "eviction"
            choice(&Eviction::ALL.map(|each| (each.name(), each))).or(Eviction::Lru);
        /// host time for each block read from disk
        read_overhead: SimDuration = "read_overhead" time().or(SimDuration::ZERO);
        /// host time for each block written
        write_overhead: SimDuration = "write_overhead" time().or(SimDuration::ZERO);
        /// also collect while nobody asks
        <"1999 collects in the foreground">
        cleans_when_idle: bool = "idle_cleaning"
            choice(&[("none", false), ("clean", true)]).or(false);
        // An interactive user pauses about that long.
        /// idle time before that begins
        <"ours">
        idle_after: SimDuration = "idle_after" time().or(SimDuration(100_000_000));
        /// free segments beyond the reserve at which it stops
        <"ours">
        idle_segments: u32 = "idle_segments" count().or(8);
        /// tell a drive that has use for it (flash) what is dead: segments of a log that are free, places
        /// that deletions and moves leave, once the map on disk does not name them. Other drives are
        /// told nothing
        <"ours: what continuous or weekly trimming does">
        discards: bool = "discards" flag().or(true);
        /// tell the drive to finish its writes whenever the layout relies on them: at each commit that
        /// has written something. `false` is a drive that is protected against power loss
        <"ours">
        flushes: bool = "flushes" flag().or(false);
        /// what is read into the server's cache before anybody asks, once a read has been answered (with
        /// it, where the drive holds several commands). `"sequential"`: the next blocks of a file that
        /// is read in order; `"cluster"`: what a reorganising layout has put together with a block that
        /// was read; `"file-graph"`: the beginnings of files that follow the one just begun
        <"1999, sections 3.7 and 7.2.1; Griffioen & Appleton 1994">
        prefetch: PrefetchName = "prefetch" choice(PREFETCHES).or(PrefetchName::None);
        /// blocks of the file, or of each following file
        <"128 KB, as the drives of 1999 read ahead">
        prefetch_blocks: u32 = "prefetch_blocks" count().or(16);
        /// with `"file-graph"`: openings within which a file counts as following
        <"ours">
        prefetch_lookahead: u32 = "prefetch_lookahead" count().or(2);
        /// with `"file-graph"`: how often it must have followed
        <"ours">
        prefetch_chance: f64 = "prefetch_chance" number(0.0, 1.0).or(0.5);
    }
}

impl Host {
    pub(super) fn read(value: Value, block_bytes: u64) -> Result<Self, ConfigError> {
        let mut table = Table::new("[host]", value)?;
        let keys = HostTable::read(&mut table)?;
        if let BufferSize::Bytes(bytes) = keys.buffer_size
            && (!bytes.is_multiple_of(block_bytes)
                || !(1..=SEGMENT_BLOCKS_MAX).contains(&(bytes / block_bytes)))
        {
            return Err(table.invalid("buffer_size", "must be from 1 to 2^24 whole blocks"));
        }
        table.finish()?;
        let blocks = keys.prefetch_blocks;
        let prefetch = match keys.prefetch {
            PrefetchName::None => Prefetch::None,
            PrefetchName::Sequential => Prefetch::Sequential { blocks },
            PrefetchName::Cluster => Prefetch::Cluster,
            PrefetchName::FileGraph => Prefetch::FileGraph {
                lookahead: keys.prefetch_lookahead,
                chance: keys.prefetch_chance,
                blocks,
            },
        };
        if prefetch != Prefetch::None && keys.server_cache_bytes < block_bytes {
            return Err(ConfigError(
                "[host] prefetch: what is read ahead is kept in server_cache; give it room".into(),
            ));
        }
        let (after, segments) = (keys.idle_after, keys.idle_segments);
        let idle_cleaning = keys.cleans_when_idle.then_some(IdleCleaning { after, segments });
        Ok(Self { keys, idle_cleaning, prefetch })
    }

    pub(super) fn resolved(&self) -> Value {
        HostTable::resolved(&self.keys)
    }

    pub(super) fn keys() -> Vec<Key> {
        HostTable::keys()
    }
}
