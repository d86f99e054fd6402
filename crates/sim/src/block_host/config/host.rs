//! The `[host]` table: write buffers, syncs, caches, and what is done when nobody asks.

use agewell_core::SimDuration;
use serde_json::{Value, json};

use crate::cache::Eviction;
use crate::config::{ConfigError, Table};
use crate::prefetch::Prefetch;

/// Write buffers and caches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Host {
    /// A sync follows every so many block writes of a client; 0 for never. Syncs of the workload
    /// itself count besides.
    pub sync_every: u32,
    /// Buffers are flushed this often (Matthews 1999, §5.2.2: 30 s); zero for never.
    pub flush_interval: SimDuration,
    /// Whether every client has a write buffer of its own.
    pub buffers_per_client: bool,
    /// Size of a write buffer.
    pub buffer_size: BufferSize,
    /// Bytes in each client's cache.
    pub client_cache_bytes: u64,
    /// Bytes in the server's cache.
    pub server_cache_bytes: u64,
    /// What the caches throw out.
    pub eviction: Eviction,
    /// Host time for each block read from disk.
    pub read_overhead: SimDuration,
    /// Host time for each block written.
    pub write_overhead: SimDuration,
    /// Collection in idle periods, if any.
    pub idle_cleaning: Option<IdleCleaning>,
    /// What is read before anybody asks.
    pub prefetch: Prefetch,
    /// Whether a device that has use for it is told what dies.
    pub discards: bool,
    /// Whether a drive is told to finish its writes whenever a layout relies on them.
    pub flushes: bool,
}

/// Size of a write buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferSize {
    /// As large as the largest segment (Matthews 1999, §5.2.2).
    Segment,
    /// No buffer: every block is sent to the disk at once.
    Block,
    /// So many bytes.
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

#[derive(Clone, Copy, PartialEq)]
enum Idle {
    None,
    Clean,
}

const BUFFERS: &[(&str, bool)] = &[("shared", false), ("per-client", true)];

/// Most blocks of a segment, and of a write buffer; chosen by us: 64 GiB of 4 KiB, beyond which a
/// mistake is likelier than a meaning.
pub(super) const SEGMENT_BLOCKS_MAX: u64 = 1 << 24;

impl Host {
    pub(super) fn read(value: Value, block_bytes: u64) -> Result<Self, ConfigError> {
        let mut table = Table::new("[host]", value)?;
        let buffer_size = Self::read_buffer_size(&mut table, block_bytes)?;
        let evictions: Vec<(&str, Eviction)> =
            Eviction::ALL.iter().map(|eviction| (eviction.name(), *eviction)).collect();
        let idle = [("none", Idle::None), ("clean", Idle::Clean)];
        let idle = table.choice("idle_cleaning", &idle, Some(Idle::None))?;
        // An interactive user pauses about that long; the keys count only where cleaning is asked for.
        let after = table.duration("idle_after")?.unwrap_or(SimDuration(100_000_000));
        let segments = super::positive(&mut table, "idle_segments", 8)?;
        let host = Self {
            sync_every: super::small(&mut table, "sync_every", 0)?,
            flush_interval: table
                .duration("flush_interval")?
                .unwrap_or(SimDuration(30_000_000_000)),
            buffers_per_client: table.choice("buffers", BUFFERS, Some(false))?,
            buffer_size,
            client_cache_bytes: table.bytes("client_cache")?.unwrap_or(16_000_000),
            server_cache_bytes: table.bytes("server_cache")?.unwrap_or(128_000_000),
            eviction: table.choice("eviction", &evictions, Some(Eviction::Lru))?,
            read_overhead: table.duration("read_overhead")?.unwrap_or(SimDuration::ZERO),
            write_overhead: table.duration("write_overhead")?.unwrap_or(SimDuration::ZERO),
            idle_cleaning: (idle == Idle::Clean).then_some(IdleCleaning { after, segments }),
            prefetch: Self::read_prefetch(&mut table)?,
            discards: table.boolean("discards")?.unwrap_or(true),
            flushes: table.boolean("flushes")?.unwrap_or(false),
        };
        table.finish()?;
        if host.prefetch != Prefetch::None && host.server_cache_bytes < block_bytes {
            return Err(ConfigError(
                "[host] prefetch: what is read ahead is kept in server_cache; give it room".into(),
            ));
        }
        Ok(host)
    }

    fn read_prefetch(table: &mut Table) -> Result<Prefetch, ConfigError> {
        // 128 KB of 8 KB blocks, as much as the drives read ahead (Matthews 1999, §6.2.2).
        let blocks = super::positive(table, "prefetch_blocks", 16)?;
        let lookahead = super::positive(table, "prefetch_lookahead", 2)?;
        let chance = table.number("prefetch_chance", 0.0, 1.0)?.unwrap_or(0.5);
        let kinds = [
            ("none", Prefetch::None),
            ("sequential", Prefetch::Sequential { blocks }),
            ("cluster", Prefetch::Cluster),
            ("file-graph", Prefetch::FileGraph { lookahead, chance, blocks }),
        ];
        table.choice("prefetch", &kinds, Some(Prefetch::None))
    }

    fn read_buffer_size(table: &mut Table, block_bytes: u64) -> Result<BufferSize, ConfigError> {
        match table.string("buffer_size")?.as_deref() {
            None | Some("segment") => Ok(BufferSize::Segment),
            Some("block") => Ok(BufferSize::Block),
            Some(_) => match table.bytes("buffer_size")? {
                Some(bytes)
                    if bytes.is_multiple_of(block_bytes)
                        && (1..=SEGMENT_BLOCKS_MAX).contains(&(bytes / block_bytes)) =>
                {
                    Ok(BufferSize::Bytes(bytes))
                }
                _ => Err(table.invalid("buffer_size", "must be from 1 to 2^24 whole blocks")),
            },
        }
    }

    pub(super) fn resolved(&self) -> Value {
        let duration = |duration: SimDuration| format!("{} ns", duration.0);
        let idle = self
            .idle_cleaning
            .unwrap_or(IdleCleaning { after: SimDuration(100_000_000), segments: 8 });
        let mut table = json!({
            "sync_every": self.sync_every,
            "flush_interval": duration(self.flush_interval),
            "buffers": if self.buffers_per_client { "per-client" } else { "shared" },
            "buffer_size": match self.buffer_size {
                BufferSize::Segment => "segment".to_owned(),
                BufferSize::Block => "block".to_owned(),
                BufferSize::Bytes(bytes) => format!("{bytes} B"),
            },
            "client_cache": format!("{} B", self.client_cache_bytes),
            "server_cache": format!("{} B", self.server_cache_bytes),
            "eviction": self.eviction.name(),
            "read_overhead": duration(self.read_overhead),
            "write_overhead": duration(self.write_overhead),
            "idle_cleaning": if self.idle_cleaning.is_some() { "clean" } else { "none" },
            "idle_after": duration(idle.after),
            "idle_segments": idle.segments,
            "discards": self.discards,
            "flushes": self.flushes,
        });
        match self.prefetch {
            Prefetch::None => table["prefetch"] = json!("none"),
            Prefetch::Cluster => table["prefetch"] = json!("cluster"),
            Prefetch::Sequential { blocks } => {
                table["prefetch"] = json!("sequential");
                table["prefetch_blocks"] = json!(blocks);
            }
            Prefetch::FileGraph { lookahead, chance, blocks } => {
                table["prefetch"] = json!("file-graph");
                table["prefetch_lookahead"] = json!(lookahead);
                table["prefetch_chance"] = json!(chance);
                table["prefetch_blocks"] = json!(blocks);
            }
        }
        table
    }
}
