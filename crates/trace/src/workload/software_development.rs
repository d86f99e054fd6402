//! Software development: edit, compile, link, run, think.
//!
//! Table 4-1, and what it is here:
//!
//! * *writes: sequential for executables, local updates in code; locality*: the executable of a
//!   project is made again front to back; edits write one block of a source, most often of one
//!   edited just before
//! * *reads: whole file, sequential, groups of related files; locality*: a compilation reads a
//!   source and the group of headers that it includes, always the same and in the same order; a
//!   link reads every object of the project
//! * *interleaved*: each compilation reads and writes
//! * *bursty*: the requests of a cycle follow each other; between cycles the developer thinks
//! * *bimodal sizes: many small files, few large ones*: sources, headers and objects of a few
//!   blocks; one executable a project
//! * *bimodal lifetimes: many short, few long*: temporary files die at once, objects and
//!   executables when they are made again; what is not worked on stays
//!
//! A cycle of a developer: one to `edits_max` sources are read and one block of each is written, up
//! to three times a minute apart; each of them is compiled (source and headers read, a temporary
//! file written, read and deleted, the object made again); every `rebuild_every`-th cycle all
//! sources of the project are compiled, as when a header has changed; the project is linked and the
//! executable is read, as when it is run. Then the developer thinks.
//!
//! Source: Matthews 1999, Table 4-1 and §4.1 ("directory groupings of files are helpful in
//! identifying related files"; "frequently modified files will move away from related, but unchanging
//! files"). Chosen by us: all numbers. Directories: headers 0, projects from 1 on, temporary files
//! the last. Cost: see [`super::clients`]; 8 bytes a file, temporary ones included.

use agewell_core::{FileAction, RandomStreams, SimDuration, Stream, chance, mix, uniform_below};

use super::agenda::Agenda;
use super::clients::{Behaviour, ClientWorkload, Step};
use super::draws::{between, over_doublings};
use super::error::require;
use super::file_table::FileTable;
use super::{InitialFile, WorkloadError};

const NAME: &str = "software-development";

/// A developer stays with a project, and with one of the sources edited last, so often.
const STAY: f64 = 0.8;
/// How many sources edited last are remembered.
const RECENT: usize = 4;
/// Blocks of the largest source; the smallest has one.
const SOURCE_BLOCKS_MAX: u32 = 4;
/// Blocks that an object has more than its source, at most.
const OBJECT_BLOCKS_MORE: u32 = 2;
/// Blocks of the largest header.
const HEADER_BLOCKS_MAX: u32 = 2;
const MINUTE_NS: u64 = 60_000_000_000;

/// What the software development workload takes. Its numbers are meant for blocks of 8 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SoftwareDevelopmentParameters {
    /// Developers, each a client; 4 by default.
    pub developers: u32,
    /// Projects, each a directory; 12 by default. Developer d has those with number d modulo the
    /// number of developers.
    pub projects: u32,
    /// Sources of a project; 80 by default.
    pub sources: u32,
    /// Headers of all projects; 60 by default.
    pub headers: u32,
    /// Headers that a source includes; 8 by default.
    pub includes: u32,
    /// Cycles of all developers; 400 by default.
    pub cycles: u32,
    /// Sources edited in a cycle, at most; 3 by default.
    pub edits_max: u32,
    /// Cycles of all developers from one build of a project from scratch to the next; 16 by default, 0
    /// means never.
    pub rebuild_every: u32,
    /// Shortest time that a developer thinks; 1 minute by default. The longest is 64 times that,
    /// each doubling equally likely.
    pub think: SimDuration,
    /// Time from one request of a developer to the next within a cycle; 6,553,600 ns by default:
    /// 8 KiB on an Ethernet of 10 Mbit/s.
    pub pace: SimDuration,
    /// Blocks of a request, at most; 8 by default: 64 KiB.
    pub request_blocks: u32,
}

impl Default for SoftwareDevelopmentParameters {
    fn default() -> Self {
        Self {
            developers: 4,
            projects: 12,
            sources: 80,
            headers: 60,
            includes: 8,
            cycles: 400,
            edits_max: 3,
            rebuild_every: 16,
            think: SimDuration(MINUTE_NS),
            pace: SimDuration(6_553_600),
            request_blocks: 8,
        }
    }
}

impl SoftwareDevelopmentParameters {
    fn validate(&self) -> Result<(), WorkloadError> {
        let Self { developers, projects, sources, headers, includes, edits_max, .. } = *self;
        require((1..=4096).contains(&developers), NAME, "developers", developers, "1 to 4096")?;
        let need = "at least one a developer, and at most 65536";
        let fits = (developers..=65_536).contains(&projects);
        require(fits, NAME, "projects", projects, need)?;
        require((1..=4096).contains(&sources), NAME, "sources", sources, "from 1 to 4096")?;
        require((1..=65_536).contains(&headers), NAME, "headers", headers, "from 1 to 65536")?;
        let need = "from 0 to the number of headers";
        require(includes <= headers, NAME, "includes", includes, need)?;
        let need = "from 1 to the number of sources";
        require((1..=sources).contains(&edits_max), NAME, "edits_max", edits_max, need)?;
        let need = "at least 1";
        require(self.request_blocks > 0, NAME, "request_blocks", self.request_blocks, need)?;
        for (key, duration) in [("think", self.think), ("pace", self.pace)] {
            let need = "below 2^40 ns (18 minutes)";
            require(duration.0 < 1 << 40, NAME, key, format!("{} ns", duration.0), need)?;
        }
        Ok(())
    }
}

/// The software development workload.
pub type SoftwareDevelopment = ClientWorkload<SoftwareDevelopmentBehaviour>;

/// What developers do.
#[derive(Debug, Clone)]
pub struct SoftwareDevelopmentBehaviour {
    parameters: SoftwareDevelopmentParameters,
    stream: Stream,
    files: FileTable,
    initial: Vec<InitialFile>,
    projects: Vec<Project>,
    developers: Vec<Developer>,
    cycles: u32,
}

#[derive(Debug, Clone)]
struct Project {
    /// Sources from here on, then as many objects, then the executable.
    first_source: u32,
    recent: [u32; RECENT],
    recent_count: usize,
}

#[derive(Debug, Clone)]
struct Developer {
    agenda: Agenda,
    project: u32,
}

impl SoftwareDevelopmentBehaviour {
    fn new(parameters: &SoftwareDevelopmentParameters, streams: RandomStreams) -> Self {
        let mut sizes = streams.stream("workload/software-development/files");
        let mut files = FileTable::default();
        for _ in 0..parameters.headers {
            files.add(between(&mut sizes, 1, HEADER_BLOCKS_MAX), 0);
        }
        let projects = (1..=parameters.projects)
            .map(|directory| make_project(parameters.sources, directory, &mut files, &mut sizes))
            .collect();
        let agenda = Agenda::new(parameters.pace.0);
        let developers = (0..parameters.developers)
            .map(|developer| Developer { agenda: agenda.clone(), project: developer })
            .collect();
        Self {
            parameters: *parameters,
            stream: streams.stream("workload/software-development"),
            initial: files.as_initial(),
            files,
            projects,
            developers,
            cycles: 0,
        }
    }

    /// Plans a cycle of `developer`.
    fn plan_cycle(&mut self, developer: u32) {
        let SoftwareDevelopmentParameters { sources, edits_max, rebuild_every, .. } =
            self.parameters;
        let project = self.choose_project(developer);
        let rebuilds = rebuild_every > 0 && self.cycles.is_multiple_of(rebuild_every);
        let mut agenda = std::mem::take(&mut self.developers[developer as usize].agenda);
        for _ in 0..between(&mut self.stream, 1, edits_max) {
            let source = self.choose_source(project);
            self.plan_edit(project, source, &mut agenda);
            if !rebuilds {
                self.plan_compilation(project, source, &mut agenda);
            }
        }
        if rebuilds {
            for source in 0..sources {
                self.plan_compilation(project, source, &mut agenda);
            }
        }
        let objects = self.projects[project as usize].first_source + sources;
        for object in objects..objects + sources {
            agenda.read_whole(&self.files, object);
        }
        let executable = objects + sources;
        agenda.replace(&self.files, executable);
        agenda.read_whole(&self.files, executable);
        let think_ns = match self.parameters.think.0 {
            0 => 0,
            shortest => over_doublings(&mut self.stream, shortest, 6),
        };
        agenda.plan(Step::Wait(think_ns));
        self.developers[developer as usize].agenda = agenda;
    }

    /// The project that `developer` works on now.
    fn choose_project(&mut self, developer: u32) -> u32 {
        let SoftwareDevelopmentParameters { developers, projects, .. } = self.parameters;
        if !chance(&mut self.stream, STAY) {
            let own = (projects - developer).div_ceil(developers);
            let choice = uniform_below(&mut self.stream, u64::from(own)) as u32;
            self.developers[developer as usize].project = developer + choice * developers;
        }
        self.developers[developer as usize].project
    }

    /// One of the sources edited last, or any.
    fn choose_source(&mut self, project: u32) -> u32 {
        let Project { recent, recent_count, .. } = self.projects[project as usize];
        let known = recent_count.min(RECENT);
        if known > 0 && chance(&mut self.stream, STAY) {
            return recent[uniform_below(&mut self.stream, known as u64) as usize];
        }
        let source = uniform_below(&mut self.stream, u64::from(self.parameters.sources)) as u32;
        let Project { recent, recent_count, .. } = &mut self.projects[project as usize];
        if !recent[..known].contains(&source) {
            recent[*recent_count % RECENT] = source;
            *recent_count += 1;
        }
        source
    }

    /// The source is read, and one block of it is saved a few times.
    fn plan_edit(&mut self, project: u32, source: u32, agenda: &mut Agenda) {
        let file = self.projects[project as usize].first_source + source;
        agenda.read_whole(&self.files, file);
        let blocks = u64::from(self.files.blocks(file));
        let block = uniform_below(&mut self.stream, blocks) as u32;
        for save in 0..between(&mut self.stream, 1, 3) {
            if save > 0 {
                agenda.plan(Step::Wait(MINUTE_NS.min(self.parameters.think.0)));
            }
            agenda.transfer(FileAction::Write, file, block, 1);
        }
    }

    fn plan_compilation(&mut self, project: u32, source: u32, agenda: &mut Agenda) {
        let SoftwareDevelopmentParameters { sources, headers, includes, projects, .. } =
            self.parameters;
        let file = self.projects[project as usize].first_source + source;
        agenda.read_whole(&self.files, file);
        // Which headers a source includes follows from its number alone.
        let first = (mix(u64::from(file)) % u64::from(headers)) as u32;
        for include in 0..includes {
            agenda.read_whole(&self.files, (first + include) % headers);
        }
        let object = file + sources;
        let temporary = self.files.add(self.files.blocks(object), projects + 1);
        agenda.write_whole(&self.files, temporary);
        agenda.read_whole(&self.files, temporary);
        agenda.replace(&self.files, object);
        agenda.plan(Step::Delete(temporary));
    }
}

fn make_project(
    sources: u32,
    directory: u32,
    files: &mut FileTable,
    sizes: &mut Stream,
) -> Project {
    let source_blocks: Vec<u32> =
        (0..sources).map(|_| between(sizes, 1, SOURCE_BLOCKS_MAX)).collect();
    let object_blocks: Vec<u32> =
        source_blocks.iter().map(|blocks| blocks + between(sizes, 0, OBJECT_BLOCKS_MORE)).collect();
    // An executable is its objects, one behind the other.
    let executable_blocks = object_blocks.iter().sum();
    let mut numbers =
        source_blocks.into_iter().chain(object_blocks).map(|blocks| files.add(blocks, directory));
    let first_source = numbers.next().expect("a project has sources");
    numbers.for_each(drop);
    files.add(executable_blocks, directory);
    Project { first_source, recent: [0; RECENT], recent_count: 0 }
}

impl Behaviour for SoftwareDevelopmentBehaviour {
    fn next_step(&mut self, client: u32, _time_ns: u64) -> Step {
        loop {
            if let Some(step) = self.developers[client as usize].agenda.next() {
                return step;
            }
            if self.cycles == self.parameters.cycles {
                return Step::Done;
            }
            self.cycles += 1;
            self.plan_cycle(client);
        }
    }

    fn directory_of(&self, file: u32) -> u32 {
        self.files.directory(file)
    }

    fn initial(&self) -> Vec<InitialFile> {
        self.initial.clone()
    }
}

impl SoftwareDevelopment {
    /// The workload that `parameters` describe.
    ///
    /// # Errors
    /// When a parameter is out of range.
    pub fn new(
        parameters: &SoftwareDevelopmentParameters,
        streams: &RandomStreams,
    ) -> Result<Self, WorkloadError> {
        parameters.validate()?;
        let behaviour = SoftwareDevelopmentBehaviour::new(parameters, *streams);
        Ok(Self::over(behaviour, parameters.developers, parameters.request_blocks))
    }

    /// The parameters it was made of.
    #[must_use]
    pub fn parameters(&self) -> &SoftwareDevelopmentParameters {
        &self.behaviour().parameters
    }
}

#[cfg(test)]
mod tests;
