//! Where a run's requests come from: a trace or a generator, as batches of columns.

use std::path::Path;

use agewell_core::{RandomStreams, SectorCount};
use agewell_trace::record::BlockBatch;
use agewell_trace::{BlockTrace, FilterPipe, Format, ReadOptions, open_block_trace};

use super::synthetic::Poisson;
use crate::config::{TraceWorkload, Workload};
use crate::error::RunError;
use crate::places::resolve_path;

/// A stream of request batches.
pub(crate) enum Source {
    /// Records of a trace, filtered.
    Trace {
        /// The reader.
        trace: Box<BlockTrace>,
        /// The filters.
        filters: Box<FilterPipe>,
    },
    /// A generator.
    Poisson(Box<Poisson>),
}

impl Source {
    /// Opens the source of `workload`; a trace's path is relative to `base`.
    ///
    /// # Errors
    /// If the trace cannot be opened, a filter is not understood, or a generated request is larger
    /// than the disk.
    pub(crate) fn open(
        workload: &Workload,
        base: &Path,
        capacity: SectorCount,
        seed: u64,
    ) -> Result<Self, RunError> {
        match workload {
            Workload::Trace(trace) => Self::open_trace(trace, base),
            Workload::Poisson(load) => Poisson::new(load, capacity.0, RandomStreams::new(seed))
                .map(|poisson| Source::Poisson(Box::new(poisson)))
                .map_err(RunError::Input),
        }
    }

    fn open_trace(workload: &TraceWorkload, base: &Path) -> Result<Self, RunError> {
        let format = workload.file.format.as_deref().map(Format::from_name).transpose()?;
        let options = ReadOptions { format, skip_bad: workload.file.skip_bad };
        let filters = FilterPipe::parse(&workload.file.filters)?;
        let trace = open_block_trace(&resolve_path(base, &workload.file.path), &options)?;
        Ok(Source::Trace { trace: Box::new(trace), filters: Box::new(filters) })
    }

    /// Replaces `batch` by the next requests; false at the end. A batch may be empty before the end
    /// if the filters let nothing through.
    ///
    /// # Errors
    /// The first thing wrong with the trace.
    pub(crate) fn next_batch(&mut self, batch: &mut BlockBatch) -> Result<bool, RunError> {
        match self {
            Source::Poisson(poisson) => Ok(poisson.next_batch(batch)),
            Source::Trace { trace, filters } => {
                let more = trace.next_batch(batch)?;
                let past_end =
                    batch.enqueue_ns.first().is_some_and(|first| filters.is_past_end(*first));
                filters.apply(&trace.metadata, batch)?;
                Ok(more && !past_end)
            }
        }
    }

    /// Civil time at the workload's zero, ns since 1970 in its own zone, if it carries one.
    pub(crate) fn start_wall_ns(&self) -> Option<i64> {
        match self {
            Source::Trace { trace, .. } => trace.metadata.start_wall_ns,
            Source::Poisson(_) => None,
        }
    }

    /// What the reader changed or left out.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let Source::Trace { trace, .. } = self else { return Vec::new() };
        let skipped = trace.metadata.skipped_records;
        let warnings =
            trace.metadata.warnings.iter().map(|(text, count)| format!("{count} {text}"));
        let first = trace.metadata.first_skipped.as_deref().unwrap_or("");
        let skipped =
            (skipped > 0).then(|| format!("{skipped} bad records skipped; the first: {first}"));
        warnings.chain(skipped).collect()
    }
}
