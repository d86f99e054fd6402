//! The requests of a trace, kept in memory from its survey to its run, so that it is read once.
//!
//! Kept by column, and a column by runs where it has long ones: a trace's requests mostly come from
//! one client and go to one file, many read alike. A request takes 25 bytes at most, 12 where times
//! and blocks differ and nothing else does; it takes 32 to be served.

use std::rc::Rc;

use agewell_core::{FileAction, FileRequest, SimTime};

/// Requests of a trace that are kept; chosen by us: 200 MiB at worst, 100 MiB of most traces. A
/// longer one is read again.
pub(super) const KEPT_REQUESTS_MAX: usize = 1 << 23;

/// The values of one field in some requests.
#[derive(Debug)]
enum Column<T> {
    /// Values and how many requests on end have each.
    Runs(Vec<(T, u32)>),
    /// One a request.
    Each(Vec<T>),
}

impl<T: Copy + PartialEq> Column<T> {
    fn of(requests: &[FileRequest], value_of: impl Fn(&FileRequest) -> T) -> Self {
        let Some(first) = requests.first().map(&value_of) else { return Column::Each(Vec::new()) };
        // The most common case, and the quickest to see.
        if requests.iter().all(|request| value_of(request) == first) {
            return Column::Runs(vec![(first, requests.len() as u32)]);
        }
        let pairs = requests.iter().zip(requests.iter().skip(1));
        let changes = pairs.filter(|(one, next)| value_of(one) != value_of(next)).count();
        // A run takes the room of two values, or of four small ones.
        if changes >= requests.len() / 4 {
            return Column::Each(requests.iter().map(value_of).collect());
        }
        let runs = requests.chunk_by(|one, next| value_of(one) == value_of(next));
        Column::Runs(runs.map(|run| (value_of(&run[0]), run.len() as u32)).collect())
    }

    fn first(&self) -> Option<T> {
        match self {
            Column::Runs(runs) => runs.first().map(|(value, _)| *value),
            Column::Each(values) => values.first().copied(),
        }
    }

    /// Sets the field in `requests`, which all have the first value.
    fn set(&self, requests: &mut [FileRequest], set: impl Fn(&mut FileRequest, T)) {
        match self {
            Column::Runs(runs) => {
                let mut rest = requests;
                for (value, length) in runs {
                    let (run, later) = rest.split_at_mut(*length as usize);
                    if Some(*value) != self.first() {
                        for request in run {
                            set(request, *value);
                        }
                    }
                    rest = later;
                }
            }
            Column::Each(values) => {
                for (request, value) in requests.iter_mut().zip(values) {
                    set(request, *value);
                }
            }
        }
    }
}

/// Some requests on end.
#[derive(Debug)]
pub(super) struct PackedRequests {
    length: usize,
    time: Column<SimTime>,
    client: Column<u32>,
    file: Column<u32>,
    block: Column<u32>,
    blocks: Column<u32>,
    action: Column<FileAction>,
}

impl PackedRequests {
    pub(super) fn of(requests: &[FileRequest]) -> Self {
        Self {
            length: requests.len(),
            time: Column::of(requests, |request| request.time),
            client: Column::of(requests, |request| request.client),
            file: Column::of(requests, |request| request.file),
            block: Column::of(requests, |request| request.block),
            blocks: Column::of(requests, |request| request.blocks),
            action: Column::of(requests, |request| request.action),
        }
    }

    /// Puts the requests behind those in `batch`.
    fn unpack(&self, batch: &mut Vec<FileRequest>) {
        let Some(first) = self.first() else { return };
        let start = batch.len();
        batch.resize(start + self.length, first);
        let requests = &mut batch[start..];
        self.time.set(requests, |request, time| request.time = time);
        self.client.set(requests, |request, client| request.client = client);
        self.file.set(requests, |request, file| request.file = file);
        self.block.set(requests, |request, block| request.block = block);
        self.blocks.set(requests, |request, blocks| request.blocks = blocks);
        self.action.set(requests, |request, action| request.action = action);
    }

    fn first(&self) -> Option<FileRequest> {
        Some(FileRequest {
            time: self.time.first()?,
            client: self.client.first()?,
            file: self.file.first()?,
            block: self.block.first()?,
            blocks: self.blocks.first()?,
            action: self.action.first()?,
        })
    }
}

/// All requests of a trace, as many at a time as it gave.
#[derive(Clone)]
pub(crate) struct KeptRequests {
    batches: Rc<Vec<PackedRequests>>,
    next: usize,
    without_transfer: u64,
}

impl KeptRequests {
    /// `batches`, at their beginning, of a trace in which this many requests moved no data.
    pub(super) fn new(batches: Vec<PackedRequests>, without_transfer: u64) -> Self {
        Self { batches: Rc::new(batches), next: 0, without_transfer }
    }

    /// Replaces the contents of `batch` by the next requests; false at the end.
    pub(super) fn next_batch(&mut self, batch: &mut Vec<FileRequest>) -> bool {
        batch.clear();
        let kept = self.batches.get(self.next);
        if let Some(kept) = kept {
            kept.unpack(batch);
        }
        self.next += 1;
        kept.is_some()
    }

    /// Requests of the trace that moved no data.
    pub(super) fn without_transfer(&self) -> u64 {
        self.without_transfer
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn action() -> impl Strategy<Value = FileAction> {
        prop::sample::select(vec![FileAction::Read, FileAction::Write, FileAction::Sync])
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_out_again(
            batches in prop::collection::vec(
                prop::collection::vec(
                    ((0_u64..3, 0_u32..2, 0_u32..2, 0_u32..9, 1_u32..3, action()), 1_usize..5),
                    0..40,
                ),
                0..4,
            ),
        ) {
            let requests_of = |runs: &Vec<_>| -> Vec<FileRequest> {
                let alike = runs.iter().flat_map(|(request, count)| vec![*request; *count]);
                alike
                    .map(|(time_ns, client, file, block, blocks, action)| FileRequest {
                        time: SimTime(time_ns), client, file, block, blocks, action,
                    })
                    .collect()
            };
            let batches: Vec<Vec<FileRequest>> = batches.iter().map(requests_of).collect();
            let packed = batches.iter().map(|batch| PackedRequests::of(batch)).collect();
            let (mut kept, mut batch) = (KeptRequests::new(packed, 3), vec![]);
            for expected in &batches {
                prop_assert!(kept.next_batch(&mut batch));
                prop_assert_eq!(&batch, expected);
            }
            prop_assert!(!kept.next_batch(&mut batch) && batch.is_empty());
            prop_assert_eq!(kept.without_transfer(), 3);
        }
    }
}
