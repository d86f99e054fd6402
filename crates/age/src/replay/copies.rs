//! Several copies of a workload side by side, each in a directory of its own.
//!
//! A git history or a profile is often smaller than the file system to age. With n copies every
//! file stands n times; each copy does what the workload does, a file's run of operations (its
//! creation and the writes behind it, within a day) at a time, one copy after the other. Syncs
//! happen once.
//!
//! Numbers: copy `c` of file `f` is `f * n + c`; the root stays, copy `c` has directory `1 + c` for
//! its root and `1 + d * n + c` for directory `d`; its streams are `s * n + c`. One copy changes
//! nothing.

use agewell_core::DAY_NS;

use crate::{Action, AgeError, Operation};

/// Operations on one file that stay together; chosen by us, a bound of the memory needed.
const RUN_OPERATIONS_MAX: usize = 64;

/// A workload times a number of copies.
#[derive(Debug)]
pub(super) struct Copies<S> {
    source: S,
    count: u32,
    /// The streams are dealt out again among this number, by file.
    streams: Option<u16>,
    begun: bool,
    /// The run that is handed out, and what comes behind it.
    run: Vec<Operation>,
    ahead: Option<Operation>,
    /// The next to hand out: of the run, for which copy.
    next: usize,
    copy: u32,
    /// Time of the last one handed out.
    latest_ns: u64,
}

impl<S: Iterator<Item = Result<Operation, AgeError>>> Copies<S> {
    pub(super) fn new(source: S, copies: u32, streams: Option<u16>) -> Self {
        Self {
            source,
            count: copies.max(1),
            streams,
            begun: false,
            run: Vec::new(),
            ahead: None,
            next: 0,
            copy: 0,
            latest_ns: 0,
        }
    }

    /// Reads the next run.
    fn read(&mut self) -> Result<bool, AgeError> {
        self.run.clear();
        (self.next, self.copy) = (0, 0);
        let Some(first) = self.pull()? else { return Ok(false) };
        if !self.begun {
            self.begun = true;
            self.ahead = Some(first);
            self.run.push(Operation {
                file: 0,
                directory: 0,
                action: Action::MakeDirectory,
                offset_bytes: 0,
                size_bytes: 0,
                ..first
            });
            return Ok(true);
        }
        self.run.push(first);
        while self.run.len() < RUN_OPERATIONS_MAX {
            let Some(next) = self.pull()? else { break };
            if !goes_on(&first, &next) {
                self.ahead = Some(next);
                break;
            }
            self.run.push(next);
        }
        Ok(true)
    }

    fn pull(&mut self) -> Result<Option<Operation>, AgeError> {
        match self.ahead.take() {
            Some(operation) => Ok(Some(operation)),
            None => self.source.next().transpose(),
        }
    }

    fn for_copy(&self, operation: &Operation) -> Result<Operation, AgeError> {
        let mut copied = *operation;
        if operation.action == Action::Sync {
            return Ok(copied);
        }
        let numbered = |number: u32, first: u32| {
            let below = number.checked_mul(self.count)?.checked_add(first)?;
            below.checked_add(self.copy)
        };
        let makes_root = operation.action == Action::MakeDirectory && operation.file == 0;
        let directories =
            matches!(operation.action, Action::MakeDirectory | Action::RemoveDirectory);
        let mapped = (|| {
            copied.file = numbered(operation.file, u32::from(directories))?;
            copied.directory = if makes_root { 0 } else { numbered(operation.directory, 1)? };
            let stream = u32::from(operation.stream) * self.count + self.copy;
            copied.stream = (stream % (u32::from(u16::MAX) + 1)) as u16;
            Some(())
        })();
        mapped.map(|()| copied).ok_or_else(|| {
            AgeError::Input(format!(
                "{} copies of a workload whose numbers reach {} are too many; use fewer",
                self.count,
                operation.file.max(operation.directory)
            ))
        })
    }

    fn dealt_out(&self, mut operation: Operation) -> Operation {
        if let Some(streams) = self.streams {
            operation.stream = (operation.file % u32::from(streams.max(1))) as u16;
        }
        operation
    }
}

/// Whether `next` belongs to the run of `first`.
fn goes_on(first: &Operation, next: &Operation) -> bool {
    let on_file =
        |action| !matches!(action, Action::MakeDirectory | Action::RemoveDirectory | Action::Sync);
    let same_day = first.time_ns / DAY_NS == next.time_ns / DAY_NS;
    on_file(first.action) && on_file(next.action) && first.file == next.file && same_day
}

impl<S: Iterator<Item = Result<Operation, AgeError>>> Iterator for Copies<S> {
    type Item = Result<Operation, AgeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.count == 1 {
            return self.source.next().map(|read| read.map(|operation| self.dealt_out(operation)));
        }
        if self.next == self.run.len() {
            self.next = 0;
            let last = self.run.first().is_none_or(|first| first.action == Action::Sync);
            self.copy += 1;
            if last || self.copy == self.count {
                match self.read() {
                    Ok(true) => {}
                    Ok(false) => return None,
                    Err(why) => return Some(Err(why)),
                }
            }
        }
        let mut operation = self.run[self.next];
        self.next += 1;
        // The next copy begins the run when this one ends it: times do not fall.
        operation.time_ns = operation.time_ns.max(self.latest_ns);
        self.latest_ns = operation.time_ns;
        Some(self.for_copy(&operation).map(|copied| self.dealt_out(copied)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(action: Action, file: u32, directory: u32) -> Operation {
        Operation { time_ns: 5, file, directory, offset_bytes: 0, size_bytes: 0, stream: 0, action }
    }

    fn of(operations: &[Operation], copies: u32) -> Vec<(Action, u32, u32, u16)> {
        let source = operations.iter().copied().map(Ok);
        Copies::new(source, copies, None)
            .map(|read| read.expect("small numbers"))
            .map(|read| (read.action, read.file, read.directory, read.stream))
            .collect()
    }

    /// Each copy has a root of its own; runs of one file stay together; a sync happens once.
    #[test]
    fn two_copies_side_by_side() {
        let operations = [
            operation(Action::MakeDirectory, 1, 0),
            operation(Action::Create, 0, 1),
            operation(Action::Write, 0, 1),
            operation(Action::Create, 1, 0),
            operation(Action::Sync, 0, 0),
            operation(Action::Delete, 0, 1),
        ];
        let expected = [
            (Action::MakeDirectory, 1, 0, 0),
            (Action::MakeDirectory, 2, 0, 1),
            (Action::MakeDirectory, 3, 1, 0),
            (Action::MakeDirectory, 4, 2, 1),
            (Action::Create, 0, 3, 0),
            (Action::Write, 0, 3, 0),
            (Action::Create, 1, 4, 1),
            (Action::Write, 1, 4, 1),
            (Action::Create, 2, 1, 0),
            (Action::Create, 3, 2, 1),
            (Action::Sync, 0, 0, 0),
            (Action::Delete, 0, 3, 0),
            (Action::Delete, 1, 4, 1),
        ];
        assert_eq!(of(&operations, 2), expected);
        let alone: Vec<_> =
            operations.iter().map(|one| (one.action, one.file, one.directory, 0)).collect();
        assert_eq!(of(&operations, 1), alone);
    }

    /// Numbers that do not fit are said, not wrapped.
    #[test]
    fn too_many_copies_are_refused() {
        let source = [Ok(operation(Action::Create, u32::MAX / 2, 0))];
        let last = Copies::new(source.into_iter(), 3, None).last().expect("one at least");
        assert!(last.expect_err("too many").to_string().contains("use fewer"));
    }
}
