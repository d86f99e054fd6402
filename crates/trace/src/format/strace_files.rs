//! Processes, descriptors, offsets and names behind the calls that strace shows.
//!
//! Only descriptors of files that are asked for are kept; a descriptor without an entry means some
//! other file. strace's own word (`3</path>`) wins over ours where they differ: then a descriptor
//! was inherited or came by a call that was not traced, and its offset is unknown until a seek
//! says it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::strace_call::{annotation, descriptor, quoted, unescaped};
use crate::error::Problem;
use crate::file_operation::{FileOperation, FileOperationBatch, PathTable, VALUE_MISSING};
use crate::metadata::TraceMetadata;
use crate::record::TIME_MISSING;

const NO_DIRECTORY: &str = "relative paths whose directory is unknown were passed over";
const WHOLE_SYNC: &str = "syncs of a whole file system were passed over";
const SYMBOLIC: &str = "symbolic links were made, which have no operation of their own";
const NAMELESS: &str = "files without a name were passed over";
const EXCHANGED: &str = "exchanges of two names were passed over";

/// One operation before it goes into a batch; ordered by time, then by sequence.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) time_ns: u64,
    sequence: u64,
    finish_ns: u64,
    client: u32,
    pub(crate) operation: FileOperation,
    file: u32,
    directory: u32,
    offset: u64,
    length: u64,
    path: String,
    new_path: Option<String>,
}

impl Ord for Row {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.time_ns, self.sequence).cmp(&(other.time_ns, other.sequence))
    }
}

impl PartialOrd for Row {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Row {
    /// Appends the row to a batch whose time begins at `origin_ns`.
    pub(crate) fn push(self, origin_ns: u64, batch: &mut FileOperationBatch) {
        batch.time_ns.push(self.time_ns - origin_ns);
        let finish_ns = self.finish_ns;
        batch.finish_ns.push(if finish_ns == TIME_MISSING {
            TIME_MISSING
        } else {
            finish_ns.saturating_sub(origin_ns)
        });
        batch.client.push(self.client);
        batch.operation.push(self.operation as u8);
        batch.file.push(self.file);
        batch.directory.push(self.directory);
        batch.offset.push(self.offset);
        batch.length.push(self.length);
        batch.path.push(self.path);
        batch.new_path.push(self.new_path);
    }
}

#[derive(Debug)]
struct Process {
    /// Which table of descriptors it uses; threads share one.
    table: u64,
    /// Absolute, if known.
    directory: Option<String>,
}

/// Descriptors of a process and its threads.
#[derive(Debug, Default)]
struct Table {
    users: u32,
    /// Descriptor to open file.
    open: BTreeMap<u64, u64>,
}

/// An open file: what copies of a descriptor share.
#[derive(Debug, Clone)]
struct Opened {
    file: u32,
    offset: Option<u64>,
    append: bool,
    references: u32,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// With a slash at the end.
    below: Option<String>,
    processes: BTreeMap<u32, Process>,
    tables: BTreeMap<u64, Table>,
    opened: BTreeMap<u64, Opened>,
    next_id: u64,
    names: PathTable,
    /// Further names of a file.
    links: BTreeMap<String, u32>,
    /// Directories that are reached through symbolic links, as named and as they are.
    aliases: BTreeMap<String, String>,
    /// By file; `None` is unknown.
    lengths: Vec<Option<u64>>,
    directories: BTreeSet<u32>,
    rows: Vec<Row>,
    sequence: u64,
    /// Who calls, since when and until when.
    process: u32,
    time_ns: u64,
    finish_ns: u64,
}

impl Files {
    pub(crate) fn new(below: Option<&str>) -> Self {
        let below = below.map(|path| format!("{}/", path.trim_end_matches('/')));
        Self { below, ..Self::default() }
    }

    /// Whether a call matters here.
    pub(crate) fn follows(name: &[u8]) -> bool {
        matches!(
            name,
            b"open"
                | b"openat"
                | b"openat2"
                | b"creat"
                | b"close"
                | b"read"
                | b"readv"
                | b"pread64"
                | b"preadv"
                | b"preadv2"
                | b"write"
                | b"writev"
                | b"pwrite64"
                | b"pwritev"
                | b"pwritev2"
                | b"copy_file_range"
                | b"sendfile"
                | b"lseek"
                | b"truncate"
                | b"ftruncate"
                | b"fallocate"
                | b"fsync"
                | b"fdatasync"
                | b"sync"
                | b"syncfs"
                | b"unlink"
                | b"unlinkat"
                | b"rmdir"
                | b"rename"
                | b"renameat"
                | b"renameat2"
                | b"link"
                | b"linkat"
                | b"symlink"
                | b"symlinkat"
                | b"mkdir"
                | b"mkdirat"
                | b"chdir"
                | b"fchdir"
                | b"dup"
                | b"dup2"
                | b"dup3"
                | b"fcntl"
                | b"getdents"
                | b"getdents64"
        )
    }

    pub(crate) fn knows(&self, process: u32) -> bool {
        self.processes.contains_key(&process)
    }

    /// A process of which nothing is known.
    pub(crate) fn start(&mut self, process: u32) {
        let table = self.fresh_id();
        self.tables.insert(table, Table::default());
        self.replace(process, Process { table, directory: None });
    }

    /// A process that begins as a copy of another; `shares` if both use one table of descriptors.
    pub(crate) fn fork(&mut self, parent: u32, child: u32, shares: bool) {
        let Some(from) = self.processes.get(&parent) else { return };
        let directory = from.directory.clone();
        let mut table = from.table;
        if !shares {
            let open = self.tables.get(&table).map(|table| table.open.clone()).unwrap_or_default();
            for id in open.values() {
                if let Some(opened) = self.opened.get_mut(id) {
                    opened.references += 1;
                }
            }
            table = self.fresh_id();
            self.tables.insert(table, Table { users: 0, open });
        }
        self.replace(child, Process { table, directory });
    }

    fn replace(&mut self, number: u32, process: Process) {
        // A number that is used again: the process that had it is gone.
        self.end(number);
        if let Some(table) = self.tables.get_mut(&process.table) {
            table.users += 1;
        }
        self.processes.insert(number, process);
    }

    pub(crate) fn end(&mut self, process: u32) {
        let Some(ended) = self.processes.remove(&process) else { return };
        let Some(table) = self.tables.get_mut(&ended.table) else { return };
        table.users -= 1;
        if table.users > 0 {
            return;
        }
        for id in self.tables.remove(&ended.table).unwrap_or_default().open.into_values() {
            self.release(id);
        }
    }

    fn fresh_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn release(&mut self, id: u64) {
        if let Some(opened) = self.opened.get_mut(&id) {
            opened.references -= 1;
            if opened.references == 0 {
                self.opened.remove(&id);
            }
        }
    }

    /// Says who calls next and when.
    pub(crate) fn at(&mut self, process: u32, time_ns: u64, finish_ns: Option<u64>) {
        self.process = process;
        self.time_ns = time_ns;
        self.finish_ns = finish_ns.unwrap_or(TIME_MISSING);
    }

    /// The operations since the last time.
    pub(crate) fn take_rows(&mut self) -> std::vec::Drain<'_, Row> {
        self.rows.drain(..)
    }

    /// Applies a call that succeeded with `value`.
    pub(crate) fn call(
        &mut self,
        name: &[u8],
        arguments: &[&[u8]],
        value: u64,
        returned: Option<&[u8]>,
        metadata: &mut TraceMetadata,
    ) -> Result<(), Problem> {
        use FileOperation::{
            Allocate, Delete, MakeDirectory, Read, RemoveDirectory, Sync, Truncate, Write,
        };
        let argument = |index: usize| -> Result<&[u8], Problem> {
            arguments.get(index).copied().ok_or_else(|| {
                Problem::field(&format!("argument {} is missing in", index + 1), name)
            })
        };
        match name {
            b"open" | b"creat" | b"openat" | b"openat2" => {
                let (path, flags) = match name {
                    b"openat" | b"openat2" => (1, argument(2)?),
                    b"creat" => (0, &b"O_WRONLY|O_CREAT|O_TRUNC"[..]),
                    _ => (0, argument(1)?),
                };
                self.open(&arguments[..=path], flags, value, returned, metadata)?;
            }
            b"close" => self.close(argument(0)?),
            b"read" | b"readv" => self.transfer(Read, argument(0)?, None, value),
            b"write" | b"writev" => self.transfer(Write, argument(0)?, None, value),
            b"pread64" | b"preadv" | b"preadv2" => {
                self.transfer(Read, argument(0)?, signed(argument(3)?), value);
            }
            b"pwrite64" | b"pwritev" | b"pwritev2" => {
                self.transfer(Write, argument(0)?, signed(argument(3)?), value);
            }
            b"copy_file_range" => {
                self.transfer(Read, argument(0)?, pointed(argument(1)?), value);
                self.transfer(Write, argument(2)?, pointed(argument(3)?), value);
            }
            b"sendfile" => {
                self.transfer(Read, argument(1)?, pointed(argument(2)?), value);
                self.transfer(Write, argument(0)?, None, value);
            }
            b"lseek" => {
                if let Some(id) = self.find(argument(0)?) {
                    let at_end = argument(1)? == b"0" && argument(2)? == b"SEEK_END";
                    self.seek(id, value, at_end);
                }
            }
            b"ftruncate" => {
                let length = decimal(argument(1)?, name)?;
                if let Some(id) = self.find(argument(0)?) {
                    let file = self.opened[&id].file;
                    self.set_length(file, length);
                    self.row(Truncate, file, None, Some(length));
                }
            }
            b"truncate" => {
                let length = decimal(argument(1)?, name)?;
                if let Some(path) = self.path(&arguments[..1], metadata)? {
                    let file = self.number(&path);
                    self.set_length(file, length);
                    self.row(Truncate, file, None, Some(length));
                }
            }
            b"fallocate" => {
                let keeps = matches!(argument(1)?, b"0" | b"FALLOC_FL_KEEP_SIZE");
                let (offset, length) = (decimal(argument(2)?, name)?, decimal(argument(3)?, name)?);
                if let Some(id) = self.find(argument(0)?)
                    && keeps
                {
                    let file = self.opened[&id].file;
                    self.row(Allocate, file, Some(offset), Some(length));
                }
            }
            b"fsync" | b"fdatasync" => {
                if let Some(id) = self.find(argument(0)?) {
                    let file = self.opened[&id].file;
                    self.row(Sync, file, None, None);
                }
            }
            b"sync" | b"syncfs" => metadata.warn(WHOLE_SYNC),
            b"getdents" | b"getdents64" => {
                if let Some(id) = self.find(argument(0)?)
                    && value > 0
                {
                    let file = self.opened[&id].file;
                    self.row(FileOperation::List, file, None, None);
                }
            }
            b"mkdir" | b"mkdirat" => {
                let last = usize::from(name != b"mkdir");
                argument(last)?;
                if let Some(path) = self.path(&arguments[..=last], metadata)? {
                    let file = self.number(&path);
                    self.directories.insert(file);
                    self.row(MakeDirectory, file, None, None);
                }
            }
            b"rmdir" | b"unlink" | b"unlinkat" => {
                let last = usize::from(name == b"unlinkat");
                argument(last)?;
                let directory = name == b"rmdir"
                    || (name == b"unlinkat" && argument(2)?.starts_with(b"AT_REMOVEDIR"));
                if let Some(path) = self.path(&arguments[..=last], metadata)? {
                    self.remove(&path, if directory { RemoveDirectory } else { Delete });
                }
            }
            b"rename" | b"renameat" | b"renameat2" | b"link" | b"linkat" => {
                let each = if name.ends_with(b"at") || name == b"renameat2" { 2 } else { 1 };
                argument(2 * each - 1)?;
                if arguments.get(4).is_some_and(|flags| flags.starts_with(b"RENAME_EXCHANGE")) {
                    metadata.warn(EXCHANGED);
                    return Ok(());
                }
                let from = self.path(&arguments[..each], metadata)?;
                let to = self.path(&arguments[each..2 * each], metadata)?;
                if name.starts_with(b"link") {
                    self.link(from.as_deref(), to.as_deref());
                } else {
                    self.rename(from.as_deref(), to.as_deref());
                }
            }
            b"symlink" | b"symlinkat" => metadata.warn(SYMBOLIC),
            b"chdir" => {
                let process = self.process;
                let target = self.absolute(&arguments[..1], metadata)?;
                if let Some(known) = self.processes.get_mut(&process) {
                    known.directory = target;
                }
            }
            b"fchdir" => {
                let target = annotation(argument(0)?).map(unescaped);
                if let Some(known) = self.processes.get_mut(&self.process) {
                    known.directory = target;
                }
            }
            b"dup" | b"dup2" | b"dup3" => self.duplicate(argument(0)?, value),
            b"fcntl" if argument(1)?.starts_with(b"F_DUPFD") => {
                self.duplicate(argument(0)?, value);
            }
            _ => {}
        }
        Ok(())
    }

    /// `path` relative to the directory asked for; `None` if it is not below it.
    fn asked_for(&self, path: &str) -> Option<String> {
        match &self.below {
            None => Some(path.to_owned()),
            Some(below) => path.strip_prefix(below.as_str()).map(str::to_owned),
        }
    }

    /// The path that a call names by `[directory,] path`, if it is asked for.
    fn path(
        &mut self,
        place: &[&[u8]],
        metadata: &mut TraceMetadata,
    ) -> Result<Option<String>, Problem> {
        let path = self.absolute(place, metadata)?;
        Ok(path.and_then(|path| self.asked_for(&path)))
    }

    /// The path that a call names, with its directory as it is.
    fn absolute(
        &mut self,
        place: &[&[u8]],
        metadata: &mut TraceMetadata,
    ) -> Result<Option<String>, Problem> {
        let named = self.named(place, metadata)?;
        Ok(named.map(|path| self.resolved(path)))
    }

    fn named(
        &mut self,
        place: &[&[u8]],
        metadata: &mut TraceMetadata,
    ) -> Result<Option<String>, Problem> {
        let [before @ .., last] = place else { return Ok(None) };
        let path =
            quoted(last).ok_or_else(|| Problem::field("expected a path in quotes, not", last))?;
        let told = before.first().and_then(|argument| annotation(argument)).map(unescaped);
        if let (Some(told), Some(argument)) = (&told, before.first())
            && argument.starts_with(b"AT_FDCWD")
            && let Some(known) = self.processes.get_mut(&self.process)
        {
            known.directory = Some(told.clone());
        }
        if path.starts_with('/') {
            return Ok(Some(normal(&path)));
        }
        let known = self.processes.get(&self.process).and_then(|known| known.directory.clone());
        // A descriptor as the directory is resolved by strace; only AT_FDCWD and nothing mean the
        // working directory.
        let own = before.first().is_none_or(|argument| argument.starts_with(b"AT_FDCWD"));
        if let Some(directory) = told.or(if own { known } else { None }) {
            Ok(Some(normal(&format!("{directory}/{path}"))))
        } else {
            metadata.warn(NO_DIRECTORY);
            Ok(None)
        }
    }

    /// `path` with its directory as it is, if files have been opened through the link before.
    fn resolved(&self, path: String) -> String {
        let directory = path.rsplit_once('/').and_then(|(parent, name)| {
            self.aliases.get(parent).map(|actual| format!("{actual}/{name}"))
        });
        directory.unwrap_or(path)
    }

    /// What an open shows of symbolic links: calls without a descriptor (`unlink`) name files
    /// through them, for those with one strace says where the file is.
    fn learn_alias(&mut self, asked: &str, told: &str) {
        let (Some((parent, name)), Some((actual, same))) =
            (asked.rsplit_once('/'), told.rsplit_once('/'))
        else {
            return;
        };
        if name == same && parent != actual {
            self.aliases.insert(parent.to_owned(), actual.to_owned());
        } else if parent == actual && !self.aliases.is_empty() {
            self.aliases.remove(parent);
        }
    }

    /// The number of the file at `path`, under whichever of its names.
    fn number(&mut self, path: &str) -> u32 {
        self.links.get(path).copied().unwrap_or_else(|| self.names.number_of(path))
    }

    fn is_known(&self, path: &str) -> bool {
        self.links.contains_key(path) || self.names.find(path).is_some()
    }

    fn length(&self, file: u32) -> Option<u64> {
        self.lengths.get(file as usize).copied().flatten()
    }

    fn set_length(&mut self, file: u32, length: u64) {
        let index = file as usize;
        if self.lengths.len() <= index {
            self.lengths.resize(index + 1, None);
        }
        self.lengths[index] = Some(length);
    }

    fn row(
        &mut self,
        operation: FileOperation,
        file: u32,
        offset: Option<u64>,
        length: Option<u64>,
    ) {
        let path = self.names.path(file).unwrap_or_default().to_owned();
        let parent = path.rsplit_once('/').map_or(".", |(parent, _)| parent);
        let directory = self.names.number_of(if parent.is_empty() { "/" } else { parent });
        self.directories.insert(directory);
        self.sequence += 1;
        self.rows.push(Row {
            time_ns: self.time_ns,
            sequence: self.sequence,
            finish_ns: self.finish_ns,
            client: self.process,
            operation,
            file,
            directory,
            offset: offset.unwrap_or(VALUE_MISSING),
            length: length.unwrap_or(VALUE_MISSING),
            path,
            new_path: None,
        });
    }

    fn open(
        &mut self,
        place: &[&[u8]],
        flags: &[u8],
        number: u64,
        returned: Option<&[u8]>,
        metadata: &mut TraceMetadata,
    ) -> Result<(), Problem> {
        // Shows the working directory even if the path itself is of no interest.
        let asked = self.named(place, metadata)?;
        let told = returned.ok_or_else(|| {
            Problem::new("no path beside the descriptor that was opened; record with strace -y")
        })?;
        self.forget(number);
        let told = unescaped(told);
        if let Some(asked) = asked {
            self.learn_alias(&asked, &told);
        }
        let Some(path) = self.asked_for(&told) else { return Ok(()) };
        if told.ends_with(" (deleted)") {
            metadata.warn(NAMELESS);
            return Ok(());
        }
        let has = |flag: &[u8]| memchr::memmem::find(flags, flag).is_some();
        let known = self.is_known(&path);
        let file = self.number(&path);
        let creates = has(b"O_CREAT") && (has(b"O_EXCL") || !known);
        if creates {
            self.set_length(file, 0);
            self.row(FileOperation::Create, file, None, None);
        } else {
            if has(b"O_DIRECTORY") {
                self.directories.insert(file);
            }
            self.row(FileOperation::Open, file, None, None);
            if has(b"O_TRUNC") && self.length(file) != Some(0) {
                self.set_length(file, 0);
                self.row(FileOperation::Truncate, file, None, Some(0));
            }
        }
        self.install(
            number,
            Opened { file, offset: Some(0), append: has(b"O_APPEND"), references: 0 },
        );
        Ok(())
    }

    fn table(&mut self) -> Option<&mut BTreeMap<u64, u64>> {
        let table = self.processes.get(&self.process)?.table;
        self.tables.get_mut(&table).map(|table| &mut table.open)
    }

    fn install(&mut self, number: u64, opened: Opened) -> u64 {
        let id = self.fresh_id();
        self.opened.insert(id, opened);
        self.point(number, id);
        id
    }

    fn point(&mut self, number: u64, id: u64) {
        if let Some(opened) = self.opened.get_mut(&id) {
            opened.references += 1;
        }
        if let Some(old) = self.table().and_then(|table| table.insert(number, id)) {
            self.release(old);
        }
    }

    fn forget(&mut self, number: u64) {
        if let Some(old) = self.table().and_then(|table| table.remove(&number)) {
            self.release(old);
        }
    }

    /// The open file behind a descriptor, if it is asked for.
    fn find(&mut self, argument: &[u8]) -> Option<u64> {
        let (number, told) = descriptor(argument)?;
        let ours = self.table().and_then(|table| table.get(&number).copied());
        let Some(told) = told else { return ours };
        if told.first() != Some(&b'/') {
            return None;
        }
        let told = unescaped(told);
        let path = self.asked_for(told.strip_suffix(" (deleted)").unwrap_or(&told))?;
        let gone = told.ends_with(" (deleted)") || argument.ends_with(b">(deleted)");
        if let Some(id) = ours {
            let file = self.opened[&id].file;
            if gone || self.names.path(file) == Some(&path) || self.links.get(&path) == Some(&file)
            {
                return Some(id);
            }
        }
        if gone {
            return None;
        }
        let file = self.number(&path);
        Some(self.install(number, Opened { file, offset: None, append: false, references: 0 }))
    }

    fn close(&mut self, argument: &[u8]) {
        let Some((number, _)) = descriptor(argument) else { return };
        if let Some(id) = self.find(argument) {
            let file = self.opened[&id].file;
            self.row(FileOperation::Close, file, None, None);
        }
        self.forget(number);
    }

    fn duplicate(&mut self, argument: &[u8], number: u64) {
        match self.find(argument) {
            Some(id) => self.point(number, id),
            None => self.forget(number),
        }
    }

    fn seek(&mut self, id: u64, offset: u64, at_end: bool) {
        let Some(opened) = self.opened.get_mut(&id) else { return };
        opened.offset = Some(offset);
        let file = opened.file;
        if at_end {
            self.set_length(file, offset);
        }
    }

    /// `moved` bytes read or written; `at` where the call says so itself.
    fn transfer(&mut self, operation: FileOperation, argument: &[u8], at: Option<u64>, moved: u64) {
        let Some(id) = self.find(argument) else { return };
        if moved == 0 {
            return;
        }
        let opened = self.opened[&id].clone();
        let writes = operation == FileOperation::Write;
        let length = self.length(opened.file);
        let offset = match at {
            Some(offset) => Some(offset),
            None if writes && opened.append => length,
            None => opened.offset,
        };
        let end = offset.and_then(|offset| offset.checked_add(moved));
        if at.is_none()
            && let Some(opened) = self.opened.get_mut(&id)
        {
            opened.offset = end;
        }
        if writes && let (Some(end), Some(length)) = (end, length) {
            self.set_length(opened.file, length.max(end));
        }
        self.row(operation, opened.file, offset, Some(moved));
    }

    fn remove(&mut self, path: &str, operation: FileOperation) {
        // A further name goes, the file stays.
        if self.links.remove(path).is_some() {
            return;
        }
        let file = self.names.number_of(path);
        let other = self.links.iter().find(|(_, number)| **number == file);
        if let Some(other) = other.map(|(name, _)| name.clone()) {
            self.links.remove(&other);
            self.rename_row(file, &other);
            return;
        }
        self.row(operation, file, None, None);
        self.names.delete(file);
    }

    fn rename_row(&mut self, file: u32, to: &str) {
        self.row(FileOperation::Rename, file, None, None);
        if let Some(row) = self.rows.last_mut() {
            row.new_path = Some(to.to_owned());
        }
        self.names.rename(file, to);
    }

    fn link(&mut self, from: Option<&str>, to: Option<&str>) {
        if let (Some(from), Some(to)) = (from, to) {
            let file = self.number(from);
            self.links.insert(to.to_owned(), file);
        }
    }

    fn rename(&mut self, from: Option<&str>, to: Option<&str>) {
        match (from, to) {
            (Some(from), Some(to)) if from != to => {
                self.links.remove(to);
                if let Some(file) = self.links.remove(from) {
                    self.links.insert(to.to_owned(), file);
                    return;
                }
                let file = self.names.number_of(from);
                self.rename_row(file, to);
                if self.directories.contains(&file) {
                    self.rename_below(&format!("{from}/"), to);
                }
            }
            // To somewhere else: for this directory it is gone.
            (Some(from), None) => self.remove(from, FileOperation::Delete),
            _ => {}
        }
    }

    /// Everything below a renamed directory has another path.
    fn rename_below(&mut self, from: &str, to: &str) {
        for number in 0..self.names.len() as u32 {
            let Some(rest) = self.names.path(number).and_then(|path| path.strip_prefix(from))
            else {
                continue;
            };
            let (path, new) = (format!("{from}{rest}"), format!("{to}/{rest}"));
            if self.names.find(&path) == Some(number) {
                self.names.rename(number, &new);
            }
        }
    }
}

/// `path` without `.`, `..` and doubled slashes.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    format!("/{}", parts.join("/"))
}

/// An offset argument; -1 stands for the current one.
fn signed(argument: &[u8]) -> Option<u64> {
    crate::fields::try_integer(argument)
}

/// An offset behind a pointer: `NULL`, `[4096]` or `[0] => [4096]`.
fn pointed(argument: &[u8]) -> Option<u64> {
    let inner = argument.strip_prefix(b"[")?;
    let end = memchr::memchr(b']', inner)?;
    crate::fields::try_integer(&inner[..end])
}

fn decimal(argument: &[u8], name: &[u8]) -> Result<u64, Problem> {
    crate::fields::integer(argument, &format!("a number in {}", String::from_utf8_lossy(name)))
}
