//! A workload from the history of a git repository on disk, without a checkout.
//!
//! Only two questions are put to the `git` program, neither of which writes: the sizes of all blobs
//! (`cat-file --batch-all-objects --batch-check`) and the first-parent history with the blobs of
//! both sides of every change (`log --first-parent -m --raw --no-renames`). The first-parent
//! history is what successive pulls show, and a consistent one: nothing present is added, nothing
//! absent deleted. No blob is read, so a repository that lacks some still serves.
//!
//! Left out and counted: symbolic links and submodules, changes of mode alone. A blob that is
//! missing (partial or damaged clone) has no size: its file is made empty, and that is counted.
//!
//! Cost: the time of git itself; memory is 40 bytes a blob and a few words a path.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;

use super::history::{Change, HistoryParameters, HistoryPlayer};
use super::{OperationSink, SourceFacts, WorkloadFacts};
use crate::AgeError;

/// Bytes of the longest object name: SHA-256.
const HASH_BYTES: usize = 32;
type Hash = [u8; HASH_BYTES];
/// More than any path (4,096) and any header of a change (170); a longer piece is no git output.
const PIECE_BYTES_MAX: u64 = 1 << 16;
/// Stands for a complaint that git did not make.
const NO_REASON: &str = "(no reason given)";

/// Makes a workload of the history of `repository` that leads to `revision` (`HEAD`, a branch, a
/// tag, a commit).
///
/// # Errors
/// If git cannot be run, finds no such history, or fails; or as the sink.
pub fn from_repository<S: OperationSink>(
    repository: &Path,
    revision: &str,
    parameters: &HistoryParameters,
    sink: S,
) -> Result<(WorkloadFacts, S), AgeError> {
    parameters.check()?;
    let tip = resolve(repository, revision)?;
    let sizes = blob_sizes(repository)?;
    let player = HistoryPlayer::new(parameters, sink)?;
    let mut log = Log { player, sizes, paths: Paths::default(), odd: Odd::default() };
    log.play(repository, &tip)?;
    let mut source = SourceFacts { source: "git".to_owned(), ..SourceFacts::default() };
    source.parameters.insert("revision".to_owned(), tip.into());
    for (note, count) in [
        ("changes of symbolic links and submodules left out", log.odd.links),
        ("changes of mode alone left out", log.odd.modes),
        ("missing blobs, their files made empty", log.odd.missing),
    ] {
        if count > 0 {
            source.notes.insert(note.to_owned(), count);
        }
    }
    Ok(log.player.finish(source))
}

/// What was met that is no change of a file's content.
#[derive(Default)]
struct Odd {
    links: u64,
    modes: u64,
    missing: u64,
}

struct Log<'a, S> {
    player: HistoryPlayer<'a, S>,
    sizes: Vec<(Hash, u64)>,
    paths: Paths,
    odd: Odd,
}

impl<S: OperationSink> Log<'_, S> {
    fn play(&mut self, repository: &Path, tip: &str) -> Result<(), AgeError> {
        let mut git = Git::start(
            repository,
            &[
                "log",
                "-z",
                "--reverse",
                "--first-parent",
                "-m",
                "--root",
                "--raw",
                "--no-renames",
                "--no-abbrev",
                "--no-show-signature",
                "--no-ext-diff",
                "--ignore-submodules=none",
                "--format=@%ct",
                tip,
                "--",
            ],
        )?;
        let mut changes = Vec::new();
        let mut commit: Option<i64> = None;
        let (mut piece, mut path) = (Vec::new(), Vec::new());
        while git.piece(&mut piece)? {
            // A commit's raw lines are set off from its title by a line end.
            let text = piece.strip_prefix(b"\n").unwrap_or(&piece);
            if let Some(time) = text.strip_prefix(b"@") {
                if let Some(unix_s) = commit {
                    self.player.commit(unix_s, &changes)?;
                }
                changes.clear();
                let time = std::str::from_utf8(time).ok().and_then(|time| time.trim().parse().ok());
                commit = Some(time.ok_or_else(|| git.strange(&piece))?);
            } else if let Some(header) = text.strip_prefix(b":") {
                let header = Header::parse(header).ok_or_else(|| git.strange(&piece))?;
                if commit.is_none() || !git.piece(&mut path)? || path.is_empty() {
                    return Err(git.strange(&piece));
                }
                changes.extend(self.change(&header, &path));
            } else if !text.is_empty() {
                return Err(git.strange(&piece));
            }
        }
        if let Some(unix_s) = commit {
            self.player.commit(unix_s, &changes)?;
        }
        git.finish()
    }

    fn change(&mut self, header: &Header, path: &[u8]) -> Option<Change> {
        if !header.old_is_file && !header.new_is_file {
            self.odd.links += 1;
            return None;
        }
        let file = self.paths.file(&mut self.player, path);
        if !header.new_is_file {
            // Deleted, or a link took its place, which is left out.
            self.odd.links += u64::from(header.new_is_there);
            return Some(Change::Delete { file });
        }
        if header.old_is_file && header.old_hash == header.new_hash {
            self.odd.modes += 1;
            return None;
        }
        let found = self.sizes.binary_search_by(|(hash, _)| hash.cmp(&header.new_hash));
        let size_bytes = found.map_or(0, |index| self.sizes[index].1);
        self.odd.missing += u64::from(found.is_err());
        Some(if header.old_is_file {
            Change::Modify { file, size_bytes }
        } else {
            self.odd.links += u64::from(header.old_is_there);
            Change::Add { file, size_bytes }
        })
    }
}

/// `100644 100644 <hash> <hash> M`: modes, blobs and kind of a change, without its colon.
#[expect(clippy::struct_excessive_bools, reason = "two facts of each of two sides")]
struct Header {
    old_is_there: bool,
    old_is_file: bool,
    old_hash: Hash,
    new_is_there: bool,
    new_is_file: bool,
    new_hash: Hash,
}

impl Header {
    fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let mut fields = text.split(' ');
        let (old_mode, new_mode) = (fields.next()?, fields.next()?);
        let (old_hash, new_hash) = (parse_hash(fields.next()?)?, parse_hash(fields.next()?)?);
        let kind = fields.next()?;
        if kind.is_empty() || fields.next().is_some() || old_mode.len() != 6 || new_mode.len() != 6
        {
            return None;
        }
        Some(Self {
            old_is_there: old_mode != "000000",
            old_is_file: old_mode.starts_with("100"),
            old_hash,
            new_is_there: new_mode != "000000",
            new_is_file: new_mode.starts_with("100"),
            new_hash,
        })
    }
}

fn parse_hash(text: &str) -> Option<Hash> {
    let text = text.as_bytes();
    if text.len() > 2 * HASH_BYTES || !text.len().is_multiple_of(2) {
        return None;
    }
    let mut hash = [0; HASH_BYTES];
    let digit = |byte: u8| char::from(byte).to_digit(16);
    for (byte, pair) in hash.iter_mut().zip(text.chunks_exact(2)) {
        *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
    }
    Some(hash)
}

/// Paths as numbers of the history.
#[derive(Default)]
struct Paths {
    files: BTreeMap<Box<[u8]>, u32>,
    directories: BTreeMap<Box<[u8]>, u32>,
}

impl Paths {
    fn file<S: OperationSink>(&mut self, player: &mut HistoryPlayer<'_, S>, path: &[u8]) -> u32 {
        if let Some(&file) = self.files.get(path) {
            return file;
        }
        let directory = self.directory(player, parent(path));
        let file = player.add_file(directory);
        self.files.insert(path.into(), file);
        file
    }

    /// The directory at `path`; those above it are met on the way.
    fn directory<S: OperationSink>(
        &mut self,
        player: &mut HistoryPlayer<'_, S>,
        path: &[u8],
    ) -> u32 {
        let mut missing = Vec::new();
        let mut rest = path;
        let mut number = loop {
            if rest.is_empty() {
                break 0;
            }
            if let Some(&number) = self.directories.get(rest) {
                break number;
            }
            missing.push(rest);
            rest = parent(rest);
        };
        for path in missing.into_iter().rev() {
            number = player.add_directory(number);
            self.directories.insert(path.into(), number);
        }
        number
    }
}

fn parent(path: &[u8]) -> &[u8] {
    path.iter().rposition(|&byte| byte == b'/').map_or(&[], |slash| &path[..slash])
}

/// The full name of the commit that `revision` means.
fn resolve(repository: &Path, revision: &str) -> Result<String, AgeError> {
    let commit = format!("{revision}^{{commit}}");
    let mut git =
        Git::start(repository, &["rev-parse", "--verify", "--quiet", "--end-of-options", &commit])?;
    let mut name = String::new();
    let read = git.output.read_to_string(&mut name);
    read.map_err(|why| git.failed(&why.to_string()))?;
    // `--quiet` leaves no message where the revision alone is at fault.
    git.finish().map_err(|error| match error {
        AgeError::Input(text) if text.ends_with(NO_REASON) => AgeError::Input(format!(
            "{}: has no commit '{revision}'; give a branch, a tag or a commit",
            repository.display()
        )),
        other => other,
    })?;
    Ok(name.trim().to_owned())
}

/// The length of every blob, by name.
fn blob_sizes(repository: &Path) -> Result<Vec<(Hash, u64)>, AgeError> {
    let mut git = Git::start(
        repository,
        &[
            "cat-file",
            "--batch-all-objects",
            "--batch-check=%(objecttype) %(objectname) %(objectsize)",
        ],
    )?;
    let mut sizes = Vec::new();
    let mut line = String::new();
    loop {
        line.clear();
        let read = git.output.read_line(&mut line);
        if read.map_err(|why| git.failed(&why.to_string()))? == 0 {
            break;
        }
        let Some(blob) = line.trim_end().strip_prefix("blob ") else { continue };
        let entry = blob
            .split_once(' ')
            .and_then(|(hash, bytes)| Some((parse_hash(hash)?, bytes.parse::<u64>().ok()?)));
        sizes.push(entry.ok_or_else(|| git.strange(line.as_bytes()))?);
    }
    git.finish()?;
    // git lists them in this order already; sorting a sorted list costs one pass.
    sizes.sort_unstable();
    Ok(sizes)
}

/// A running git whose output is read.
struct Git {
    child: Child,
    output: BufReader<ChildStdout>,
    /// Reads what git complains of; without a reader of its own a long complaint would block git.
    complaint: Option<JoinHandle<String>>,
    repository: String,
    command: String,
}

impl Git {
    fn start(repository: &Path, arguments: &[&str]) -> Result<Self, AgeError> {
        let mut child = Command::new("git")
            .arg("-C")
            .arg(repository)
            .arg("--no-pager")
            // What a person's configuration may not change: the order of paths, the root commit.
            .args(["-c", "diff.orderFile=/dev/null", "-c", "log.showRoot=true"])
            .args(arguments)
            // Nothing is fetched and nothing is written.
            .envs([("GIT_NO_LAZY_FETCH", "1"), ("GIT_OPTIONAL_LOCKS", "0"), ("LC_ALL", "C")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|why| {
                AgeError::Run(format!("git cannot be run: {why}; install git and try again"))
            })?;
        let output = child.stdout.take().expect("stdout was asked for");
        let errors = child.stderr.take().expect("stderr was asked for");
        Ok(Self {
            child,
            complaint: Some(std::thread::spawn(move || first_words(errors))),
            output: BufReader::with_capacity(1 << 16, output),
            repository: repository.display().to_string(),
            command: format!("git {}", arguments[0]),
        })
    }

    /// The next piece up to a zero byte; `false` at the end.
    fn piece(&mut self, piece: &mut Vec<u8>) -> Result<bool, AgeError> {
        piece.clear();
        let read = (&mut self.output).take(PIECE_BYTES_MAX).read_until(0, piece);
        let count = read.map_err(|why| self.failed(&why.to_string()))?;
        if count as u64 == PIECE_BYTES_MAX {
            return Err(self.strange(piece));
        }
        if piece.last() == Some(&0) {
            piece.pop();
        }
        Ok(count > 0)
    }

    fn strange(&self, piece: &[u8]) -> AgeError {
        let shown: String = String::from_utf8_lossy(piece).chars().take(60).collect();
        self.failed(&format!("an answer that is not understood, '{}'", shown.escape_debug()))
    }

    fn failed(&self, what: &str) -> AgeError {
        AgeError::Run(format!("{}: {}: {what}", self.repository, self.command))
    }

    /// Waits for git to end; what it complained of becomes the error.
    fn finish(mut self) -> Result<(), AgeError> {
        let complaint = self.complaint.take().expect("finished once").join();
        let complaint = complaint.expect("reading cannot panic");
        let status = self.child.wait().map_err(|why| self.failed(&why.to_string()))?;
        if status.success() {
            return Ok(());
        }
        let complaint = if complaint.is_empty() { "(no reason given)" } else { complaint.as_str() };
        Err(AgeError::Input(format!("{}: {} failed: {complaint}", self.repository, self.command)))
    }
}

/// The beginning of what `errors` says, as one line; the rest is read and dropped.
fn first_words(mut errors: ChildStderr) -> String {
    let (mut kept, mut bytes) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = errors.read(&mut bytes) {
        if kept.len() < bytes.len() {
            kept.extend_from_slice(&bytes[..count]);
        }
    }
    String::from_utf8_lossy(&kept).trim().replace('\n', "; ")
}

impl Drop for Git {
    fn drop(&mut self) {
        // After an error its output is not read to the end: it would wait for a reader for ever.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use tempfile::TempDir;

    use super::*;
    use crate::workload::slow_rules::walk;

    /// A repository in a temporary folder; its commits are a day apart.
    struct Repository {
        folder: TempDir,
        commits: u64,
    }

    impl Repository {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let repository = Self { folder, commits: 0 };
            repository.git(&["init", "--quiet", "--initial-branch=main"]);
            repository
        }

        fn path(&self) -> &Path {
            self.folder.path()
        }

        fn git(&self, arguments: &[&str]) -> String {
            let time = format!("{} +0000", 1_000_000_000 + self.commits * 86_400);
            let output = Command::new("git")
                .arg("-C")
                .arg(self.path())
                .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
                .args(arguments)
                .envs([("GIT_COMMITTER_DATE", &time), ("GIT_AUTHOR_DATE", &time)])
                .output()
                .expect("git is installed where tests run");
            let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "git {arguments:?}: {complaint}");
            String::from_utf8_lossy(&output.stdout).into_owned()
        }

        fn write(&self, name: &str, bytes: usize) {
            let path = self.path().join(name);
            std::fs::create_dir_all(path.parent().expect("below the folder")).expect("writable");
            // Unlike content of like length, so that every write is a new blob.
            let text = format!("{name} {} ", self.commits).repeat(bytes);
            std::fs::write(path, &text.as_bytes()[..bytes]).expect("writable");
        }

        fn commit(&mut self) {
            self.git(&["add", "--all"]);
            self.git(&["commit", "--quiet", "--message=m"]);
            self.commits += 1;
        }

        /// Lengths of the files of the last commit, as git reports them.
        fn lengths(&self) -> Vec<u64> {
            let listed = self.git(&["ls-tree", "-r", "-l", "HEAD"]);
            let files = listed.lines().filter(|line| line.starts_with("100"));
            let length = |line: &str| line.split_whitespace().nth(3)?.parse().ok();
            let mut lengths: Vec<u64> = files.filter_map(length).collect();
            lengths.sort_unstable();
            lengths
        }
    }

    fn lengths_after(operations: &[crate::Operation]) -> Vec<u64> {
        let remains = walk(operations).expect("the rules hold");
        let mut lengths: Vec<u64> = remains.files.values().map(|(_, bytes)| *bytes).collect();
        lengths.sort_unstable();
        lengths
    }

    fn history() -> Repository {
        let mut repository = Repository::new();
        repository.write("a", 100);
        repository.write("d/e/f", 5_000);
        repository.write("d/g", 0);
        repository.write("odd \n name", 7);
        repository.commit();
        repository.write("a", 90);
        std::os::unix::fs::symlink("a", repository.path().join("link")).expect("writable");
        repository.commit();
        // A side branch whose merge is one step of the first parents.
        repository.git(&["checkout", "--quiet", "-b", "side"]);
        repository.write("side/1", 11);
        repository.commit();
        repository.write("side/2", 22);
        repository.commit();
        repository.git(&["checkout", "--quiet", "main"]);
        repository.write("d/g", 44);
        repository.commit();
        repository.git(&["merge", "--quiet", "--no-ff", "--message=m", "side"]);
        repository.commits += 1;
        // A file becomes a directory and a directory a file; a link becomes a file.
        for name in ["a", "link"] {
            std::fs::remove_file(repository.path().join(name)).expect("there");
        }
        std::fs::remove_dir_all(repository.path().join("d")).expect("there");
        repository.write("a/b", 3);
        repository.write("d", 4);
        repository.write("link", 5);
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(repository.path().join("side/1"), executable).expect("there");
        repository.commit();
        repository
    }

    // The files at the end are those of the last commit, in name-free form: their lengths.
    #[test]
    fn a_history_ends_with_the_files_of_its_last_commit() {
        let repository = history();
        let parameters = HistoryParameters::default();
        let (facts, operations) =
            from_repository(repository.path(), "HEAD", &parameters, Vec::new()).expect("made");
        assert_eq!(lengths_after(&operations), repository.lengths());
        // Two commits of the side branch come as one merge; days 0, 1, 4, 5 and 6.
        assert_eq!(facts.notes["commits"], 5);
        assert_eq!(facts.days, 7);
        assert_eq!(facts.start_unix_s, Some(1_000_000_000));
        assert_eq!(facts.notes["changes of symbolic links and submodules left out"], 2);
        assert_eq!(facts.notes["changes of mode alone left out"], 1);
        let earlier = from_repository(repository.path(), "HEAD~2", &parameters, Vec::new());
        assert_eq!(earlier.expect("made").0.notes["commits"], 3);
    }

    // A blob that is gone from the repository leaves an empty file and is counted.
    #[test]
    fn a_missing_blob_is_counted() {
        let repository = history();
        let name = repository.git(&["rev-parse", "HEAD:d"]);
        let (first, rest) = name.trim().split_at(2);
        let blob: PathBuf =
            [repository.path(), ".git/objects".as_ref(), first.as_ref()].iter().collect();
        std::fs::remove_file(blob.join(rest)).expect("a loose object");
        let parameters = HistoryParameters::default();
        let (facts, operations) =
            from_repository(repository.path(), "HEAD", &parameters, Vec::new()).expect("made");
        assert_eq!(facts.notes["missing blobs, their files made empty"], 1);
        assert!(lengths_after(&operations).contains(&0));
    }

    // What is no repository, and what is no commit, is said in one line.
    #[test]
    fn what_is_no_history_is_refused() {
        let parameters = HistoryParameters::default();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let refused = |path: &Path, revision: &str| {
            let made = from_repository(path, revision, &parameters, Vec::new());
            made.err().map(|error| error.to_string()).expect("refused")
        };
        assert!(refused(folder.path(), "HEAD").contains("git rev-parse failed"));
        let repository = history();
        let text = refused(repository.path(), "nowhere");
        assert!(text.contains("has no commit 'nowhere'"), "{text}");
        assert!(refused(repository.path(), "--all").contains("has no commit '--all'"));
    }
}
