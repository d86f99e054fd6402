//! The one way in which sources make operations: numbers files and directories, keeps the rules,
//! counts, and passes every operation on.
//!
//! Numbers of what is gone are used again, the latest first, so that tables of files stay as small
//! as the most files alive at once. A rule that a source breaks is our own bug and panics. Cost:
//! that of [`LiveSet`] and of the sink.

use super::{LiveSet, SourceFacts, WorkloadFacts};
use crate::{Action, AgeError, Operation};

/// Takes the operations of a workload, one after another.
pub trait OperationSink {
    /// Takes one.
    ///
    /// # Errors
    /// If it cannot be kept, or someone asked to stop.
    fn push(&mut self, operation: &Operation) -> Result<(), AgeError>;
}

impl OperationSink for Vec<Operation> {
    #[inline]
    fn push(&mut self, operation: &Operation) -> Result<(), AgeError> {
        Vec::push(self, *operation);
        Ok(())
    }
}

impl<S: OperationSink + ?Sized> OperationSink for &mut S {
    #[inline]
    fn push(&mut self, operation: &Operation) -> Result<(), AgeError> {
        (**self).push(operation)
    }
}

/// Numbers, checks, counts and passes on.
#[derive(Debug)]
pub struct OperationWriter<S> {
    sink: S,
    live_set: LiveSet,
    free_files: Vec<u32>,
    free_directories: Vec<u32>,
    time_ns: u64,
    stream: u16,
}

impl<S: OperationSink> OperationWriter<S> {
    /// Begins a workload with an empty root.
    pub fn new(sink: S) -> Self {
        Self {
            sink,
            live_set: LiveSet::default(),
            free_files: Vec::new(),
            free_directories: Vec::new(),
            time_ns: 0,
            stream: 0,
        }
    }

    /// What is alive and was done so far.
    pub fn live_set(&self) -> &LiveSet {
        &self.live_set
    }

    /// Time of what follows, ns from the start.
    ///
    /// # Panics
    /// If it falls.
    pub fn set_time(&mut self, time_ns: u64) {
        assert!(time_ns >= self.time_ns, "the time of a workload falls");
        self.time_ns = time_ns;
    }

    /// Time of what follows, ns from the start.
    pub fn time_ns(&self) -> u64 {
        self.time_ns
    }

    /// The writer who does what follows.
    pub fn set_stream(&mut self, stream: u16) {
        self.stream = stream;
    }

    /// Makes a directory in `parent`; returns its number.
    ///
    /// # Errors
    /// As the sink.
    pub fn make_directory(&mut self, parent: u32) -> Result<u32, AgeError> {
        let number = self.free_directories.pop().unwrap_or(self.live_set.directory_numbers());
        self.pass(Action::MakeDirectory, number, parent, 0, 0)?;
        Ok(number)
    }

    /// Removes the empty `directory`.
    ///
    /// # Errors
    /// As the sink.
    ///
    /// # Panics
    /// If it is not there.
    pub fn remove_directory(&mut self, directory: u32) -> Result<(), AgeError> {
        let parent = self.live_set.parent_of(directory).expect("only what is there is removed");
        self.pass(Action::RemoveDirectory, directory, parent, 0, 0)?;
        self.free_directories.push(directory);
        Ok(())
    }

    /// Makes an empty file in `directory`; returns its number.
    ///
    /// # Errors
    /// As the sink.
    pub fn create(&mut self, directory: u32) -> Result<u32, AgeError> {
        let number = self.free_files.pop().unwrap_or(self.live_set.file_numbers());
        self.pass(Action::Create, number, directory, 0, 0)?;
        Ok(number)
    }

    /// Makes a file of `size_bytes`, written at once; an empty file is not written.
    ///
    /// # Errors
    /// As the sink.
    pub fn create_whole(&mut self, directory: u32, size_bytes: u64) -> Result<u32, AgeError> {
        let number = self.create(directory)?;
        if size_bytes > 0 {
            self.pass(Action::Write, number, directory, 0, size_bytes)?;
        }
        Ok(number)
    }

    /// Writes `size_bytes` of `file` from `offset_bytes`.
    ///
    /// # Errors
    /// As the sink.
    pub fn write(&mut self, file: u32, offset_bytes: u64, size_bytes: u64) -> Result<(), AgeError> {
        self.on_file(Action::Write, file, offset_bytes, size_bytes)
    }

    /// Reads `size_bytes` of `file` from `offset_bytes`.
    ///
    /// # Errors
    /// As the sink.
    pub fn read(&mut self, file: u32, offset_bytes: u64, size_bytes: u64) -> Result<(), AgeError> {
        self.on_file(Action::Read, file, offset_bytes, size_bytes)
    }

    /// Cuts or extends `file` to `size_bytes`.
    ///
    /// # Errors
    /// As the sink.
    pub fn truncate(&mut self, file: u32, size_bytes: u64) -> Result<(), AgeError> {
        self.on_file(Action::Truncate, file, size_bytes, 0)
    }

    /// Removes `file`.
    ///
    /// # Errors
    /// As the sink.
    pub fn delete(&mut self, file: u32) -> Result<(), AgeError> {
        self.on_file(Action::Delete, file, 0, 0)?;
        self.free_files.push(file);
        Ok(())
    }

    /// Moves `file` into `directory`.
    ///
    /// # Errors
    /// As the sink.
    pub fn rename(&mut self, file: u32, directory: u32) -> Result<(), AgeError> {
        self.pass(Action::Rename, file, directory, 0, 0)
    }

    /// Asks for everything to be on the device.
    ///
    /// # Errors
    /// As the sink.
    pub fn sync(&mut self) -> Result<(), AgeError> {
        self.pass(Action::Sync, 0, 0, 0, 0)
    }

    /// Asks for `file` to be on the device.
    ///
    /// # Errors
    /// As the sink.
    pub fn sync_file(&mut self, file: u32) -> Result<(), AgeError> {
        self.on_file(Action::SyncFile, file, 0, 0)
    }

    /// Ends the workload; returns its facts and the sink.
    pub fn finish(self, source: SourceFacts) -> (WorkloadFacts, S) {
        (WorkloadFacts::new(source, &self.live_set), self.sink)
    }

    fn on_file(
        &mut self,
        action: Action,
        file: u32,
        offset_bytes: u64,
        size_bytes: u64,
    ) -> Result<(), AgeError> {
        let directory = self.live_set.directory_of(file).expect("sources use files that are alive");
        self.pass(action, file, directory, offset_bytes, size_bytes)
    }

    #[inline]
    fn pass(
        &mut self,
        action: Action,
        file: u32,
        directory: u32,
        offset_bytes: u64,
        size_bytes: u64,
    ) -> Result<(), AgeError> {
        let operation = Operation {
            time_ns: self.time_ns,
            file,
            directory,
            offset_bytes,
            size_bytes,
            stream: self.stream,
            action,
        };
        if let Err(rule) = self.live_set.apply(&operation) {
            // A file beyond 2^56 bytes may stand in an input; everything else is ours.
            assert!(matches!(rule, super::BrokenRule::TooLarge(_)), "{operation:?}: {rule}");
            return Err(AgeError::Input(format!(
                "operation {}: {rule} ({size_bytes} bytes at {offset_bytes}); correct the input",
                self.live_set.operations() + 1
            )));
        }
        self.sink.push(&operation)
    }
}
