//! Naming the files of recorded requests: a snapshot before, one behind, and the trace once more.

use std::path::{Path, PathBuf};

use agewell_snapshot::source::{self, TakeOptions};
use agewell_snapshot::{Snapshot, SnapshotError};
use agewell_trace::{
    BlockBatch, LocatedWriter, Paths, ReadOptions, TraceMetadata, open_block_trace,
};

use crate::RecordError;
use crate::device::Disk;
use crate::places::{Attribution, Places};
use crate::recorder::{Phase, Progress, RecordOptions, Recording, wall_ns};

type Ask<'a> = dyn FnMut(&Progress) -> Result<bool, RecordError> + 'a;

/// What lay where when the recording began.
pub(crate) struct Naming {
    folder: PathBuf,
    first_sector: u64,
    before: Places,
    paths: Paths,
}

impl Naming {
    /// Looks where the files lie now.
    pub(crate) fn begin(
        disk: &Disk,
        options: &RecordOptions,
        progress: &mut Ask<'_>,
    ) -> Result<Self, RecordError> {
        let (folder, first_sector) = disk.mounted_folder(&options.target)?;
        let mut paths = Paths::default();
        let snapshot = look(&folder, Phase::Before, progress)?;
        let before = Places::of(&snapshot, first_sector, &mut paths);
        Ok(Self { folder, first_sector, before, paths })
    }

    /// Looks again and writes the trace `output` once more, with the files of its requests. Until that
    /// is done the trace stands there without them.
    pub(crate) fn finish(
        &mut self,
        recording: Recording,
        output: &Path,
        progress: &mut Ask<'_>,
    ) -> Result<Recording, RecordError> {
        if recording.requests == 0 {
            return Ok(recording);
        }
        let snapshot = look(&self.folder, Phase::Behind, progress)?;
        let behind = Places::of(&snapshot, self.first_sector, &mut self.paths);
        let files = snapshot.files.len() as u64;
        drop(snapshot);
        let mut attribution = Attribution::new(std::mem::take(&mut self.before), behind);
        let mut trace = open_block_trace(output, &ReadOptions::default())?;
        let mut writer = LocatedWriter::create(output)?;
        let (mut batch, mut parts) = (BlockBatch::default(), Vec::new());
        let (mut named, mut all) = (0, 0);
        while trace.next_batch(&mut batch)? {
            parts.clear();
            for index in 0..batch.len() {
                let row = batch.row(index);
                let part = attribution.part_of(&row);
                named += part.map_or(0, |part| u64::from(part.sectors));
                all += if row.operation <= 1 { u64::from(row.sectors) } else { 0 };
                parts.push(part);
            }
            writer.write(&batch, &parts, self.paths.all())?;
            let shown = Progress { phase: Phase::Naming, files, ..Progress::default() };
            if !progress(&shown)? {
                return Err(RecordError::Stopped);
            }
        }
        let mut metadata: TraceMetadata = trace.metadata.clone();
        let folder = self.folder.display().to_string();
        metadata.header.insert("files_below".to_owned(), folder);
        let trace_bytes = writer.finish(&metadata)?;
        Ok(Recording { named_sectors: Some((named, all)), trace_bytes, ..recording })
    }
}

/// A snapshot of `folder`, after all data that waits in memory has been written.
fn look(folder: &Path, phase: Phase, progress: &mut Ask<'_>) -> Result<Snapshot, RecordError> {
    let options =
        TakeOptions { names: true, sync: true, now_ns: wall_ns() as i64, ..TakeOptions::default() };
    let mut failure = None;
    let taken = source::take(folder, &options, &mut |seen| {
        let shown = Progress { phase, files: seen.files, ..Progress::default() };
        match progress(&shown) {
            Ok(true) => Ok(()),
            Ok(false) => Err(SnapshotError::Stopped),
            Err(error) => {
                failure = Some(error);
                Err(SnapshotError::Stopped)
            }
        }
    });
    match (taken, failure) {
        (Ok(snapshot), _) => Ok(snapshot),
        (Err(_), Some(error)) => Err(error),
        (Err(SnapshotError::Stopped), None) => Err(RecordError::Stopped),
        (Err(error), None) => Err(error.into()),
    }
}
