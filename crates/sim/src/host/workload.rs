//! Where a log's file requests come from.

use std::path::Path;

use agewell_core::{FileAction, FileRequest, Operation, RandomStreams, SECTOR_BYTES, SimTime};
use agewell_layout::block_layout::FileBlock;
use agewell_trace::record::BlockBatch;
use agewell_trace::workload::{
    AuspexLike, Behaviour, BlockChoice, ClientWorkload, DecisionSupport, FileWorkload, HotCold,
    LongTerm, Microbenchmark, Multimedia, RandomUpdate, ScientificSimulation, Sequential,
    SoftwareDevelopment, Survey, Surveyor, Tpcb, TransactionProcessing, UpdateWorkload,
    WorkloadError, Zipf,
};
use agewell_trace::{
    BATCH_ROWS, BlockTrace, FileOperationTrace, FilterPipe, Format, ReadOptions, open_block_trace,
};

use super::file_trace::FilesTraced;
use super::kept_requests::{KEPT_REQUESTS_MAX, KeptRequests, PackedRequests};
use super::numbers::{NUMBERS_MAX, Numbers};
use crate::config::{FileTraceTable, FileWorkloadKind, TraceFile};
use crate::error::RunError;
use crate::places::resolve_path;

/// Requests given at a time.
const BATCH_REQUESTS: usize = 8192;

/// A generator that knows what is live before its first request, and at most.
pub(crate) trait Surveyed: FileWorkload {
    fn known_survey(&self) -> Survey;
}

impl<C: BlockChoice> Surveyed for UpdateWorkload<C>
where
    UpdateWorkload<C>: FileWorkload,
{
    fn known_survey(&self) -> Survey {
        self.survey()
    }
}

impl Surveyed for AuspexLike {
    fn known_survey(&self) -> Survey {
        self.survey()
    }
}

impl<B: Behaviour> Surveyed for ClientWorkload<B> {
    fn known_survey(&self) -> Survey {
        self.survey()
    }
}

impl Surveyed for Microbenchmark {
    fn known_survey(&self) -> Survey {
        self.survey()
    }
}

/// An open workload.
pub(crate) enum WorkloadSource {
    Generated(Box<dyn Surveyed>),
    Tpcb(Box<Tpcb>),
    Blocks(Box<BlocksAsFile>),
    Kept(KeptRequests),
    Files(Box<FilesTraced>),
}

impl WorkloadSource {
    /// Opens `kind`; paths are relative to `base`. `block_bytes` is the layout's.
    ///
    /// # Errors
    /// If a parameter is out of range or a trace cannot be opened.
    pub(crate) fn open(
        kind: &FileWorkloadKind,
        base: &Path,
        seed: u64,
        block_bytes: u64,
    ) -> Result<Self, RunError> {
        let streams = RandomStreams::new(seed);
        match kind {
            FileWorkloadKind::RandomUpdate(update) => {
                generated(RandomUpdate::new(update, &streams))
            }
            FileWorkloadKind::HotCold(hot) => generated(HotCold::new(hot, &streams)),
            FileWorkloadKind::Zipf(zipf) => generated(Zipf::new(zipf, &streams)),
            FileWorkloadKind::Sequential(update) => generated(Sequential::new(update)),
            FileWorkloadKind::AuspexLike(auspex) => generated(AuspexLike::new(auspex, &streams)),
            FileWorkloadKind::Microbenchmark(parameters) => {
                generated(Microbenchmark::new(parameters, &streams))
            }
            FileWorkloadKind::Multimedia(parameters) => {
                generated(Multimedia::new(parameters, &streams))
            }
            FileWorkloadKind::SoftwareDevelopment(parameters) => {
                generated(SoftwareDevelopment::new(parameters, &streams))
            }
            FileWorkloadKind::TransactionProcessing(parameters) => {
                generated(TransactionProcessing::new(parameters, &streams))
            }
            FileWorkloadKind::DecisionSupport(parameters) => {
                generated(DecisionSupport::new(parameters, &streams))
            }
            FileWorkloadKind::ScientificSimulation(parameters) => {
                generated(ScientificSimulation::new(parameters, &streams))
            }
            FileWorkloadKind::LongTerm(parameters) => {
                generated(LongTerm::new(parameters, &streams))
            }
            FileWorkloadKind::Tpcb(tpcb) => Ok(WorkloadSource::Tpcb(Box::new(
                Tpcb::new(tpcb, &streams).map_err(|error| out_of_range(&error))?,
            ))),
            FileWorkloadKind::BlockTrace(TraceFile { path, format, filters, skip_bad }) => {
                let format = format.as_deref().map(Format::from_name).transpose()?;
                let options = ReadOptions { format, skip_bad: *skip_bad };
                let filters = FilterPipe::parse(filters)?;
                let trace = open_block_trace(&read_twice(base, path)?, &options)?;
                Ok(WorkloadSource::Blocks(Box::new(BlocksAsFile::new(trace, filters, block_bytes))))
            }
            FileWorkloadKind::FileTrace(FileTraceTable { path, part, repeat }) => {
                let trace = FileOperationTrace::open(&read_twice(base, path)?)?;
                let traced = FilesTraced::read(trace, block_bytes, part.as_deref(), *repeat)?;
                Ok(WorkloadSource::Files(Box::new(traced)))
            }
        }
    }

    /// What is live before the first request, and at most; reads a trace to its end, after which it
    /// knows the directories of all files. With it the requests, if all had to be read and they are
    /// not too many to keep.
    ///
    /// # Errors
    /// The first thing wrong with a trace.
    pub(crate) fn survey(&mut self) -> Result<(Survey, Option<KeptRequests>), RunError> {
        let trace = match self {
            WorkloadSource::Generated(workload) => return Ok((workload.known_survey(), None)),
            WorkloadSource::Tpcb(workload) => return Ok((workload.survey(), None)),
            WorkloadSource::Files(trace) => return Ok((trace.survey(), None)),
            WorkloadSource::Kept(_) => unreachable!("what is kept has been surveyed"),
            WorkloadSource::Blocks(trace) => trace,
        };
        let (mut surveyor, mut batch) = (Surveyor::default(), Vec::new());
        let (mut batches, mut kept) = (Some(Vec::new()), 0);
        while trace.next_batch(&mut batch)? {
            surveyor.note_all(&batch);
            kept += batch.len();
            match &mut batches {
                Some(batches) if kept <= KEPT_REQUESTS_MAX => {
                    batches.push(PackedRequests::of(&batch));
                }
                batches => *batches = None,
            }
        }
        let without_transfer = trace.without_transfer;
        let keep = |batches| KeptRequests::new(batches, without_transfer);
        Ok((surveyor.finish(), batches.map(keep)))
    }

    /// Replaces the contents of `batch` by the next requests; false at the end.
    ///
    /// # Errors
    /// The first thing wrong with a trace.
    pub(crate) fn next_batch(&mut self, batch: &mut Vec<FileRequest>) -> Result<bool, RunError> {
        match self {
            WorkloadSource::Generated(workload) => workload.next_batch(batch, BATCH_REQUESTS),
            WorkloadSource::Tpcb(workload) => workload.next_batch(batch, BATCH_REQUESTS),
            WorkloadSource::Blocks(trace) => return trace.next_batch(batch),
            WorkloadSource::Kept(requests) => return Ok(requests.next_batch(batch)),
            WorkloadSource::Files(trace) => trace.next_batch(batch, BATCH_REQUESTS),
        }
        Ok(!batch.is_empty())
    }

    /// The next requests where they are updates that differ in nothing but the block; see
    /// [`FileWorkload::next_updates`].
    pub(crate) fn next_updates(&mut self, blocks: &mut Vec<u32>) -> Option<FileRequest> {
        match self {
            WorkloadSource::Generated(workload) => workload.next_updates(blocks, BATCH_REQUESTS),
            _ => None,
        }
    }

    /// The directory of a file that a request has named so far; see
    /// [`FileWorkload::directory_of`]. Traces of blocks have no directories.
    pub(crate) fn directory_of(&self, file: u32) -> u32 {
        match self {
            WorkloadSource::Generated(workload) => workload.directory_of(file),
            WorkloadSource::Tpcb(workload) => workload.directory_of(file),
            WorkloadSource::Blocks(_) | WorkloadSource::Kept(_) => 0,
            WorkloadSource::Files(trace) => trace.directory_of(file),
        }
    }

    /// Whether the workload depends on which blocks the layout moves; see [`Self::moved`].
    pub(crate) fn wants_moves(&self) -> bool {
        matches!(self, WorkloadSource::Tpcb(workload) if workload.gathers())
    }

    /// A collection has given the block of this name another address.
    pub(crate) fn moved(&mut self, name: FileBlock) {
        if let WorkloadSource::Tpcb(workload) = self {
            workload.moved(name.file, name.block);
        }
    }

    /// Transactions so far, if the workload is made of them.
    pub(crate) fn transactions(&self) -> Option<u64> {
        match self {
            WorkloadSource::Tpcb(workload) => Some(workload.transactions()),
            _ => None,
        }
    }

    /// What was left out.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let left_out = match self {
            WorkloadSource::Blocks(trace) => trace.without_transfer,
            WorkloadSource::Kept(requests) => requests.without_transfer(),
            _ => 0,
        };
        let text =
            format!("{left_out} requests that move no data (discard, flush, empty) left out");
        if left_out > 0 { vec![text] } else { Vec::new() }
    }
}

fn generated(
    made: Result<impl Surveyed + 'static, WorkloadError>,
) -> Result<WorkloadSource, RunError> {
    Ok(WorkloadSource::Generated(Box::new(made.map_err(|error| out_of_range(&error))?)))
}

fn out_of_range(error: &WorkloadError) -> RunError {
    RunError::Input(format!("[workload]: {error}"))
}

fn read_twice(base: &Path, path: &str) -> Result<std::path::PathBuf, RunError> {
    if path == "-" {
        return Err(RunError::Input(
            "[workload] path: a log reads its trace twice, to learn what was live before it; give \
             a file, not standard input"
                .into(),
        ));
    }
    Ok(resolve_path(base, path))
}

/// A block trace, taken as one large file a device. A block is written or read whole if any of it
/// is.
pub(crate) struct BlocksAsFile {
    trace: BlockTrace,
    filters: FilterPipe,
    block_sectors: u64,
    /// What a sector is shifted by to become a block, where blocks are a power of two: a division
    /// costs as much as all else that is done to a request here.
    block_shift: Option<u32>,
    records: BlockBatch,
    devices: Numbers,
    latest_ns: u64,
    without_transfer: u64,
}

impl BlocksAsFile {
    fn new(trace: BlockTrace, filters: FilterPipe, block_bytes: u64) -> Self {
        let block_sectors = block_bytes / SECTOR_BYTES;
        let is_power = block_sectors.is_power_of_two();
        Self {
            trace,
            filters,
            block_sectors,
            block_shift: is_power.then(|| block_sectors.trailing_zeros()),
            records: BlockBatch::default(),
            devices: Numbers::default(),
            latest_ns: 0,
            without_transfer: 0,
        }
    }

    fn next_batch(&mut self, batch: &mut Vec<FileRequest>) -> Result<bool, RunError> {
        batch.clear();
        batch.reserve(BATCH_ROWS);
        let more = self.trace.next_batch(&mut self.records)?;
        let first = self.records.enqueue_ns.first();
        let past_end = first.is_some_and(|first| self.filters.is_past_end(*first));
        self.filters.apply(&self.trace.metadata, &mut self.records)?;
        let (block_sectors, block_shift) = (self.block_sectors, self.block_shift);
        let block_of = |sector: u64| match block_shift {
            Some(shift) => sector >> (shift & 63),
            None => sector / block_sectors,
        };
        let Self { records, devices, .. } = self;
        let mut latest_ns = self.latest_ns;
        let BlockBatch { enqueue_ns, device, sector, sectors, operation, .. } = &*records;
        let rows = enqueue_ns.iter().zip(device).zip(sector).zip(sectors).zip(operation);
        for ((((time_ns, device), sector), sectors), operation) in rows {
            let operation =
                Operation::from_code(*operation).expect("readers give canonical operation codes");
            if !operation.transfers_data() || *sectors == 0 {
                self.without_transfer += 1;
                continue;
            }
            let last = block_of(*sector + u64::from(*sectors) - 1);
            if last >= NUMBERS_MAX {
                return Err(beyond_numbers(*sector, last));
            }
            let first = block_of(*sector);
            latest_ns = latest_ns.max(*time_ns);
            let writes = operation == Operation::Write;
            batch.push(FileRequest {
                time: SimTime(latest_ns),
                client: 0,
                file: devices.of(*device),
                block: first as u32,
                blocks: (last - first + 1) as u32,
                action: if writes { FileAction::Write } else { FileAction::Read },
            });
        }
        self.latest_ns = latest_ns;
        Ok(more && !past_end)
    }
}

#[cold]
fn beyond_numbers(sector: u64, block: u64) -> RunError {
    RunError::Input(format!(
        "[workload]: sector {sector} is block {block} of the layout, more than a log can number \
         (2^31); use larger blocks or a filter such as 'sector=0..N'"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches_of(mut source: WorkloadSource) -> Vec<Vec<FileRequest>> {
        let (mut batches, mut batch) = (Vec::new(), Vec::new());
        while source.next_batch(&mut batch).unwrap() {
            batches.push(batch.clone());
        }
        batches
    }

    #[test]
    fn what_is_kept_of_a_trace_is_what_reading_it_again_gives() {
        let directory = tempfile::tempdir().unwrap();
        let records = (0..20_000_u64).flat_map(|number| {
            let mut bytes = ((number / 100) as u32).to_le_bytes().to_vec();
            bytes.extend_from_slice(&(number * 7919 % 50_000).to_le_bytes());
            bytes.extend_from_slice(&(512 * (number % 40 + 1) as u32).to_le_bytes());
            bytes.extend_from_slice(&(-1_i64).to_le_bytes());
            bytes
        });
        let path = directory.path().join("references.bin");
        std::fs::write(&path, records.collect::<Vec<u8>>()).unwrap();
        let kind = FileWorkloadKind::BlockTrace(TraceFile {
            path: path.display().to_string(),
            format: Some("oracle-general".into()),
            filters: Vec::new(),
            skip_bad: false,
        });
        let open = || WorkloadSource::open(&kind, directory.path(), 1, 4096).unwrap();
        let (survey, kept) = open().survey().unwrap();
        assert_eq!(survey.requests, 20_000);
        let kept = kept.expect("they are few");
        let read = batches_of(open());
        assert!(read.len() > 1);
        assert_eq!(batches_of(WorkloadSource::Kept(kept.clone())), read);
        assert_eq!(batches_of(WorkloadSource::Kept(kept)), read);
    }
}
