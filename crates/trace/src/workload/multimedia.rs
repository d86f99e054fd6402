//! Multimedia: recordings are written once, front to back, and played again and again.
//!
//! Table 4-1, and what it is here:
//!
//! * *writes: whole file, sequential; no locality*: each recording is a new file
//! * *reads: whole file, sequential, streaming*: a player plays one whole file after another
//! * *write once, read many*: nothing is ever written again; `plays`
//! * *sustained*: every player and recorder asks at the rate of its film, without a break
//! * *big files*: `film_blocks_min` to `film_blocks_max`, equally likely
//! * *long lifetimes*: nothing is ever deleted
//!
//! Source: Matthews 1999, Table 4-1 and §4.1. Chosen by us: all numbers; a film of 1.5 Mbit/s, the
//! rate of MPEG-1; players choose among all complete films with equal probability, so that what a
//! cache keeps is seldom what comes next ("streaming"); recorders record one film after another
//! until the last play has begun or `recordings` are made. Player i begins a share of a request's
//! time later than the one before, so that requests come evenly.
//!
//! Client numbers: players first, then the recorders. All films are in one directory.
//! Cost: see [`super::clients`]; 8 bytes a film.

use agewell_core::{FileAction, RandomStreams, SimDuration, Stream, uniform_below};

use super::clients::{Behaviour, ClientWorkload, Step, Transfer};
use super::draws::between;
use super::error::require;
use super::file_table::FileTable;
use super::{InitialFile, WorkloadError};

const NAME: &str = "multimedia";

/// What the multimedia workload takes. Its numbers are meant for blocks of 8 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MultimediaParameters {
    /// Films live before; 24 by default.
    pub films: u32,
    /// Blocks of the shortest film; 256 by default: 2 MiB.
    pub film_blocks_min: u32,
    /// Blocks of the longest film; 1,024 by default: 8 MiB.
    pub film_blocks_max: u32,
    /// Players side by side; 6 by default.
    pub players: u32,
    /// Films played in all; 600 by default.
    pub plays: u32,
    /// Recorders side by side; 1 by default.
    pub recorders: u32,
    /// Films recorded in all, at most; 12 by default.
    pub recordings: u32,
    /// Blocks of a request; 8 by default: 64 KiB.
    pub request_blocks: u32,
    /// Time that a block of film lasts; 43,690,666 ns by default: 8 KiB at 1.5 Mbit/s.
    pub block_time: SimDuration,
}

impl Default for MultimediaParameters {
    fn default() -> Self {
        Self {
            films: 24,
            film_blocks_min: 256,
            film_blocks_max: 1024,
            players: 6,
            plays: 600,
            recorders: 1,
            recordings: 12,
            request_blocks: 8,
            block_time: SimDuration(43_690_666),
        }
    }
}

impl MultimediaParameters {
    fn validate(&self) -> Result<(), WorkloadError> {
        let Self { films, film_blocks_min, film_blocks_max, players, request_blocks, .. } = *self;
        require(films > 0, NAME, "films", films, "at least 1")?;
        let need = "from 1 to film_blocks_max";
        let fits = (1..=film_blocks_max).contains(&film_blocks_min);
        require(fits, NAME, "film_blocks_min", film_blocks_min, need)?;
        let need = "so many that all films together have fewer than 2^31 blocks";
        let most = u64::from(films) + u64::from(self.recordings);
        let fits = most.saturating_mul(u64::from(film_blocks_max)) < 1 << 31;
        require(fits, NAME, "film_blocks_max", film_blocks_max, need)?;
        require((1..=4096).contains(&players), NAME, "players", players, "from 1 to 4096")?;
        let need = "from 0 to 4096";
        require(self.recorders <= 4096, NAME, "recorders", self.recorders, need)?;
        require(request_blocks > 0, NAME, "request_blocks", request_blocks, "at least 1")?;
        let need = "short enough that no film lasts longer than 2^40 ns (18 minutes) a block";
        let block_time = format!("{} ns", self.block_time.0);
        require(self.block_time.0 < 1 << 40, NAME, "block_time", block_time, need)
    }

    fn request_ns(&self) -> u64 {
        self.block_time.0 * u64::from(self.request_blocks)
    }
}

/// The multimedia workload.
pub type Multimedia = ClientWorkload<MultimediaBehaviour>;

/// What players and recorders do.
#[derive(Debug, Clone)]
pub struct MultimediaBehaviour {
    parameters: MultimediaParameters,
    stream: Stream,
    sizes: Stream,
    files: FileTable,
    /// Films that can be played.
    complete: Vec<u32>,
    plays_left: u32,
    recordings_left: u32,
    /// Of each recorder: the film that it is at.
    recording: Vec<Option<u32>>,
    /// Clients that have not begun, in the order of their numbers.
    begun: u32,
}

impl MultimediaBehaviour {
    fn new_film(&mut self) -> u32 {
        let MultimediaParameters { film_blocks_min, film_blocks_max, .. } = self.parameters;
        let blocks = between(&mut self.sizes, film_blocks_min, film_blocks_max);
        self.files.add(blocks, 0)
    }

    fn whole(&self, action: FileAction, file: u32) -> Step {
        let blocks = self.files.blocks(file);
        let pace_ns = self.parameters.request_ns();
        Step::Transfer(Transfer { action, file, block: 0, blocks, pace_ns })
    }

    fn play(&mut self) -> Step {
        if self.plays_left == 0 {
            return Step::Done;
        }
        self.plays_left -= 1;
        let choice = uniform_below(&mut self.stream, self.complete.len() as u64);
        self.whole(FileAction::Read, self.complete[choice as usize])
    }

    fn record(&mut self, recorder: usize) -> Step {
        self.complete.extend(self.recording[recorder].take());
        if self.recordings_left == 0 || self.plays_left == 0 {
            return Step::Done;
        }
        self.recordings_left -= 1;
        let film = self.new_film();
        self.recording[recorder] = Some(film);
        self.whole(FileAction::Write, film)
    }
}

impl Behaviour for MultimediaBehaviour {
    fn next_step(&mut self, client: u32, _time_ns: u64) -> Step {
        let MultimediaParameters { players, recorders, .. } = self.parameters;
        if client == self.begun && client > 0 {
            self.begun += 1;
            let clients = u64::from(players + recorders);
            return Step::Wait(self.parameters.request_ns() * u64::from(client) / clients);
        }
        self.begun = self.begun.max(1);
        if client < players { self.play() } else { self.record((client - players) as usize) }
    }

    fn directory_of(&self, _file: u32) -> u32 {
        0
    }

    fn initial(&self) -> Vec<InitialFile> {
        self.files.as_initial()
    }
}

impl Multimedia {
    /// The workload that `parameters` describe.
    ///
    /// # Errors
    /// When a parameter is out of range.
    pub fn new(
        parameters: &MultimediaParameters,
        streams: &RandomStreams,
    ) -> Result<Self, WorkloadError> {
        parameters.validate()?;
        let mut behaviour = MultimediaBehaviour {
            parameters: *parameters,
            stream: streams.stream("workload/multimedia/plays"),
            sizes: streams.stream("workload/multimedia/films"),
            files: FileTable::default(),
            complete: Vec::new(),
            plays_left: parameters.plays,
            recordings_left: parameters.recordings,
            recording: vec![None; parameters.recorders as usize],
            begun: 0,
        };
        for _ in 0..parameters.films {
            let film = behaviour.new_film();
            behaviour.complete.push(film);
        }
        let clients = parameters.players + parameters.recorders;
        Ok(Self::over(behaviour, clients, parameters.request_blocks))
    }

    /// The parameters it was made of.
    #[must_use]
    pub fn parameters(&self) -> &MultimediaParameters {
        &self.behaviour().parameters
    }
}

#[cfg(test)]
mod tests;
