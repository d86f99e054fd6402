//! Trials side by side: each store in a process of its own, which stands still while another is measured.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;

use crate::stores::Failure;
use crate::trial::{Ending, Slice, Trial};

/// What a trial has shown, round by round.
#[derive(Debug)]
pub struct Outcome {
    pub trial: Trial,
    pub slices: Vec<Slice>,
    pub ending: Option<Ending>,
    /// Why it ended early.
    pub failure: Option<String>,
}

/// A store at work in another process.
struct Running {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Running {
    /// Starts it and waits until it is filled.
    fn start(trial: &Trial) -> Result<Self, Failure> {
        fs::create_dir(&trial.folder)?;
        let numbers =
            [trial.budget_bytes.to_string(), trial.blocks.to_string(), trial.clients.to_string()];
        let mut child = Command::new(std::env::current_exe()?)
            .arg("serve")
            .arg(&trial.store)
            .arg(&trial.folder)
            .args(numbers)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let commands = child.stdin.take().expect("it is piped");
        let answers = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut running = Self { child, commands, answers };
        running.answer::<bool>()?;
        running.signal(Signal::STOP)?;
        Ok(running)
    }

    fn signal(&self, signal: Signal) -> Result<(), Failure> {
        Ok(kill_process(Pid::from_child(&self.child), signal)?)
    }

    fn answer<T: DeserializeOwned>(&mut self) -> Result<T, Failure> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err("it ended; what it said is above".into());
        }
        Ok(serde_json::from_str(&line)?)
    }

    fn command<T: DeserializeOwned>(&mut self, command: &str) -> Result<T, Failure> {
        self.signal(Signal::CONT)?;
        writeln!(self.commands, "{command}")?;
        let answer = self.answer()?;
        self.signal(Signal::STOP)?;
        Ok(answer)
    }

    fn finish(mut self) -> Result<Ending, Failure> {
        self.signal(Signal::CONT)?;
        writeln!(self.commands, "finish")?;
        let ending = self.answer()?;
        self.child.wait()?;
        Ok(ending)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `trials` in turns of `seconds`, after one that does not count.
pub fn run(trials: Vec<Trial>, rounds: u32, seconds: f64, tell: &dyn Fn(&str)) -> Vec<Outcome> {
    let mut all: Vec<(Outcome, Option<Running>)> = Vec::new();
    for trial in trials {
        tell(&format!("filling {}", trial.store));
        let (running, failure) = match Running::start(&trial) {
            Ok(running) => (Some(running), None),
            Err(error) => (None, Some(error.to_string())),
        };
        all.push((Outcome { trial, slices: Vec::new(), ending: None, failure }, running));
    }
    for round in 0..=rounds {
        tell(&format!("round {round} of {rounds}"));
        for (outcome, running) in &mut all {
            let Some(store) = running else { continue };
            match store.command::<Slice>(&format!("run {seconds}")) {
                Ok(slice) if round > 0 => outcome.slices.push(slice),
                Ok(_) => {}
                Err(error) => {
                    outcome.failure = Some(error.to_string());
                    *running = None;
                }
            }
        }
    }
    let finish = |(mut outcome, running): (Outcome, Option<Running>)| {
        if let Some(running) = running {
            match running.finish() {
                Ok(ending) => outcome.ending = Some(ending),
                Err(error) => outcome.failure = Some(error.to_string()),
            }
        }
        remove(&outcome.trial.folder);
        outcome
    };
    all.into_iter().map(finish).collect()
}

/// Removes the folder of a trial, which this program has made.
fn remove(folder: &Path) {
    // A file that stays is seen by whoever looks at the disk; the figures are good.
    let _ = fs::remove_dir_all(folder);
}
