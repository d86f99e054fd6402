//! Rights that a file gives who runs it, which it loses when others than its owner change it.

use std::fs;

use agewell_fs::Attributes;
use agewell_fuse::Caller;

const SET_GROUP_ID: u32 = 0o2000;
const GROUP_EXECUTES: u32 = 0o010;

/// Whether a file that `caller` changes loses them. Of `write` and `truncate` the kernel says so; of the
/// others it knows (`CAP_FSETID`) and does not say.
pub(crate) fn are_lost(caller: &Caller) -> bool {
    caller.user != 0
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
    let status = || fs::read_to_string(format!("/proc/{}/status", caller.process)).ok();
    caller.group == group || status().is_some_and(|status| has_group(&status, group))
}

/// Whether a process has a group, out of its `/proc/PID/status`.
fn has_group(status: &str, group: u32) -> bool {
    let groups = status.lines().find_map(|line| line.strip_prefix("Groups:"));
    groups.is_some_and(|groups| groups.split_whitespace().any(|one| one.parse() == Ok(group)))
}

#[cfg(test)]
mod tests {
    use super::{has_group, is_group_lost};
    use agewell_fs::{Attributes, Time};
    use agewell_fuse::Caller;

    #[test]
    fn groups_are_those_of_the_process() {
        let status = "Name:\tx\nGroups:\t4 24 2001 \nNStgid:\t7\n";
        assert!(has_group(status, 24) && has_group(status, 2001));
        assert!(!has_group(status, 7) && !has_group(status, 2) && !has_group("", 4));
    }

    #[test]
    fn who_is_of_the_group_keeps_its_bit() {
        let none = Time::default();
        let file = |mode| Attributes {
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
        };
        let by = |group| Caller { user: 5, group, process: 0 };
        assert!(is_group_lost(&by(8), &file(0o102_744)));
        assert!(!is_group_lost(&by(9), &file(0o102_744)));
        assert!(!is_group_lost(&by(8), &file(0o102_754)), "the usual rule takes it");
        assert!(!is_group_lost(&by(8), &file(0o042_744)), "of a directory it means something else");
    }
}
