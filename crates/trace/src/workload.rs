//! Workloads of file requests: generators, and the survey of what was live before they begin.
//!
//! A workload is a stream of [`FileRequest`]s in the order of their times, made one at a time by
//! [`FileWorkload::next_request`] so that its length costs no memory. What lies on the disk before
//! the first request is not part of the stream: a generator knows it (`survey()` of each), and
//! [`survey`] infers it for any other stream as Matthews 1999, §5.2.1.2 does.
//!
//! | generator | source |
//! |---|---|
//! | [`RandomUpdate`] | Matthews 1999, §5.2.1.1 |
//! | [`HotCold`] | Rosenblum & Ousterhout 1992, §3.5 |
//! | [`Zipf`] | ranks permuted over the addresses |
//! | [`Sequential`] | the whole file again and again |
//! | [`Tpcb`] | Seltzer 1995, §3 |
//! | [`AuspexLike`] | the facts in Matthews 1999, §5.2.1.2 |
//! | [`Microbenchmark`] | Matthews 1999, §6.3 |
//! | [`Multimedia`], [`SoftwareDevelopment`] | Matthews 1999, Table 4-1 |
//! | [`TransactionProcessing`], [`DecisionSupport`] | the same |
//! | [`ScientificSimulation`] | the same |
//! | [`LongTerm`] | the facts in Roselli et al. 2000 and Matthews 1999, §6.5.2.1 |
//!
//! Invariants: times never fall; a request of blocks names at least one; every number comes from
//! named streams of one seed, so that a workload is the same on every machine.

use agewell_core::FileRequest;

mod agenda;
mod alias_table;
mod auspex;
mod clients;
mod decision_support;
mod draws;
mod error;
mod exact_power;
mod file_table;
mod hot_cold;
mod long_term;
mod microbenchmark;
mod multimedia;
mod random_update;
mod scientific_simulation;
mod sequential;
mod software_development;
mod survey;
mod tpcb;
mod transaction_processing;
mod update;
mod zipf;

pub use alias_table::AliasTable;
pub use auspex::{AuspexLike, AuspexParameters};
pub use clients::{Behaviour, ClientWorkload, Step, Transfer};
pub use decision_support::{DecisionSupport, DecisionSupportBehaviour, DecisionSupportParameters};
pub use error::WorkloadError;
pub use hot_cold::{HotCold, HotColdChoice, HotColdParameters};
pub use long_term::{LongTerm, LongTermBehaviour, LongTermParameters};
pub use microbenchmark::{
    Microbenchmark, MicrobenchmarkParameters, Pattern, Phase, PhaseKind, ReadOrder, WriteOrder,
};
pub use multimedia::{Multimedia, MultimediaBehaviour, MultimediaParameters};
pub use random_update::{RandomUpdate, UniformChoice};
pub use scientific_simulation::{
    ScientificSimulation, ScientificSimulationBehaviour, ScientificSimulationParameters,
};
pub use sequential::{Sequential, SequentialChoice};
pub use software_development::{
    SoftwareDevelopment, SoftwareDevelopmentBehaviour, SoftwareDevelopmentParameters,
};
pub use survey::{InitialFile, Survey, Surveyor, survey, survey_knowing};
pub use tpcb::{Tpcb, TpcbParameters};
pub use transaction_processing::{
    TransactionProcessing, TransactionProcessingBehaviour, TransactionProcessingParameters,
};
pub use update::{BlockChoice, Fill, UpdateParameters, UpdateWorkload};
pub use zipf::{Zipf, ZipfChoice, ZipfParameters};

/// A stream of file requests.
pub trait FileWorkload {
    /// The next request, or none when the workload is over; none stays none.
    fn next_request(&mut self) -> Option<FileRequest>;

    /// Replaces the contents of `batch` by the next requests, at most `requests_max` of them, so
    /// that a caller behind a pointer pays one indirect call a batch; empty when it is over.
    fn next_batch(&mut self, batch: &mut Vec<FileRequest>, requests_max: usize) {
        batch.clear();
        while batch.len() < requests_max {
            let Some(request) = self.next_request() else { break };
            batch.push(request);
        }
    }

    /// What comes next, where that is known to be updates that differ in nothing but the block: writes
    /// of single blocks by one client to one file at one time. Replaces the contents of `blocks` by
    /// their blocks, at most `requests_max` of them, and says what they are but for the block. None,
    /// and nothing is taken, where anything else may come, or nothing.
    fn next_updates(&mut self, blocks: &mut Vec<u32>, requests_max: usize) -> Option<FileRequest> {
        let _ = (blocks, requests_max);
        None
    }

    /// The directory that `file` is in, for layouts that keep the files of a directory together;
    /// directories are numbered densely from zero. Holds for the files live before the stream and
    /// for any that a request has named so far. A workload without directories has all its files in
    /// directory 0.
    fn directory_of(&self, file: u32) -> u32 {
        let _ = file;
        0
    }
}

impl<W: FileWorkload + ?Sized> FileWorkload for &mut W {
    fn next_request(&mut self) -> Option<FileRequest> {
        (**self).next_request()
    }

    fn next_batch(&mut self, batch: &mut Vec<FileRequest>, requests_max: usize) {
        (**self).next_batch(batch, requests_max);
    }

    fn next_updates(&mut self, blocks: &mut Vec<u32>, requests_max: usize) -> Option<FileRequest> {
        (**self).next_updates(blocks, requests_max)
    }

    fn directory_of(&self, file: u32) -> u32 {
        (**self).directory_of(file)
    }
}

impl<W: FileWorkload + ?Sized> FileWorkload for Box<W> {
    fn next_request(&mut self) -> Option<FileRequest> {
        (**self).next_request()
    }

    fn next_batch(&mut self, batch: &mut Vec<FileRequest>, requests_max: usize) {
        (**self).next_batch(batch, requests_max);
    }

    fn next_updates(&mut self, blocks: &mut Vec<u32>, requests_max: usize) -> Option<FileRequest> {
        (**self).next_updates(blocks, requests_max)
    }

    fn directory_of(&self, file: u32) -> u32 {
        (**self).directory_of(file)
    }
}

#[cfg(test)]
mod profile;
#[cfg(test)]
mod tests;
