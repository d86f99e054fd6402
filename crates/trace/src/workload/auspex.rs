//! An NFS load like the Berkeley Auspex trace: what a file server sees behind client caches.
//!
//! The trace itself is not at hand; this load has its published facts and, for the rest, what was
//! published of file systems of the time. No curve of the paper was fitted; but sessions and
//! repeated runs (below) are here because without them the segments of a log would not empty by
//! themselves at 60 % use, and those of the trace did (§5.4.2).
//!
//! | published | here |
//! |---|---|
//! | clients, week, reads, writes, deletes, syncs (Matthews 1999, §5.2.1.2) | exact |
//! | live before and at the end (ibid.) | exact, as the survey's rule infers them |
//! | 1.2 GB live at the end from an empty disk (ibid.) | exact: so much is written and stays |
//! | sizes of files (Irlam 1993) | drawn from that survey |
//! | most new data dies within minutes, most live data is old (Matthews 1999, §4.2.7) | lifetimes |
//! | files are used in sequence and as a whole (Baker et al. 1991, as quoted ibid.) | all jobs |
//! | behind the cache twice as many writes as reads (Roselli 1998, as quoted in §3.4) | reads |
//!
//! The third row leaves little freedom. Of 1,000,000 blocks written, 146,484 are live at the end;
//! growth and the replacement of deleted files take about 65,000 of those, so about 80,000 blocks
//! that were live before are overwritten, and three quarters of the old data is never written at
//! all: it only fills the disk. All other writes replace data written in the trace, or are files
//! deleted again.
//!
//! Work comes in jobs, one after another, each of one client: *read* (a group of files or one of
//! them), *create* (a group that stays), *overwrite* (an old group for the first time, read
//! before), *rewrite* (a group or a file of one written before), *temporary* (a file that is
//! deleted later), *remove* (an old group, read before). Each kind has its share of the work, and
//! the one furthest behind its share is next, so that all keep step with the week and end with it.
//!
//! Rewrites walk through the history of writes of groups. With probability `locality`, the one
//! knob, a rewrite takes the group written right after the one it took before: what was written
//! together is overwritten together, as when a build, a simulation or a mail run is repeated.
//! Otherwise it starts again at the d-th last write with probability falling as 1/d, up to 131,071
//! writes back, most of the week. The more locality, the more of the log dies in one
//! piece.
//!
//! Reads beyond the first one of each old group follow what was used of late by the same law: a
//! quarter of them what was written, the others what was read, the latter up to 4,095 reads back.
//! Behind a cache of 128 MB (§5.2.2) the disk then sees half as many reads as writes; a reach of a
//! quarter changes that by 2 %, one of four times by 15 %. (First reads alone are 0.35 of the
//! writes.) Roselli's desktop machines were another file system of the same department.
//!
//! Chosen by us: groups of four files in the mean; eight neighbouring groups belong to one client,
//! who creates, first overwrites or removes them in one session; half of the rewrites and of the
//! repeated reads take one file of the group; temporary files live from 1 s to 36 h, each doubling
//! equally likely (median 6 minutes), cut at the end of the week; 5 % of the deletes are of old
//! files; three quarters of the reads are made by the group's owner. Jobs of different clients
//! never interleave: at 8 requests a second in the mean they seldom would.
//!
//! Invariants: budgets are never overdrawn and all are zero at the end, so the counts hold for
//! every seed. Cost: O(1) a request, but for the logarithm of the temporary files alive at their
//! deletes; memory is O(files). Bound by random accesses to the tables of groups and files.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use agewell_core::{
    FileAction, FileRequest, RandomStreams, SimTime, Stream, chance, uniform_below,
};

use super::{FileWorkload, InitialFile, Survey, WorkloadError, survey};
use catalogue::Catalogue;
use history::History;
use plan::{JobKind, Plan};
pub(super) use rhythm::Rhythm;

mod catalogue;
mod file_sizes;
mod history;
mod parameters;
mod plan;
mod rhythm;

pub use parameters::AuspexParameters;

/// Time between the requests of a job: 8,192 bytes on an Ethernet of 10 Mbit/s.
const REQUEST_NS: u64 = 6_553_600;
/// A rewrite looks back over 2^17 - 1 writes of groups at most.
const WRITE_DOUBLINGS: u64 = 17;
/// A repeated read looks back over 2^12 - 1 reads of groups at most; see above.
const READ_DOUBLINGS: u64 = 12;
/// The longest lifetime of a temporary file is 2^17 s.
const LIFETIME_DOUBLINGS: u64 = 17;
const SECOND_NS: u64 = 1_000_000_000;

/// Groups that lie side by side and belong to one client, who creates, first overwrites and removes
/// them in one session.
const NEIGHBOURS: u32 = 8;

/// What a client is doing: the blocks of consecutive files, or the files themselves.
#[derive(Debug, Clone, Copy)]
struct Job {
    action: FileAction,
    client: u32,
    file: u32,
    block: u32,
    /// Requests still to come.
    requests_left: u64,
}

/// The Auspex-like load.
#[derive(Debug, Clone)]
pub struct AuspexLike {
    parameters: AuspexParameters,
    stream: Stream,
    catalogue: Catalogue,
    plan: Plan,
    rhythm: Rhythm,
    initial_files: u32,
    /// Groups in the order of their writes, and in that of their reads.
    writes: History,
    reads: History,
    /// Place in the history of the group rewritten last.
    rewritten: u64,
    /// The kind of the session, its jobs still to come, and who creates in it.
    session: JobKind,
    session_left: u32,
    session_client: u32,
    job: Option<Job>,
    /// What follows the current job, whose reason it is.
    job_after: Option<Job>,
    /// Temporary files by the time of their deletion.
    deaths: BinaryHeap<Reverse<(u64, u32, u32)>>,
    accesses: u64,
    request_ns: u64,
    time_ns: u64,
    ahead: Option<FileRequest>,
    dirty: Vec<bool>,
    dirty_clients: Vec<u32>,
    /// Clients whose sync at `sync_ns` is due now.
    syncs_due: usize,
    sync_ns: u64,
}

impl AuspexLike {
    /// The load that `parameters` describe.
    ///
    /// # Errors
    /// When a parameter is out of range.
    pub fn new(
        parameters: &AuspexParameters,
        streams: &RandomStreams,
    ) -> Result<Self, WorkloadError> {
        parameters.validate()?;
        let files = streams.stream("workload/auspex-like/files");
        let mut catalogue = Catalogue::new(files, parameters.clients);
        let mut left = parameters.initial_blocks;
        while left > 0 {
            let client = catalogue.any_client();
            for _ in 0..NEIGHBOURS {
                if left > 0 {
                    let group = catalogue.add_group(client, left);
                    left -= u64::from(catalogue.group(group).blocks);
                }
            }
        }
        let mut order = streams.stream("workload/auspex-like/order");
        let plan = Plan::new(parameters, catalogue.groups(), &mut order);
        let accesses = parameters.accesses();
        Ok(Self {
            parameters: *parameters,
            stream: streams.stream("workload/auspex-like/requests"),
            initial_files: catalogue.file_blocks().len() as u32,
            catalogue,
            plan,
            rhythm: Rhythm::new(parameters.duration.0, accesses),
            writes: History::reaching(WRITE_DOUBLINGS),
            reads: History::reaching(READ_DOUBLINGS),
            rewritten: 0,
            session: JobKind::Read,
            session_left: 0,
            session_client: 0,
            job: None,
            job_after: None,
            deaths: BinaryHeap::new(),
            accesses: 0,
            // The busiest hour has twice the work of the mean one; jobs are not to run late.
            request_ns: REQUEST_NS.min(parameters.duration.0 / (3 * accesses)),
            time_ns: 0,
            ahead: None,
            dirty: vec![false; parameters.clients as usize],
            dirty_clients: Vec::new(),
            syncs_due: 0,
            sync_ns: parameters.sync_interval.0,
        })
    }

    /// The parameters it was made of.
    #[must_use]
    pub fn parameters(&self) -> &AuspexParameters {
        &self.parameters
    }

    /// The files live before, by construction.
    #[must_use]
    pub fn initial(&self) -> Vec<InitialFile> {
        let old = &self.catalogue.file_blocks()[..self.initial_files as usize];
        (0..).zip(old).map(|(file, blocks)| InitialFile { file, blocks: *blocks }).collect()
    }

    /// What is live before a load that has not begun, and its sizes. A copy is run to its end,
    /// because the peak depends on which temporary files live at once.
    #[must_use]
    pub fn survey(&self) -> Survey {
        survey(&mut self.clone())
    }

    /// Begins the job that is furthest behind; false when all work is done.
    fn begin_job(&mut self) -> bool {
        let Some(kind) = self.next_kind() else { return false };
        match kind {
            JobKind::Read => self.begin_read(),
            JobKind::Create => {
                let group = self.catalogue.add_group(self.session_client, self.plan.left(kind));
                let blocks = self.catalogue.group(group).blocks;
                self.plan.take(kind, u64::from(blocks));
                self.begin_write(group);
            }
            JobKind::Overwrite => {
                let group = self.plan.next_overwritten();
                let blocks = u64::from(self.catalogue.group(group).blocks);
                let blocks = blocks.min(self.plan.left(kind));
                self.plan.take(kind, blocks);
                let write = self.whole_group(FileAction::Write, group, blocks);
                // A group cut to the budget must not be rewritten: that would write all of it.
                let whole = blocks == u64::from(self.catalogue.group(group).blocks);
                if whole || self.writes.is_empty() {
                    self.writes.push(group);
                }
                self.after_first_read(group, write);
            }
            JobKind::Rewrite => self.begin_rewrite(),
            JobKind::Temporary => self.begin_temporary(),
            JobKind::Remove => {
                let group = self.plan.next_removed();
                let files = u64::from(self.catalogue.group(group).files);
                self.plan.take(kind, files);
                let delete = self.whole_group(FileAction::Delete, group, files);
                self.after_first_read(group, delete);
            }
        }
        true
    }

    /// The kind of the next job: that of the session, or the one furthest behind.
    fn next_kind(&mut self) -> Option<JobKind> {
        if self.session_left > 0 && self.plan.left(self.session) > 0 {
            self.session_left -= 1;
            return Some(self.session);
        }
        let kind = self.plan.furthest_behind(!self.writes.is_empty())?;
        self.session = kind;
        self.session_left = 0;
        if matches!(kind, JobKind::Create | JobKind::Overwrite | JobKind::Remove) {
            self.session_left = NEIGHBOURS - 1;
            self.session_client = self.catalogue.any_client();
        }
        Some(kind)
    }

    fn whole_group(&self, action: FileAction, group: u32, requests: u64) -> Job {
        let group = self.catalogue.group(group);
        Job {
            action,
            client: group.client,
            file: group.first_file,
            block: 0,
            requests_left: requests,
        }
    }

    /// One file of a group or all of it, each half of the time, cut to `blocks_max`.
    fn part_of_group(&mut self, action: FileAction, group: u32, blocks_max: u64) -> Job {
        let whole = self.catalogue.group(group);
        if whole.files == 1 || chance(&mut self.stream, 0.5) {
            let blocks = u64::from(whole.blocks).min(blocks_max);
            return self.whole_group(action, group, blocks);
        }
        let offset = uniform_below(&mut self.stream, u64::from(whole.files)) as u32;
        let file = whole.first_file + offset;
        let requests_left = u64::from(self.catalogue.blocks_of(file)).min(blocks_max);
        Job { action, client: whole.client, file, block: 0, requests_left }
    }

    fn begin_write(&mut self, group: u32) {
        let blocks = u64::from(self.catalogue.group(group).blocks);
        self.job = Some(self.whole_group(FileAction::Write, group, blocks));
        self.writes.push(group);
    }

    /// Reads an old group that nobody has read yet, then does `job`.
    fn after_first_read(&mut self, group: u32, job: Job) {
        if self.plan.read_first(group) {
            let blocks = u64::from(self.catalogue.group(group).blocks);
            self.plan.take(JobKind::Read, blocks);
            self.job = Some(self.whole_group(FileAction::Read, group, blocks));
            self.job_after = Some(job);
            self.reads.push(group);
        } else {
            self.job = Some(job);
        }
    }

    /// The place in the history that is rewritten next: the one behind the last, or any recent one.
    fn next_rewritten(&mut self) -> u64 {
        let following = self.writes.following(self.rewritten);
        if chance(&mut self.stream, self.parameters.locality)
            && let Some(following) = following
        {
            following
        } else {
            self.writes.recent(&mut self.stream)
        }
    }

    fn begin_rewrite(&mut self) {
        self.rewritten = self.next_rewritten();
        let group = self.writes.at(self.rewritten);
        let blocks_max = self.plan.left(JobKind::Rewrite);
        let job = self.part_of_group(FileAction::Write, group, blocks_max);
        self.plan.take(JobKind::Rewrite, job.requests_left);
        self.writes.push(group);
        self.job = Some(job);
    }

    fn begin_temporary(&mut self) {
        // A file needs one block; what it takes above that, rewrites do without.
        let file = self.catalogue.add_file(1 + self.plan.left(JobKind::Rewrite));
        let client = self.catalogue.any_client();
        let blocks = u64::from(self.catalogue.blocks_of(file));
        self.plan.take(JobKind::Temporary, 1);
        self.plan.take(JobKind::Rewrite, blocks - 1);
        let doubling = uniform_below(&mut self.stream, LIFETIME_DOUBLINGS);
        let second = SECOND_NS << doubling;
        let death = self.time_ns + second + uniform_below(&mut self.stream, second);
        self.deaths.push(Reverse((death.min(self.parameters.duration.0), file, client)));
        let write = FileAction::Write;
        self.job = Some(Job { action: write, client, file, block: 0, requests_left: blocks });
    }

    fn begin_read(&mut self) {
        let repeated_max = self.plan.repeated_reads_left();
        let group = if repeated_max == 0 {
            self.plan.next_unread()
        } else if !self.writes.is_empty() && chance(&mut self.stream, 0.25) {
            Some(self.writes.at(self.writes.recent(&mut self.stream)))
        } else if self.plan.first_reads_behind() || self.reads.is_empty() {
            self.plan.next_unread()
        } else {
            let read = self.reads.at(self.reads.recent(&mut self.stream));
            // What is gone is not read; an unread group takes its place.
            if self.plan.is_removed(read) { self.plan.next_unread() } else { Some(read) }
        };
        let group = group.unwrap_or(Plan::GROUP_KEPT);
        let mut job = if self.plan.read_first(group) {
            let blocks = u64::from(self.catalogue.group(group).blocks);
            self.whole_group(FileAction::Read, group, blocks)
        } else {
            self.part_of_group(FileAction::Read, group, repeated_max)
        };
        if chance(&mut self.stream, 0.25) {
            job.client = uniform_below(&mut self.stream, self.dirty.len() as u64) as u32;
        }
        self.plan.take(JobKind::Read, job.requests_left);
        self.reads.push(group);
        self.job = Some(job);
    }

    /// The deletion that is due by `end_ns`, if any.
    fn next_death(&mut self, end_ns: u64) -> Option<FileRequest> {
        let Reverse((death, file, client)) = *self.deaths.peek()?;
        if death > end_ns {
            return None;
        }
        self.deaths.pop();
        self.time_ns = self.time_ns.max(death);
        self.accesses += 1;
        let (time, action) = (SimTime(self.time_ns), FileAction::Delete);
        Some(FileRequest { time, client, file, block: 0, blocks: 0, action })
    }

    /// The next request of the current job.
    fn advance(&mut self, mut job: Job) -> FileRequest {
        let Job { action, client, file, block, .. } = job;
        let deletes = action == FileAction::Delete;
        let blocks = u32::from(!deletes);
        let time = SimTime(self.time_ns);
        job.block += 1;
        if deletes || job.block == self.catalogue.blocks_of(file) {
            (job.file, job.block) = (file + 1, 0);
        }
        job.requests_left -= 1;
        self.job = if job.requests_left > 0 { Some(job) } else { self.job_after.take() };
        self.time_ns += self.request_ns;
        self.accesses += 1;
        FileRequest { time, client, file, block, blocks, action }
    }

    /// The next request that is no sync.
    fn next_access(&mut self) -> Option<FileRequest> {
        if self.job.is_none() {
            let start_ns = self.rhythm.time_ns(self.accesses).max(self.time_ns);
            if let Some(delete) = self.next_death(start_ns) {
                return Some(delete);
            }
            self.time_ns = start_ns;
            if !self.begin_job() {
                return self.next_death(u64::MAX);
            }
        }
        let job = self.job.expect("just begun");
        Some(self.advance(job))
    }

    /// The sync of one of the clients that are due.
    fn sync(&mut self) -> FileRequest {
        self.syncs_due -= 1;
        let client = self.dirty_clients.pop().expect("as many as are due");
        self.dirty[client as usize] = false;
        let (time, action) = (SimTime(self.sync_ns), FileAction::Sync);
        FileRequest { time, client, file: 0, block: 0, blocks: 0, action }
    }

    /// Makes the syncs due at the first multiple of the interval after the last write, if that has
    /// come by `time`; whether there are any.
    fn syncs_by(&mut self, time: SimTime) -> bool {
        if self.dirty_clients.is_empty() || time.0 < self.sync_ns {
            return false;
        }
        self.syncs_due = self.dirty_clients.len();
        true
    }

    fn mark_dirty(&mut self, request: &FileRequest) {
        let interval_ns = self.parameters.sync_interval.0;
        if interval_ns == 0 || request.action != FileAction::Write {
            return;
        }
        if self.dirty_clients.is_empty() {
            self.sync_ns = (request.time.0 / interval_ns + 1) * interval_ns;
        }
        if !std::mem::replace(&mut self.dirty[request.client as usize], true) {
            self.dirty_clients.push(request.client);
        }
    }
}

impl FileWorkload for AuspexLike {
    fn next_request(&mut self) -> Option<FileRequest> {
        if self.syncs_due > 0 {
            return Some(self.sync());
        }
        let request = self.ahead.take().or_else(|| self.next_access());
        let time = request.map_or(SimTime(u64::MAX), |request| request.time);
        if self.syncs_by(time) {
            self.ahead = request;
            return Some(self.sync());
        }
        if let Some(request) = &request {
            self.mark_dirty(request);
        }
        request
    }

    /// A group is a directory; temporary files share directory 0.
    fn directory_of(&self, file: u32) -> u32 {
        self.catalogue.group_of(file).map_or(0, |group| group + 1)
    }
}

#[cfg(test)]
mod tests;
