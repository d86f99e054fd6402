//! Scientific simulation: large inputs in, large outputs out, failed experiments run again.
//!
//! Table 4-1, and what it is here:
//!
//! * *writes: sequential output; no locality*: an experiment writes its output front to back, a
//!   step at a time
//! * *reads: vary, often sequential; locality varies*: inputs are read front to back, or
//!   (`strided_share` of the experiments) by columns
//! * *write once, read once*: an output that was kept is read once, whole, when it is evaluated
//! * *rate varies*: steps are computed for times of all lengths
//! * *big files*: inputs and outputs of some MiB
//! * *lifetimes: many long, short for repeated experiments*: inputs and outputs are kept
//!   "indefinitely"; a failed experiment's output is overwritten by the next attempt
//!
//! An experiment reads one input (each is used `experiments` / `inputs` times, with other settings),
//! then computes and writes its output in steps. With probability `failure_share` it has failed: it
//! is run again at once, reads its input again and overwrites its output. Else the output is read
//! once.
//!
//! Source: Matthews 1999, Table 4-1 and §4.1 ("Repeated, unsuccessful experiments overwrite existing
//! results. Input data and the results of successful experiments are likely to be saved
//! indefinitely"). Chosen by us: all numbers; a scientist runs one experiment after another.
//!
//! Directories: inputs 0, outputs 1. Cost: see [`super::clients`]; 8 bytes a file.

use agewell_core::{FileAction, RandomStreams, SimDuration, Stream, chance};

use super::agenda::Agenda;
use super::clients::{Behaviour, ClientWorkload, Step};
use super::draws::{between, over_doublings};
use super::error::require;
use super::file_table::FileTable;
use super::{InitialFile, WorkloadError};

const NAME: &str = "scientific-simulation";
const OUTPUT_DIRECTORY: u32 = 1;
/// Columns of an input that is read by columns: a block of a row holds one (chosen by us).
const COLUMNS: u32 = 16;

/// What the scientific simulation workload takes. Its numbers are meant for blocks of 8 KiB.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScientificSimulationParameters {
    /// Input files, live before; 30 by default.
    pub inputs: u32,
    /// Blocks of the smallest input; 128 by default: 1 MiB. The largest has four times as many.
    pub input_blocks_min: u32,
    /// Experiments that succeed in the end; 120 by default.
    pub experiments: u32,
    /// Blocks of the smallest output; 48 by default. The largest has four times as many.
    pub output_blocks_min: u32,
    /// Blocks of output that a step of the computation writes; 16 by default.
    pub step_blocks: u32,
    /// How likely an attempt fails; 0.3 by default, and below 1.
    pub failure_share: f64,
    /// Share of the experiments that read their input by columns; 0.25 by default.
    pub strided_share: f64,
    /// Scientists, each a client; 3 by default.
    pub scientists: u32,
    /// Shortest time that a step is computed; 1 s by default. The longest is 256 times that, each
    /// doubling equally likely.
    pub compute: SimDuration,
    /// Time from one request to the next while data moves; 2 ms by default.
    pub pace: SimDuration,
    /// Blocks of a request, at most; 8 by default: 64 KiB.
    pub request_blocks: u32,
}

impl Default for ScientificSimulationParameters {
    fn default() -> Self {
        Self {
            inputs: 30,
            input_blocks_min: 128,
            experiments: 120,
            output_blocks_min: 48,
            step_blocks: 16,
            failure_share: 0.3,
            strided_share: 0.25,
            scientists: 3,
            compute: SimDuration(1_000_000_000),
            pace: SimDuration(2_000_000),
            request_blocks: 8,
        }
    }
}

impl ScientificSimulationParameters {
    fn validate(&self) -> Result<(), WorkloadError> {
        let Self { inputs, input_blocks_min, output_blocks_min, experiments, .. } = *self;
        let need = "at least 1, and so many that all files together have fewer than 2^31 blocks";
        let blocks = |files: u32, smallest: u32| 4 * u64::from(files) * u64::from(smallest);
        let fits = inputs > 0 && blocks(inputs, input_blocks_min.max(1)) < 1 << 30;
        require(fits, NAME, "inputs", inputs, need)?;
        require(input_blocks_min > 0, NAME, "input_blocks_min", input_blocks_min, "at least 1")?;
        let fits = blocks(experiments, output_blocks_min) < 1 << 30;
        require(fits, NAME, "experiments", experiments, need)?;
        let counts = [
            ("output_blocks_min", output_blocks_min),
            ("step_blocks", self.step_blocks),
            ("request_blocks", self.request_blocks),
        ];
        for (key, count) in counts {
            require(count > 0, NAME, key, count, "at least 1")?;
        }
        let fits = (0.0..=0.99).contains(&self.failure_share);
        require(fits, NAME, "failure_share", self.failure_share, "from 0 to 0.99")?;
        let fits = (0.0..=1.0).contains(&self.strided_share);
        require(fits, NAME, "strided_share", self.strided_share, "from 0 to 1")?;
        let need = "from 1 to 4096";
        require((1..=4096).contains(&self.scientists), NAME, "scientists", self.scientists, need)?;
        for (key, duration) in [("compute", self.compute), ("pace", self.pace)] {
            let need = "below 2^40 ns (18 minutes)";
            require(duration.0 < 1 << 40, NAME, key, format!("{} ns", duration.0), need)?;
        }
        Ok(())
    }
}

/// The scientific simulation workload.
pub type ScientificSimulation = ClientWorkload<ScientificSimulationBehaviour>;

/// What scientists do.
#[derive(Debug, Clone)]
pub struct ScientificSimulationBehaviour {
    parameters: ScientificSimulationParameters,
    stream: Stream,
    sizes: Stream,
    files: FileTable,
    initial: Vec<InitialFile>,
    scientists: Vec<Scientist>,
    experiments: u32,
}

#[derive(Debug, Clone)]
struct Scientist {
    agenda: Agenda,
    /// The experiment at hand, if it has failed.
    failed: Option<Experiment>,
}

#[derive(Debug, Clone, Copy)]
struct Experiment {
    input: u32,
    output: u32,
    strided: bool,
}

impl ScientificSimulationBehaviour {
    /// An experiment that has not been tried before; none when all have been.
    fn new_experiment(&mut self) -> Option<Experiment> {
        if self.experiments == self.parameters.experiments {
            return None;
        }
        let smallest = self.parameters.output_blocks_min;
        let blocks = between(&mut self.sizes, smallest, 4 * smallest);
        let input = self.experiments % self.parameters.inputs;
        self.experiments += 1;
        let strided = chance(&mut self.stream, self.parameters.strided_share);
        Some(Experiment { input, output: self.files.add(blocks, OUTPUT_DIRECTORY), strided })
    }

    /// Plans one attempt; whether it fails is known in advance.
    fn plan_attempt(&mut self, scientist: usize, experiment: Experiment, again: bool) {
        let Experiment { input, output, strided } = experiment;
        let mut agenda = std::mem::take(&mut self.scientists[scientist].agenda);
        if strided {
            let blocks = self.files.blocks(input);
            for column in 0..COLUMNS.min(blocks) {
                for block in (column..blocks).step_by(COLUMNS as usize) {
                    agenda.transfer(FileAction::Read, input, block, 1);
                }
            }
        } else {
            agenda.read_whole(&self.files, input);
        }
        if again {
            agenda.plan(Step::Empty(output));
        }
        let blocks = self.files.blocks(output);
        for block in (0..blocks).step_by(self.parameters.step_blocks as usize) {
            let shortest = self.parameters.compute.0.max(1);
            agenda.plan(Step::Wait(over_doublings(&mut self.stream, shortest, 8)));
            let step_blocks = self.parameters.step_blocks.min(blocks - block);
            agenda.transfer(FileAction::Write, output, block, step_blocks);
        }
        agenda.plan(Step::Sync);
        let fails = chance(&mut self.stream, self.parameters.failure_share);
        if !fails {
            agenda.read_whole(&self.files, output);
        }
        self.scientists[scientist].failed = fails.then_some(experiment);
        self.scientists[scientist].agenda = agenda;
    }
}

impl Behaviour for ScientificSimulationBehaviour {
    fn next_step(&mut self, client: u32, _time_ns: u64) -> Step {
        let scientist = client as usize;
        if let Some(step) = self.scientists[scientist].agenda.next() {
            return step;
        }
        match self.scientists[scientist].failed.take() {
            Some(experiment) => self.plan_attempt(scientist, experiment, true),
            None => match self.new_experiment() {
                Some(experiment) => self.plan_attempt(scientist, experiment, false),
                None => return Step::Done,
            },
        }
        self.scientists[scientist].agenda.next().expect("an attempt has steps")
    }

    fn directory_of(&self, file: u32) -> u32 {
        self.files.directory(file)
    }

    fn initial(&self) -> Vec<InitialFile> {
        self.initial.clone()
    }
}

impl ScientificSimulation {
    /// The workload that `parameters` describe.
    ///
    /// # Errors
    /// When a parameter is out of range.
    pub fn new(
        parameters: &ScientificSimulationParameters,
        streams: &RandomStreams,
    ) -> Result<Self, WorkloadError> {
        parameters.validate()?;
        let mut sizes = streams.stream("workload/scientific-simulation/files");
        let mut files = FileTable::default();
        let smallest = parameters.input_blocks_min;
        for _ in 0..parameters.inputs {
            files.add(between(&mut sizes, smallest, 4 * smallest), 0);
        }
        let scientist = Scientist { agenda: Agenda::new(parameters.pace.0), failed: None };
        let behaviour = ScientificSimulationBehaviour {
            parameters: *parameters,
            stream: streams.stream("workload/scientific-simulation"),
            sizes,
            initial: files.as_initial(),
            files,
            scientists: vec![scientist; parameters.scientists as usize],
            experiments: 0,
        };
        Ok(Self::over(behaviour, parameters.scientists, parameters.request_blocks))
    }

    /// The parameters it was made of.
    #[must_use]
    pub fn parameters(&self) -> &ScientificSimulationParameters {
        &self.behaviour().parameters
    }
}

#[cfg(test)]
mod tests;
