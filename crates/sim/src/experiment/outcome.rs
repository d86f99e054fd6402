//! A finished run: its document, and the tables beside it.

use std::path::Path;

use agewell_trace::record::BlockBatch;
use agewell_trace::write_requests;
use serde_json::Value;

use super::log_series::LogSeries;
use crate::error::RunError;
use crate::host::throughput::ThroughputSeries;
use crate::metrics::Metrics;
use crate::open_loop::tables::write_tables;
use crate::result::write_whole;

/// A finished run.
#[derive(Debug)]
pub struct Outcome {
    /// The result document, as written to `result.json`.
    pub document: Value,
    pub(crate) tables: Tables,
}

/// What goes into the tables beside the document.
#[derive(Debug)]
pub(crate) enum Tables {
    /// What block requests cost, and what they would have cost without remapping, if asked for.
    Blocks { metrics: Box<Metrics>, baseline: Option<Box<Metrics>> },
    /// How file requests went on, and what a log did meanwhile.
    Files(Box<FileTables>),
}

/// The tables of a run of file requests.
#[derive(Debug)]
pub(crate) struct FileTables {
    pub(crate) log: Option<LogSeries>,
    pub(crate) throughput: ThroughputSeries,
    /// What the layout asked of its device, if that was recorded.
    pub(crate) requests: Option<Box<BlockBatch>>,
}

impl Outcome {
    /// What block requests cost, and what they would have cost without remapping, if asked for;
    /// nothing for file requests.
    #[must_use]
    pub fn block_metrics(&self) -> Option<(&Metrics, Option<&Metrics>)> {
        match &self.tables {
            Tables::Blocks { metrics, baseline } => Some((metrics, baseline.as_deref())),
            Tables::Files(_) => None,
        }
    }

    /// Writes `result.json` and tables (`series.parquet`, `histograms.parquet` for block requests,
    /// `throughput.parquet` for file requests) into
    /// `directory`, which is made if absent. The document comes last: where it stands, the tables do too.
    ///
    /// # Errors
    /// If the directory cannot be made or written to.
    pub fn write(&self, directory: &Path) -> Result<(), RunError> {
        let failed = |source| RunError::Io { path: directory.to_owned(), source };
        std::fs::create_dir_all(directory).map_err(failed)?;
        match &self.tables {
            Tables::Blocks { metrics, baseline } => {
                write_tables(directory, metrics, baseline.as_deref()).map_err(failed)?;
            }
            Tables::Files(tables) => {
                let FileTables { log, throughput, requests } = &**tables;
                log.iter().try_for_each(|log| log.write(directory)).map_err(failed)?;
                throughput.write(directory).map_err(failed)?;
                if let Some(requests) = requests {
                    write_requests(&directory.join("requests.parquet"), &mut requests.clone())?;
                }
            }
        }
        let text = format!("{:#}\n", self.document);
        write_whole(directory, "result.json", text.as_bytes()).map_err(failed)?;
        Ok(())
    }
}
