//! Which processes asked for requests.

use std::collections::BTreeMap;

use crate::decode::ProcessName;

/// Processes whose names are kept; chosen by us: a few megabytes.
const NAMES_MAX: usize = 1 << 16;

/// Numbers of processes as a trace has them, and their names unless the recording is anonymous.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    anonymous: bool,
    names: BTreeMap<u32, ProcessName>,
    numbers: BTreeMap<u32, u32>,
    last: Option<(u32, ProcessName)>,
}

impl Processes {
    /// An anonymous recording numbers processes as they appear and keeps no name.
    pub(crate) fn new(anonymous: bool) -> Self {
        Self { anonymous, ..Self::default() }
    }

    /// The number in the trace of process `process`, of which the kernel said `name` or nothing.
    #[inline]
    pub(crate) fn number(&mut self, process: u32, name: Option<ProcessName>) -> u32 {
        if self.anonymous {
            let next = self.numbers.len() as u32 + 1;
            return *self.numbers.entry(process).or_insert(next);
        }
        if let Some(name) = name
            && self.last != Some((process, name))
        {
            self.last = Some((process, name));
            if self.names.len() < NAMES_MAX || self.names.contains_key(&process) {
                self.names.insert(process, name);
            }
        }
        process
    }

    /// The names, printable.
    pub(crate) fn names(&self) -> BTreeMap<u32, String> {
        let text = |name: &ProcessName| {
            let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
            name[..end].escape_ascii().to_string()
        };
        self.names.iter().map(|(&process, name)| (process, text(name))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Processes;

    #[test]
    fn names_are_kept_as_they_were_last_unless_no_one_is_to_know_them() {
        let name = |text: &[u8]| {
            let mut name = [0; 16];
            name[..text.len()].copy_from_slice(text);
            Some(name)
        };
        let mut open = Processes::new(false);
        let mut anonymous = Processes::new(true);
        for (process, text) in [(70, &b"sh"[..]), (70, b"tar\n"), (9, b"init")] {
            assert_eq!(open.number(process, name(text)), process);
            anonymous.number(process, name(text));
        }
        let names = open.names();
        assert_eq!(names.len(), 2);
        assert_eq!(names[&70], "tar\\n");
        assert_eq!(anonymous.number(70, None), 1);
        assert_eq!(anonymous.number(9, None), 2);
        assert!(anonymous.names().is_empty());
    }
}
