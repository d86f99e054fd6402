//! Three months of a research group's file system of programs, from its published facts.
//!
//! The trace itself (Roselli 1998) is not at hand. Matthews 1999, §6.5.2.1 replays "a three month
//! portion of this trace directed to a file system housing primarily executable files".
//!
//! What is published, and what it is here:
//!
//! * *fourteen desktop machines, three months (Matthews 1999, §6.5.2.1)*: `machines`, `weeks`
//! * *reads vastly outnumber writes at the system call level (ibid., §3.7)*: `read_write_ratio`
//! * *of the group's whole trace: 52,743 MB read, 14,105 MB written in 112 days (Wang & Hu 2002,
//!   table 1)*: a ratio of 3.7 by default
//! * *most data created dies within minutes, most live data is old (Matthews 1999, §4.2.7)*:
//!   scratch files; programs are seldom replaced
//! * *some files are written repeatedly without being read, others almost exclusively read
//!   (Roselli et al. 2000)*: status files; programs
//! * *the same files are overwritten again and again (ibid.)*: status files; popular programs are
//!   replaced more often
//! * *files below 20 KB are read whole; larger ones less regularly (ibid., figure 8, known here from a summary)*: small
//!   files always; binaries but for `paged_share`
//! * *many processes use a small set of files (ibid.)*: Zipf's law over the programs
//! * *executables may be read out of order (Matthews 1999, §3.3)*: `paged_share` of the binaries
//!   are read in runs of four blocks in an order of their own, always the same
//!
//! Chosen by us, as nothing is published of it: a program is a binary, one to four libraries that it
//! shares with others, and up to six small files; a run reads them in this order, always the same;
//! binaries have 2 to 127 blocks and libraries 8 to 127, each doubling equally likely; Zipf's
//! exponent of 0.8; of the blocks written 56 % are scratch files, which live 1 s to 34 minutes, each
//! doubling equally likely, 40 % status files, and 4 % new versions of programs; an old
//! version is removed a minute and the length of a run after the new one is complete; and the
//! rhythm of the week.
//!
//! Invariants: whenever a run is over, each kind of writing has had its share of what the ratio
//! allows, but for one job of it. Cost: see [`super::clients`]; 8 bytes a file ever made.

use agewell_core::{FileAction, RandomStreams, SimDuration, Stream, chance, mix, uniform_below};

use super::agenda::Agenda;
use super::auspex::Rhythm;
use super::clients::{Behaviour, ClientWorkload, Step};
use super::draws::{between, over_doublings};
use super::error::require;
use super::file_table::FileTable;
use super::{AliasTable, InitialFile, WorkloadError};

const NAME: &str = "long-term";

const WEEK_NS: u64 = 604_800_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// Parts of a week in which runs begin.
const WEEK_WORK: u64 = 1 << 24;
/// Exponent of the popularity of programs.
const POPULARITY_ALPHA: f64 = 0.8;
/// Libraries of a program and its small files, at most.
const LIBRARIES_MAX: u32 = 4;
const SMALL_FILES_MAX: u32 = 6;
/// Blocks of a small file, at most: below 20 KB.
const SMALL_BLOCKS_MAX: u32 = 2;
/// Blocks that are read together of a binary that is read out of order.
const PAGE_RUN_BLOCKS: u32 = 4;
/// A scratch file lives from 1 s to 2^11 s.
const LIFETIME_DOUBLINGS: u32 = 11;
/// Blocks of a scratch file: 1 to 2^5 - 1.
const SCRATCH_DOUBLINGS: u32 = 5;
/// No run of a program reads more blocks: a binary and libraries of 127, and the small files.
const RUN_BLOCKS_MAX: u64 = 1024;
const STATUS_FILES: u32 = 2;
const STATUS_BLOCKS_MAX: u32 = 4;
/// Hundredths of the blocks written: scratch files, status files, new versions.
const WRITE_HUNDREDTHS: [u64; 3] = [56, 40, 4];

const LIBRARY_DIRECTORY: u32 = 0;
const STATUS_DIRECTORY: u32 = 1;
const SCRATCH_DIRECTORY: u32 = 2;
/// Each program has a directory, from here on.
const PROGRAM_DIRECTORIES: u32 = 3;

/// What the long-term workload takes. Its numbers are meant for blocks of 8 KiB.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LongTermParameters {
    /// Machines, each a client; 14 by default.
    pub machines: u32,
    /// Weeks; 13 by default.
    pub weeks: u32,
    /// Programs; 600 by default.
    pub programs: u32,
    /// Libraries that they share; 60 by default.
    pub libraries: u32,
    /// Runs of programs on all machines; 18,000 by default, which read about 20 GB: half of what
    /// the group read in thirteen weeks (Wang & Hu 2002, table 1; the half is chosen by us).
    pub runs: u32,
    /// Blocks read over blocks written; 3.7 by default.
    pub read_write_ratio: f64,
    /// Share of the binaries that are read out of order; 0.25 by default.
    pub paged_share: f64,
    /// Time from one request to the next within a run; 6,553,600 ns by default: 8 KiB on an
    /// Ethernet of 10 Mbit/s.
    pub pace: SimDuration,
    /// Blocks of a request, at most; 8 by default: 64 KiB.
    pub request_blocks: u32,
}

impl Default for LongTermParameters {
    fn default() -> Self {
        Self {
            machines: 14,
            weeks: 13,
            programs: 600,
            libraries: 60,
            runs: 18_000,
            read_write_ratio: 3.7,
            paged_share: 0.25,
            pace: SimDuration(6_553_600),
            request_blocks: 8,
        }
    }
}

impl LongTermParameters {
    fn validate(&self) -> Result<(), WorkloadError> {
        let Self { machines, weeks, programs, libraries, runs, .. } = *self;
        require((1..=4096).contains(&machines), NAME, "machines", machines, "from 1 to 4096")?;
        require((1..=5200).contains(&weeks), NAME, "weeks", weeks, "from 1 to 5200")?;
        let need = "from 1 to 65536";
        require((1..=65_536).contains(&programs), NAME, "programs", programs, need)?;
        let need = "from 4 to 65536";
        let fits = (LIBRARIES_MAX..=65_536).contains(&libraries);
        require(fits, NAME, "libraries", libraries, need)?;
        let need = "at most 100 million";
        require(runs <= 100_000_000, NAME, "runs", runs, need)?;
        let need = "from 0.1 to 1000000";
        let fits = (0.1..=1e6).contains(&self.read_write_ratio);
        require(fits, NAME, "read_write_ratio", self.read_write_ratio, need)?;
        let fits = (0.0..=1.0).contains(&self.paged_share);
        require(fits, NAME, "paged_share", self.paged_share, "from 0 to 1")?;
        let pace = format!("{} ns", self.pace.0);
        require(self.pace.0 < SECOND_NS, NAME, "pace", pace, "below 1 s")?;
        let need = "at least 1";
        require(self.request_blocks > 0, NAME, "request_blocks", self.request_blocks, need)
    }
}

/// The long-term workload.
pub type LongTerm = ClientWorkload<LongTermBehaviour>;

/// What the users of the machines do.
#[derive(Debug, Clone)]
pub struct LongTermBehaviour {
    parameters: LongTermParameters,
    stream: Stream,
    files: FileTable,
    initial: Vec<InitialFile>,
    programs: Vec<Program>,
    popularity: AliasTable,
    /// Of each machine, its status files.
    first_status: u32,
    machines: Vec<Machine>,
    read_blocks: u64,
    /// Scratch files, status files, new versions.
    written_blocks: [u64; 3],
    /// For the order of a binary's runs; kept for its memory.
    runs: Vec<(u64, u32)>,
}

#[derive(Debug, Clone)]
struct Program {
    directory: u32,
    binary: u32,
    paged: bool,
    libraries: Vec<u32>,
    small_files: Vec<u32>,
}

#[derive(Debug, Clone)]
struct Machine {
    agenda: Agenda,
    /// Runs begun.
    runs: u32,
    /// When the next one begins, if that has been drawn.
    next_ns: Option<u64>,
    week: u64,
    rhythm: Rhythm,
    /// The program whose new version is being written, and its new files.
    installing: Option<(u32, u32, Vec<u32>)>,
}

impl LongTermBehaviour {
    fn new(parameters: &LongTermParameters, streams: RandomStreams) -> Self {
        let mut sizes = streams.stream("workload/long-term/files");
        let mut files = FileTable::default();
        for _ in 0..parameters.libraries {
            files.add(over_doublings(&mut sizes, 8, 4) as u32, LIBRARY_DIRECTORY);
        }
        let first_status = parameters.libraries;
        for _ in 0..STATUS_FILES * parameters.machines {
            files.add(between(&mut sizes, 1, STATUS_BLOCKS_MAX), STATUS_DIRECTORY);
        }
        let programs: Vec<Program> = (0..parameters.programs)
            .map(|program| make_program(parameters, program, &mut files, &mut sizes))
            .collect();
        let mut weights = vec![0; programs.len()];
        for (rank, program) in (1..).zip(super::zipf::permutation(parameters.programs, &mut sizes))
        {
            weights[program as usize] = super::zipf::rank_weight(rank, POPULARITY_ALPHA);
        }
        let machine = Machine {
            agenda: Agenda::new(parameters.pace.0),
            runs: 0,
            next_ns: None,
            week: 0,
            rhythm: Rhythm::new(WEEK_NS, WEEK_WORK),
            installing: None,
        };
        Self {
            parameters: *parameters,
            stream: streams.stream("workload/long-term"),
            initial: files.as_initial(),
            files,
            programs,
            popularity: AliasTable::new(&weights),
            first_status,
            machines: vec![machine; parameters.machines as usize],
            read_blocks: 0,
            written_blocks: [0; 3],
            runs: Vec::new(),
        }
    }

    /// Runs of `machine`: as many as of any other, but for one.
    fn runs_of(&self, machine: u32) -> u32 {
        let LongTermParameters { runs, machines, .. } = self.parameters;
        runs / machines + u32::from(machine < runs % machines)
    }

    /// When the next run of `machine` begins: anywhere in its share of the weeks.
    fn draw_start(&mut self, machine: u32) -> u64 {
        let total = u128::from(self.parameters.weeks) * u128::from(WEEK_WORK);
        let runs = u128::from(self.runs_of(machine));
        let run = u128::from(self.machines[machine as usize].runs);
        let (from, to) = ((total * run / runs) as u64, (total * (run + 1) / runs) as u64);
        let work = from + uniform_below(&mut self.stream, to - from);
        let machine = &mut self.machines[machine as usize];
        let week = work / WEEK_WORK;
        if week > machine.week {
            machine.week = week;
            machine.rhythm = Rhythm::new(WEEK_NS, WEEK_WORK);
        }
        week * WEEK_NS + machine.rhythm.time_ns(work % WEEK_WORK)
    }

    /// Plans a run, and what is written because of it.
    fn plan_run(&mut self, machine: u32) {
        let mut agenda = std::mem::take(&mut self.machines[machine as usize].agenda);
        let program = self.popularity.draw(&mut self.stream);
        self.plan_reads(program, &mut agenda);
        let mut installs = false;
        while let Some(kind) = self.kind_due() {
            match kind {
                0 => self.plan_scratch(&mut agenda),
                1 => self.plan_status(machine, &mut agenda),
                // What follows a new version waits until it is complete.
                _ => {
                    installs = true;
                    break;
                }
            }
        }
        if installs {
            self.plan_version(machine, &mut agenda);
        }
        self.machines[machine as usize].agenda = agenda;
    }

    fn plan_reads(&mut self, program: u32, agenda: &mut Agenda) {
        let Program { binary, paged, libraries, small_files, .. } =
            &self.programs[program as usize];
        let mut blocks = self.files.blocks(*binary);
        if *paged {
            self.runs.clear();
            let starts = (0..blocks).step_by(PAGE_RUN_BLOCKS as usize);
            let seed = u64::from(*binary) << 32;
            self.runs.extend(starts.map(|start| (mix(seed | u64::from(start)), start)));
            self.runs.sort_unstable();
            for (_, start) in &self.runs {
                let run_blocks = PAGE_RUN_BLOCKS.min(blocks - start);
                agenda.transfer(FileAction::Read, *binary, *start, run_blocks);
            }
        } else {
            agenda.read_whole(&self.files, *binary);
        }
        for file in libraries.iter().chain(small_files) {
            agenda.read_whole(&self.files, *file);
            blocks += self.files.blocks(*file);
        }
        self.read_blocks += u64::from(blocks);
    }

    /// The kind of writing that is furthest behind its share of what the ratio allows, if one is.
    fn kind_due(&self) -> Option<usize> {
        let due = self.read_blocks as f64 / self.parameters.read_write_ratio;
        let behind = |kind: usize| {
            due * WRITE_HUNDREDTHS[kind] as f64 / 100.0 - self.written_blocks[kind] as f64
        };
        let furthest = (0..3).max_by(|one, other| behind(*one).total_cmp(&behind(*other)))?;
        (behind(furthest) > 0.0).then_some(furthest)
    }

    fn plan_scratch(&mut self, agenda: &mut Agenda) {
        let blocks = over_doublings(&mut self.stream, 1, SCRATCH_DOUBLINGS) as u32;
        let file = self.files.add(blocks, SCRATCH_DIRECTORY);
        agenda.write_whole(&self.files, file);
        agenda.plan(Step::Wait(over_doublings(&mut self.stream, SECOND_NS, LIFETIME_DOUBLINGS)));
        agenda.plan(Step::Delete(file));
        self.written_blocks[0] += u64::from(blocks);
    }

    fn plan_status(&mut self, machine: u32, agenda: &mut Agenda) {
        let choice = uniform_below(&mut self.stream, u64::from(STATUS_FILES)) as u32;
        let file = self.first_status + machine * STATUS_FILES + choice;
        agenda.write_whole(&self.files, file);
        self.written_blocks[1] += u64::from(self.files.blocks(file));
    }

    /// Writes a new version of a program beside the old one.
    fn plan_version(&mut self, machine: u32, agenda: &mut Agenda) {
        let program = self.popularity.draw(&mut self.stream);
        let Program { directory, binary, small_files, .. } = &self.programs[program as usize];
        let old = std::iter::once(*binary).chain(small_files.iter().copied());
        let mut new = Vec::with_capacity(small_files.len() + 1);
        for file in old {
            let blocks = self.files.blocks(file);
            let file = self.files.add(blocks, *directory);
            agenda.write_whole(&self.files, file);
            self.written_blocks[2] += u64::from(blocks);
            new.push(file);
        }
        let small = new.split_off(1);
        self.machines[machine as usize].installing = Some((program, new[0], small));
    }

    /// The new version is complete: from now on it is run, and the old one goes when nobody can be
    /// reading it any more.
    fn install(&mut self, machine: u32) -> bool {
        let Some((program, binary, small_files)) =
            self.machines[machine as usize].installing.take()
        else {
            return false;
        };
        let pace_ns = self.parameters.pace.0;
        let agenda = &mut self.machines[machine as usize].agenda;
        agenda.plan(Step::Sync);
        agenda.plan(Step::Wait(60 * SECOND_NS + RUN_BLOCKS_MAX * pace_ns));
        let program = &mut self.programs[program as usize];
        agenda.plan(Step::Delete(std::mem::replace(&mut program.binary, binary)));
        for file in std::mem::replace(&mut program.small_files, small_files) {
            agenda.plan(Step::Delete(file));
        }
        true
    }
}

fn make_program(
    parameters: &LongTermParameters,
    program: u32,
    files: &mut FileTable,
    sizes: &mut Stream,
) -> Program {
    let directory = PROGRAM_DIRECTORIES + program;
    let binary = files.add(over_doublings(sizes, 2, 6) as u32, directory);
    let paged = chance(sizes, parameters.paged_share);
    let mut libraries: Vec<u32> = Vec::new();
    let wanted = between(sizes, 1, LIBRARIES_MAX) as usize;
    while libraries.len() < wanted {
        // Low numbers are wanted by more programs.
        let bound = between(sizes, 1, parameters.libraries);
        let library = uniform_below(sizes, u64::from(bound)) as u32;
        if !libraries.contains(&library) {
            libraries.push(library);
        }
    }
    let small_files = (0..between(sizes, 0, SMALL_FILES_MAX))
        .map(|_| files.add(between(sizes, 1, SMALL_BLOCKS_MAX), directory))
        .collect();
    Program { directory, binary, paged, libraries, small_files }
}

impl Behaviour for LongTermBehaviour {
    fn next_step(&mut self, client: u32, time_ns: u64) -> Step {
        loop {
            if let Some(step) = self.machines[client as usize].agenda.next() {
                return step;
            }
            if self.install(client) {
                continue;
            }
            if self.machines[client as usize].runs == self.runs_of(client) {
                return Step::Done;
            }
            let start_ns = match self.machines[client as usize].next_ns {
                Some(start_ns) => start_ns,
                None => self.draw_start(client),
            };
            let machine = &mut self.machines[client as usize];
            machine.next_ns = Some(start_ns);
            if time_ns < start_ns {
                return Step::Wait(start_ns - time_ns);
            }
            machine.next_ns = None;
            machine.runs += 1;
            self.plan_run(client);
        }
    }

    fn directory_of(&self, file: u32) -> u32 {
        self.files.directory(file)
    }

    fn initial(&self) -> Vec<InitialFile> {
        self.initial.clone()
    }
}

impl LongTerm {
    /// The workload that `parameters` describe.
    ///
    /// # Errors
    /// When a parameter is out of range.
    pub fn new(
        parameters: &LongTermParameters,
        streams: &RandomStreams,
    ) -> Result<Self, WorkloadError> {
        parameters.validate()?;
        let behaviour = LongTermBehaviour::new(parameters, *streams);
        Ok(Self::over(behaviour, parameters.machines, parameters.request_blocks))
    }

    /// The parameters it was made of.
    #[must_use]
    pub fn parameters(&self) -> &LongTermParameters {
        &self.behaviour().parameters
    }
}

#[cfg(test)]
mod tests;
