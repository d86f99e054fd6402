//! A workload from a version history written as a list of operations.
//!
//! Text, plain or compressed by zstd, one operation a line under the header
//! `commit,unix_time,op,file_id,dir_id,depth,old_size,new_size`: a number that changes with every
//! commit, its time in seconds since 1970, `A` (added), `M` (modified), `D` (deleted) or `T` (type
//! changed), numbers of the file and of its directory, how deep the directory lies below the root,
//! sizes in bytes.
//!
//! Such a list does not say in which directory a directory lies. One of depth d is put into the
//! directory of depth d - 1 that the list used last before it is met: a history lists the paths of
//! a commit in their order, so that is its parent or a neighbour of it. Chosen by us; only depths
//! and the files of each directory are exact. `T` counts as a change: a link has its text for
//! content. `old_size` is held against the size that the list gave before; where they differ, the
//! difference is counted.
//!
//! Cost: one pass over the text; memory is the paths' numbers and the longest commit.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use super::history::{Change, HistoryParameters, HistoryPlayer};
use super::{OperationSink, SourceFacts, WorkloadFacts};
use crate::AgeError;

const HEADER: &str = "commit,unix_time,op,file_id,dir_id,depth,old_size,new_size";
/// First bytes of a zstd frame (RFC 8878, §3.1.1).
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Deeper directories stand in no history: paths end at 4,096 bytes.
const DEPTH_MAX: usize = 4_096;
/// A line of this list has eight numbers of at most 20 digits; more is another kind of file.
const LINE_BYTES_MAX: u64 = 1_024;

/// Makes a workload of the list `path`.
///
/// # Errors
/// If it cannot be read or is no such list, or as the sink.
pub fn from_list<S: OperationSink>(
    path: &Path,
    parameters: &HistoryParameters,
    sink: S,
) -> Result<(WorkloadFacts, S), AgeError> {
    let mut lines = Lines::open(path)?;
    let mut player = HistoryPlayer::new(parameters, sink)?;
    let mut names = Names::default();
    let mut changes = Vec::new();
    let mut commit: Option<(u64, i64)> = None;
    let header = lines.next()?.unwrap_or_default().trim_end().to_owned();
    if header != HEADER {
        return Err(lines.wrong(&format!("the header must be '{HEADER}'")));
    }
    while let Some(text) = lines.next()? {
        let row = Row::parse(text.trim_end()).map_err(|what| lines.wrong(&what))?;
        if let Some((number, unix_s)) = commit
            && number != row.commit
        {
            player.commit(unix_s, &changes)?;
            changes.clear();
        }
        if commit.is_none_or(|(number, _)| number != row.commit) {
            commit = Some((row.commit, row.unix_s));
        }
        let file = names.file(&mut player, &row).map_err(|what| lines.wrong(&what))?;
        let size_bytes = row.new_bytes;
        changes.push(match row.kind {
            b'A' => Change::Add { file, size_bytes },
            b'D' => Change::Delete { file },
            _ => Change::Modify { file, size_bytes },
        });
    }
    if let Some((_, unix_s)) = commit {
        player.commit(unix_s, &changes)?;
    }
    let mut source = SourceFacts { source: "oplist".to_owned(), ..SourceFacts::default() };
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    source.parameters.insert("list".to_owned(), name.into());
    if names.other_old_sizes > 0 {
        let note = "old sizes that are not the size given before".to_owned();
        source.notes.insert(note, names.other_old_sizes);
    }
    Ok(player.finish(source))
}

/// One line of the list.
struct Row {
    commit: u64,
    unix_s: i64,
    kind: u8,
    file: u64,
    directory: u64,
    depth: usize,
    old_bytes: u64,
    new_bytes: u64,
}

impl Row {
    fn parse(text: &str) -> Result<Self, String> {
        let mut fields = text.split(',');
        let mut field = |name: &str| {
            fields.next().ok_or_else(|| format!("field '{name}' is missing; eight are needed"))
        };
        let (commit, unix_s, kind) = (field("commit")?, field("unix_time")?, field("op")?);
        let (file, directory) = (field("file_id")?, field("dir_id")?);
        let (depth, old_bytes) = (field("depth")?, field("old_size")?);
        let new_bytes = field("new_size")?;
        if fields.next().is_some() {
            return Err("more than eight fields".to_owned());
        }
        let kind = match kind {
            "A" | "M" | "D" | "T" => kind.as_bytes()[0],
            _ => return Err(format!("op '{kind}' is none of A, M, D, T")),
        };
        let depth = number("depth", depth)? as usize;
        if depth > DEPTH_MAX {
            return Err(format!("depth {depth} is more than {DEPTH_MAX}"));
        }
        Ok(Self {
            commit: number("commit", commit)?,
            unix_s: unix_s.parse().map_err(|_| format!("unix_time '{unix_s}' is no number"))?,
            kind,
            file: number("file_id", file)?,
            directory: number("dir_id", directory)?,
            depth,
            old_bytes: number("old_size", old_bytes)?,
            new_bytes: number("new_size", new_bytes)?,
        })
    }
}

fn number(name: &str, text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{name} '{text}' is no number"))
}

/// Numbers of the list as numbers of the history.
#[derive(Default)]
struct Names {
    files: BTreeMap<u64, u32>,
    directories: BTreeMap<u64, (u32, usize)>,
    /// The directory of each depth that was used last, from depth 1.
    latest: Vec<u32>,
    /// Sizes of the files of the history.
    bytes: Vec<u64>,
    other_old_sizes: u64,
}

impl Names {
    fn file<S: OperationSink>(
        &mut self,
        player: &mut HistoryPlayer<'_, S>,
        row: &Row,
    ) -> Result<u32, String> {
        let directory = self.directory(player, row)?;
        let file = if let Some(&file) = self.files.get(&row.file) {
            if player.directory_of(file) != directory {
                return Err(format!("file {} was in another directory before", row.file));
            }
            file
        } else {
            let file = player.add_file(directory);
            self.files.insert(row.file, file);
            self.bytes.push(0);
            file
        };
        let bytes = if row.kind == b'D' { 0 } else { row.new_bytes };
        let old_bytes = std::mem::replace(&mut self.bytes[file as usize], bytes);
        self.other_old_sizes += u64::from(old_bytes != row.old_bytes);
        Ok(file)
    }

    fn directory<S: OperationSink>(
        &mut self,
        player: &mut HistoryPlayer<'_, S>,
        row: &Row,
    ) -> Result<u32, String> {
        if row.depth == 0 {
            return Ok(0);
        }
        let number = match self.directories.get(&row.directory) {
            Some(&(number, depth)) if depth == row.depth => number,
            Some(&(_, depth)) => {
                return Err(format!("directory {} had depth {depth} before", row.directory));
            }
            None => {
                // A directory that holds no files itself is in no line; what lies between the
                // deepest one known and this one is made for it.
                let known = self.latest.len().min(row.depth - 1);
                self.latest.truncate(known);
                let mut parent = self.latest.last().copied().unwrap_or(0);
                for _ in known + 1..row.depth {
                    parent = player.add_directory(parent);
                    self.latest.push(parent);
                }
                let number = player.add_directory(parent);
                self.directories.insert(row.directory, (number, row.depth));
                number
            }
        };
        self.latest.truncate(row.depth);
        if self.latest.len() == row.depth {
            self.latest[row.depth - 1] = number;
        } else {
            // Those between are its own ancestors.
            let mut chain = vec![number];
            while chain.len() + self.latest.len() < row.depth {
                chain.push(player.parent_of(*chain.last().expect("begins with one")));
            }
            self.latest.extend(chain.into_iter().rev());
        }
        Ok(number)
    }
}

/// The lines of a list, with their numbers.
struct Lines {
    path: String,
    reader: Box<dyn BufRead>,
    text: String,
    number: u64,
}

impl Lines {
    fn open(path: &Path) -> Result<Self, AgeError> {
        let name = path.display().to_string();
        let unreadable = |why: std::io::Error| {
            AgeError::Input(format!("{name}: cannot be read: {why}; give a list of operations"))
        };
        let mut reader = BufReader::new(File::open(path).map_err(unreadable)?);
        let compressed = reader.fill_buf().map_err(unreadable)?.starts_with(&ZSTD_MAGIC);
        let reader: Box<dyn BufRead> = if compressed {
            let decoder = zstd::Decoder::with_buffer(reader).map_err(unreadable)?;
            Box::new(BufReader::new(decoder))
        } else {
            Box::new(reader)
        };
        Ok(Self { path: name, reader, text: String::new(), number: 0 })
    }

    fn next(&mut self) -> Result<Option<&str>, AgeError> {
        self.text.clear();
        self.number += 1;
        let mut bytes = Vec::new();
        let read = (&mut self.reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes);
        let count = read.map_err(|why| self.wrong(&why.to_string()))?;
        if count == 0 {
            return Ok(None);
        }
        if count as u64 == LINE_BYTES_MAX {
            return Err(self.wrong("the line is too long"));
        }
        self.text = String::from_utf8(bytes).map_err(|_| self.wrong("the line is no text"))?;
        Ok(Some(&self.text))
    }

    fn wrong(&self, what: &str) -> AgeError {
        AgeError::Input(format!(
            "{}: line {}: {what}; give a list of operations",
            self.path, self.number
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::*;
    use crate::workload::Rewrite;
    use crate::workload::slow_rules::walk;
    use crate::{Action, Operation};

    type Made = (WorkloadFacts, Vec<Operation>);

    fn make(text: &str, parameters: &HistoryParameters) -> Result<Made, AgeError> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("list.csv");
        std::fs::write(&path, text).expect("a temporary folder");
        from_list(&path, parameters, Vec::new())
    }

    fn recorded(name: &str) -> Option<PathBuf> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/history");
        let path = Path::new(folder).join(name);
        if path.exists() {
            return Some(path);
        }
        #[expect(clippy::print_stderr, reason = "says why a test is skipped")]
        {
            eprintln!("skipped: {} is not there", path.display());
        }
        None
    }

    // A recorded history ends with the files its last lines leave, and writes what they say: the
    // figures were counted from the list by another program.
    #[test]
    fn a_recorded_history_ends_as_its_list_says() {
        let Some(path) = recorded("gitage_fio.csv.zst") else { return };
        let parameters = HistoryParameters::default();
        let (facts, operations) = from_list(&path, &parameters, Vec::new()).expect("recorded");
        assert_eq!((facts.live_files, facts.live_bytes), (736, 11_657_993));
        assert_eq!(facts.actions["create"], 957 + 14_752);
        assert_eq!(facts.actions["delete"], 221 + 14_752);
        assert_eq!(facts.notes["commits"], 7_122);
        assert_eq!(facts.notes["commit times that step back, held at the latest before"], 15);
        assert_eq!(facts.actions["sync"], 7_122 / 20);
        // The slow walk sums all live files at every step: a part is enough.
        walk(&operations[..20_000]).expect("the rules hold");
    }

    // Copies are the same tree, each below a directory and from a writer of its own.
    #[test]
    fn copies_multiply_the_tree() {
        let Some(path) = recorded("gitage_fio.csv.zst") else { return };
        let parameters = HistoryParameters {
            copies: 4,
            rewrite: Rewrite::InPlace,
            sync_every_commits: 0,
            scale: 2.0,
        };
        let (facts, operations) = from_list(&path, &parameters, Vec::new()).expect("recorded");
        assert_eq!((facts.live_files, facts.live_bytes), (4 * 736, 8 * 11_657_993));
        assert_eq!(facts.actions["create"], 4 * 957);
        assert_eq!(facts.actions["truncate"], 4 * 14_752);
        assert_eq!(facts.streams, 4);
        let roots = operations.iter().filter(|operation| {
            operation.action == Action::MakeDirectory && operation.directory == 0
        });
        assert_eq!(roots.count(), 4);
    }

    const LIST: &str = "commit,unix_time,op,file_id,dir_id,depth,old_size,new_size\n\
        0,100,A,0,0,0,0,10\n\
        0,100,A,1,5,2,0,20\n\
        1,90,M,0,0,0,10,30\n\
        1,90,D,1,5,2,20,0\n";

    // Directories come with their first file and go with their last one; deletions come first.
    #[test]
    fn a_short_list_becomes_exactly_these_operations() {
        let parameters = HistoryParameters { sync_every_commits: 0, ..Default::default() };
        let (facts, operations) = make(LIST, &parameters).expect("valid");
        let done: Vec<(Action, u32, u32, u64)> = operations
            .iter()
            .map(|step| (step.action, step.file, step.directory, step.size_bytes))
            .collect();
        assert_eq!(
            done,
            [
                (Action::Create, 0, 0, 0),
                (Action::Write, 0, 0, 10),
                (Action::MakeDirectory, 1, 0, 0),
                (Action::MakeDirectory, 2, 1, 0),
                (Action::Create, 1, 2, 0),
                (Action::Write, 1, 2, 20),
                (Action::Delete, 1, 2, 0),
                (Action::RemoveDirectory, 2, 1, 0),
                (Action::RemoveDirectory, 1, 0, 0),
                (Action::Delete, 0, 0, 0),
                (Action::Create, 0, 0, 0),
                (Action::Write, 0, 0, 30),
            ]
        );
        assert_eq!((facts.start_unix_s, facts.last_ns), (Some(100), 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        // Whatever the list says, the result keeps the rules or the list is refused in one line.
        #[test]
        fn any_list_keeps_the_rules_or_is_refused(
            rows in prop::collection::vec(
                (0..3_u64, -5..5_i64, "[AMDT]", 0..6_u64, 0..4_u64, 0..4_u64), 0..60),
            copies in 1..3_u32, in_place in any::<bool>(),
        ) {
            let mut text = format!("{HEADER}\n");
            let mut commit = 0;
            for (step, unix_s, kind, file, directory, depth) in rows {
                commit += step;
                let line = format!("{commit},{unix_s},{kind},{file},{directory},{depth},1,2\n");
                text.push_str(&line);
            }
            let rewrite = if in_place { Rewrite::InPlace } else { Rewrite::Replace };
            let parameters = HistoryParameters { copies, rewrite, ..Default::default() };
            match make(&text, &parameters) {
                Ok((_, operations)) => {
                    walk(&operations).map_err(TestCaseError::fail)?;
                }
                Err(error) => prop_assert!(error.to_string().contains("line "), "{}", error),
            }
        }
    }

    // Each kind of damage names its line.
    #[test]
    fn a_damaged_list_is_refused_with_its_line() {
        let parameters = HistoryParameters::default();
        let refused = |text: &str| make(text, &parameters).expect_err("damaged").to_string();
        assert!(refused("a,b\n").contains("list.csv: line 1: the header must be"));
        let broken = LIST.replace("1,90,D", "1,90,X");
        assert!(refused(&broken).contains("line 5: op 'X' is none of A, M, D, T"));
        let short = LIST.replace("0,100,A,1,5,2,0,20", "0,100,A,1");
        assert!(refused(&short).contains("line 3: field 'dir_id' is missing"));
        let moved = LIST.replace("1,90,D,1,5", "1,90,D,1,6");
        assert!(refused(&moved).contains("line 5: file 1 was in another directory"));
        let late = LIST.replace("1,90", "1,9223372036854775807");
        assert!(refused(&late).contains("commit 2: its time"));
        let large = LIST.replace("0,0,10\n", "0,0,18446744073709551615\n");
        assert!(refused(&large).contains("becomes too large"));
    }
}
