//! Who asks, and rights that a file gives who runs it, which it loses when others than its owner change it.
//!
//! Linux 6.12 and later say the user only of requests that make something, as mounts may show other users'
//! numbers ([`Caller::UNSAID`]). Of others it is asked what the process is.

use std::fs;

use agewell_fs::Attributes;
use agewell_fuse::Caller;

const SET_GROUP_ID: u32 = 0o2000;
const GROUP_EXECUTES: u32 = 0o010;

/// Whether `caller` is root.
pub(crate) fn is_root(caller: &Caller) -> bool {
    match caller.user {
        Caller::UNSAID => status(caller).is_some_and(|status| acts_as(&status, "Uid:", 0)),
        user => user == 0,
    }
}

/// Whether a file that `caller` changes loses such rights, those of its capabilities among them. Of `write` and
/// `truncate` the kernel says so; of the others it knows (`CAP_FSETID`) and does not say.
pub(crate) fn are_lost(caller: &Caller) -> bool {
    !is_root(caller)
}

/// Whether it loses the bit for the group as well where no group may run it: then only those who are of that
/// group keep the bit (`setattr_should_drop_sgid` of Linux 6.2 and later).
pub(crate) fn is_group_lost(caller: &Caller, file: &Attributes) -> bool {
    let is_file = !file.file_type().is_dir();
    is_file
        && file.mode & (SET_GROUP_ID | GROUP_EXECUTES) == SET_GROUP_ID
        && !is_of(caller, file.gid)
}

/// The mode without that bit.
pub(crate) fn without_group(mode: u32) -> u32 {
    mode & !SET_GROUP_ID
}

/// Whether `caller` is of a group, by its first one or another.
fn is_of(caller: &Caller, group: u32) -> bool {
    let by_status = |status: String| {
        let is_first = caller.group == Caller::UNSAID && acts_as(&status, "Gid:", group);
        is_first || has_group(&status, group)
    };
    caller.group == group || status(caller).is_some_and(by_status)
}

/// What Linux says of the process, if it can be seen from here.
fn status(caller: &Caller) -> Option<String> {
    fs::read_to_string(format!("/proc/{}/status", caller.process)).ok()
}

/// Whether `number` is the one by which a process is judged in file systems: the last of four in the line that
/// begins with `line` of its `/proc/PID/status`.
fn acts_as(status: &str, line: &str, number: u32) -> bool {
    let four = status.lines().find_map(|one| one.strip_prefix(line));
    four.is_some_and(|four| four.split_whitespace().last().map(str::parse) == Some(Ok(number)))
}

/// Whether a process has a group, out of its `/proc/PID/status`.
fn has_group(status: &str, group: u32) -> bool {
    let groups = status.lines().find_map(|line| line.strip_prefix("Groups:"));
    groups.is_some_and(|groups| groups.split_whitespace().any(|one| one.parse() == Ok(group)))
}

#[cfg(test)]
mod tests {
    use super::{acts_as, has_group, is_group_lost, is_root};
    use agewell_fs::{Attributes, Time};
    use agewell_fuse::Caller;

    #[test]
    fn groups_are_those_of_the_process() {
        let status = "Name:\tx\nGroups:\t4 24 2001 \nNStgid:\t7\n";
        assert!(has_group(status, 24) && has_group(status, 2001));
        assert!(!has_group(status, 7) && !has_group(status, 2) && !has_group("", 4));
    }

    #[test]
    fn who_a_process_acts_as_is_the_last_of_four() {
        let status = "Name:\tUid:\nUid:\t1000\t1001\t1002\t0\nGid:\t5\t6\t7\t8\nGroups:\t9\n";
        assert!(acts_as(status, "Uid:", 0) && acts_as(status, "Gid:", 8));
        assert!(!acts_as(status, "Uid:", 1000) && !acts_as(status, "Gid:", 5));
        assert!(!acts_as("", "Uid:", 0) && !acts_as("Uid:\n", "Uid:", 0));
    }

    #[test]
    fn who_is_not_said_is_looked_up_by_the_process() {
        let this =
            Caller { user: Caller::UNSAID, group: Caller::UNSAID, process: std::process::id() };
        assert_eq!(is_root(&this), rustix::process::geteuid().is_root());
        assert!(is_root(&Caller { user: 0, ..this }) && !is_root(&Caller { user: 5, ..this }));
        // Outside the daemon's name space.
        assert!(!is_root(&Caller { process: 0, ..this }));
        let group = rustix::process::getegid().as_raw();
        assert!(!is_group_lost(&this, &Attributes { gid: group, ..file(0o102_744) }));
    }

    fn file(mode: u32) -> Attributes {
        let none = Time::default();
        Attributes {
            inode: 2,
            mode,
            links: 1,
            uid: 7,
            gid: 9,
            device: 0,
            size: 0,
            sectors: 0,
            accessed: none,
            modified: none,
            changed: none,
            created: none,
        }
    }

    #[test]
    fn who_is_of_the_group_keeps_its_bit() {
        let by = |group| Caller { user: 5, group, process: 0 };
        assert!(is_group_lost(&by(8), &file(0o102_744)));
        assert!(!is_group_lost(&by(9), &file(0o102_744)));
        assert!(!is_group_lost(&by(8), &file(0o102_754)), "the usual rule takes it");
        assert!(!is_group_lost(&by(8), &file(0o042_744)), "of a directory it means something else");
    }
}
