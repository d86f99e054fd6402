//! The rules of [`crate::operation`] a second time, as slowly and plainly as they are written
//! there, for tests: sets of what is alive, nothing shared with [`super::LiveSet`].

use std::collections::{BTreeMap, BTreeSet};

use crate::{Action, Operation};

/// What is left after a workload, found the slow way.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Remains {
    /// Directory and length in bytes of each live file.
    pub(crate) files: BTreeMap<u32, (u32, u64)>,
    /// Parent of each directory but the root.
    pub(crate) directories: BTreeMap<u32, u32>,
    /// The most bytes alive at once.
    pub(crate) peak_bytes: u64,
}

/// Walks a workload; says which operation breaks which rule.
pub(crate) fn walk(operations: &[Operation]) -> Result<Remains, String> {
    let mut remains = Remains::default();
    let (mut file_numbers, mut directory_numbers) = (BTreeSet::new(), BTreeSet::from([0]));
    let mut latest_ns = 0;
    for (index, operation) in operations.iter().enumerate() {
        let fail = |what: &str| Err(format!("operation {index} ({operation:?}): {what}"));
        if operation.time_ns < latest_ns {
            return fail("times do not fall");
        }
        latest_ns = operation.time_ns;
        let (number, directory) = (operation.file, operation.directory);
        let there = directory == 0 || remains.directories.contains_key(&directory);
        let numbers = match operation.action {
            Action::MakeDirectory | Action::RemoveDirectory => &mut directory_numbers,
            _ => &mut file_numbers,
        };
        if matches!(operation.action, Action::Create | Action::MakeDirectory) {
            if number > 0 && !numbers.contains(&(number - 1)) {
                return fail("numbered densely");
            }
            numbers.insert(number);
        }
        match operation.action {
            Action::Sync => {}
            _ if !there => return fail("nothing in a directory before its MakeDirectory"),
            Action::Create => {
                if remains.files.insert(number, (directory, 0)).is_some() {
                    return fail("made twice");
                }
            }
            Action::MakeDirectory => {
                if number == 0 || remains.directories.insert(number, directory).is_some() {
                    return fail("made twice");
                }
            }
            Action::RemoveDirectory => {
                let holds = remains.files.values().any(|(parent, _)| *parent == number)
                    || remains.directories.values().any(|parent| *parent == number);
                if holds {
                    return fail("a directory is empty when it is removed");
                }
                if remains.directories.remove(&number) != Some(directory) {
                    return fail("removed where it is not");
                }
            }
            action => {
                let Some((parent, bytes)) = remains.files.get_mut(&number) else {
                    return fail("nothing is done to a file before Create or after Delete");
                };
                if action == Action::Rename {
                    *parent = directory;
                } else if *parent != directory {
                    return fail("the directory is the one it is in");
                }
                match action {
                    Action::Write if operation.size_bytes > 0 => {
                        *bytes = (*bytes).max(operation.offset_bytes + operation.size_bytes);
                    }
                    Action::Truncate => *bytes = operation.offset_bytes,
                    Action::Delete => {
                        remains.files.remove(&number);
                    }
                    _ => {}
                }
            }
        }
        let live = remains.files.values().map(|(_, bytes)| bytes).sum();
        remains.peak_bytes = remains.peak_bytes.max(live);
    }
    Ok(remains)
}
