//! Operations drawn from numbers, carried out on a file system and on its model.

use std::sync::Arc;

use agewell_fs::{
    Allocation, Caller, Changes, FileSystem, FsError, MakeOptions, MountOptions, New as MakeNew,
    Rename, SeekTo, Time,
};
use agewell_log::policy::mechanism::{Collect, Mechanism, PlugCandidate};
use agewell_store::device::Disk;
use agewell_store::{FormatOptions, Means, OpenOptions, Placement, Store};
use rustix::fs::FileType;
use rustix::io::Errno;

use super::lists::{ACCESS_LIST, DEFAULT_LIST, encode_list, invalid_list, valid_list};
use super::model::{Maker, Model, New};

/// What an operation is made of: its kind, and numbers that choose what it is about.
pub(crate) type Draw = (u8, [u8; 4], [u32; 2]);

/// An operation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operation {
    Make { parent: u64, name: Vec<u8>, new: New, by: Maker },
    MakeUnnamed { parent: u64, mode: u32, by: Maker },
    Link { number: u64, parent: u64, name: Vec<u8> },
    Unlink { parent: u64, name: Vec<u8> },
    RemoveDirectory { parent: u64, name: Vec<u8> },
    Rename { from: (u64, Vec<u8>), to: (u64, Vec<u8>), how: Rename },
    Write { number: u64, offset: u64, data: Vec<u8>, drops: bool },
    SetSize { number: u64, size: u64, drops: bool },
    Allocate { number: u64, range: (u64, u64), what: Allocation, drops: bool },
    Copy { from: (u64, u64), to: (u64, u64), bytes: u64, drops: bool },
    SetAttribute { number: u64, name: Vec<u8>, value: Vec<u8>, must: (bool, bool) },
    RemoveAttribute { number: u64, name: Vec<u8> },
    Change { number: u64, mode: Option<u32>, owner: Option<(u32, u32)>, times: [Option<Time>; 2] },
    Seek { number: u64, offset: u64, to_data: bool },
    LetGo { number: u64 },
    Work,
    Commit,
    Sync,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Done {
    Nothing,
    Made(u64),
    Gone(Option<u64>),
    Count(u64),
}

fn name(draw: u8) -> Vec<u8> {
    match draw {
        0 => b"..".to_vec(),
        1 => b"x/y".to_vec(),
        2 => vec![b'l'; 256],
        3 => Vec::new(),
        4..=40 => vec![b'a' + draw % 4; 255],
        _ => format!("name {}", draw % 29).into_bytes(),
    }
}

fn attribute_name(draw: u8) -> Vec<u8> {
    match draw % 8 {
        0 => b"security.capability".to_vec(),
        1 => ACCESS_LIST.to_vec(),
        2 => DEFAULT_LIST.to_vec(),
        3 => vec![b'u'; 255],
        other => format!("user.{other}").into_bytes(),
    }
}

/// The value of an access control list, or one that is none and is to be refused.
fn list(numbers: [u32; 2], draw: u8) -> Vec<u8> {
    if draw < 64 {
        invalid_list(numbers, u32::from(draw)).0
    } else {
        encode_list(&valid_list(numbers))
    }
}

/// Bytes that are told from all others of the same file.
fn bytes(length: u64, seed: u32) -> Vec<u8> {
    (0..length).map(|at| (at / 7) as u8 ^ (seed as u8) ^ (seed >> 8) as u8 | 1).collect()
}

impl Operation {
    /// What `draw` means for what there is; `size_max` bounds what is written at once.
    #[expect(clippy::many_single_char_names, reason = "they are any numbers")]
    pub(crate) fn of(model: &Model, draw: Draw, size_max: u64) -> Self {
        let (kind, [a, b, c, d], [x, y]) = draw;
        let numbers: Vec<u64> = model.files.keys().copied().collect();
        let any = |draw: u8| numbers[usize::from(draw) * numbers.len() / 256];
        let directories: Vec<u64> =
            numbers.iter().copied().filter(|number| model.files[number].is_directory()).collect();
        // Rarely something that is no directory, or no file.
        let directory = |draw: u8| {
            let found = directories[usize::from(draw) * directories.len() / 256];
            if draw == 255 { any(d) } else { found }
        };
        let is_file = |number: &u64| model.files[number].file_type() == FileType::RegularFile;
        let files: Vec<u64> = numbers.iter().copied().filter(is_file).collect();
        let file = |draw: u8| {
            let found = files.get(usize::from(draw) * files.len() / 256);
            found.copied().filter(|_| draw != 255).unwrap_or_else(|| any(d))
        };
        let existing = |parent: u64, draw: u8| {
            let entries = model.entries(parent).ok();
            let found =
                entries.and_then(|all| all.keys().nth(usize::from(draw) % all.len().max(1)));
            found.cloned().unwrap_or_else(|| name(draw))
        };
        let by = Maker { uid: x % 3, gid: y % 3, mask: [0o022, 0, 0o077][(x % 3) as usize] };
        let (x_long, y_long) = (u64::from(x), u64::from(y));
        let offset = |draw: u8| match draw % 8 {
            0 => x_long << 20,
            1..=3 => x_long % (4 * size_max),
            4 | 5 => x_long % (2 * size_max) / model.block_bytes * model.block_bytes,
            6 => x_long % model.block_bytes,
            _ => 0,
        };
        let length = |draw: u8| match draw % 8 {
            0 | 1 => y_long % size_max + 1,
            2 | 3 => y_long % (model.block_bytes * 3) + 1,
            4 => model.block_bytes * (y_long % 9 + 1),
            _ => y_long % 700 + 1,
        };
        match kind % 64 {
            0..=8 => {
                let types = [
                    FileType::RegularFile,
                    FileType::RegularFile,
                    FileType::RegularFile,
                    FileType::RegularFile,
                    FileType::Directory,
                    FileType::Directory,
                    FileType::Symlink,
                    FileType::CharacterDevice,
                    FileType::Fifo,
                ];
                let file_type = types[usize::from(kind % 64)];
                let mode =
                    file_type.as_raw_mode() | [0o644, 0o755, 0o2775, 0o4755][usize::from(c % 4)];
                let target = if file_type == FileType::Symlink {
                    vec![b't'; [5, 700, 4095, 4096, 0][usize::from(c % 5)]]
                } else {
                    Vec::new()
                };
                let new = New { mode, device: y, target };
                Self::Make { parent: directory(a), name: name(b), new, by }
            }
            9 => Self::MakeUnnamed { parent: directory(a), mode: x & 0o7777, by },
            10 | 11 => {
                // One that is open and has no name gets one again only if it never had one.
                let number = any(a);
                Self::Link { number, parent: directory(b), name: name(c) }
            }
            12..=15 => {
                let parent = directory(a);
                Self::Unlink { parent, name: existing(parent, b) }
            }
            16 | 17 => {
                let parent = directory(a);
                Self::RemoveDirectory { parent, name: existing(parent, b) }
            }
            18..=22 => {
                let from = directory(a);
                let to = if d % 2 == 0 { from } else { directory(d) };
                let hows = [
                    Rename::Replaces,
                    Rename::Replaces,
                    Rename::Keeps,
                    Rename::Exchanges,
                    Rename::LeavesWhiteout { keeps: x % 4 == 1 },
                ];
                let to_name = if x % 2 == 0 { name(c) } else { existing(to, c) };
                let how = hows[(y % 5) as usize];
                Self::Rename { from: (from, existing(from, b)), to: (to, to_name), how }
            }
            23..=35 => {
                let data = bytes(length(c), x ^ y);
                Self::Write { number: file(a), offset: offset(b), data, drops: d % 2 == 0 }
            }
            36..=40 => {
                let size = match b % 4 {
                    0 => 0,
                    1 => x_long % 600,
                    _ => offset(c),
                };
                Self::SetSize { number: file(a), size, drops: d % 2 == 0 }
            }
            41..=45 => {
                let extends = c % 2 == 0;
                let what = match d % 3 {
                    0 => Allocation::Allocate { extends },
                    1 => Allocation::Zero { extends },
                    _ => Allocation::Punch,
                };
                let from = offset(b / 8 * 8 + 1 + b % 7);
                let (range, drops) = ((from, length(c / 2)), d % 2 == 0);
                Self::Allocate { number: file(a), range, what, drops }
            }
            46..=49 => {
                let round = |at: u64| at / model.block_bytes * model.block_bytes;
                let (from, to) = (file(a), file(b));
                let (mut at, mut into) = (x_long % (2 * size_max), y_long % (2 * size_max));
                if c % 4 > 0 {
                    (at, into) = (round(at), round(into));
                }
                if c % 8 > 4 {
                    at = 0;
                }
                let (bytes, drops) = (length(d) * 2, d % 16 < 8);
                Self::Copy { from: (from, at), to: (to, into), bytes, drops }
            }
            50..=53 => {
                let name = attribute_name(b);
                let is_list = name == ACCESS_LIST || name == DEFAULT_LIST;
                let value = if is_list {
                    list([x, y], c)
                } else {
                    let lengths = [y_long % 60, 0, y_long % 5000, 65_536, y_long % 66_000, 30];
                    bytes(lengths[usize::from(c % 6)], x)
                };
                let target = if is_list { directory(a) } else { any(a) };
                let must = (d % 8 == 0, d % 8 == 1);
                Self::SetAttribute { number: target, name, value, must }
            }
            54 => Self::RemoveAttribute { number: any(a), name: attribute_name(b) },
            55 | 56 => {
                let mode = (b % 2 == 0).then_some(x & 0o7777);
                let owner = (b % 3 == 0).then_some((y % 5, y / 5 % 5));
                let time =
                    Time { seconds: i64::from(x) - (1 << 31), nanoseconds: y % 1_000_000_000 };
                let times = [(c % 2 == 0).then_some(time), (c % 4 < 2).then_some(time)];
                Self::Change { number: any(a), mode, owner, times }
            }
            57 => Self::Seek { number: file(a), offset: offset(b), to_data: c % 2 == 0 },
            58 | 59 => {
                let orphans = numbers.iter().filter(|number| model.files[number].links == 0);
                let orphans: Vec<u64> = orphans.copied().collect();
                let number = orphans.get(usize::from(a) % orphans.len().max(1));
                number.map_or(Self::Work, |number| Self::LetGo { number: *number })
            }
            60 => Self::Work,
            61 => Self::Commit,
            _ => Self::Sync,
        }
    }

    /// Whether it is carried out in several steps, between which a crash may come.
    pub(crate) fn has_steps(&self, step_bytes: u64) -> bool {
        match self {
            Self::Write { data, .. } => data.len() as u64 >= step_bytes,
            Self::Allocate { .. } | Self::Copy { .. } => true,
            _ => false,
        }
    }

    /// Whose data it changes.
    pub(crate) fn target(&self) -> Option<u64> {
        match self {
            Self::Write { number, .. }
            | Self::SetSize { number, .. }
            | Self::Allocate { number, .. } => Some(*number),
            Self::Copy { to, .. } => Some(to.0),
            _ => None,
        }
    }
}

fn caller(by: Maker, now: Time) -> Caller {
    Caller { uid: by.uid, gid: by.gid, mask: by.mask, now }
}

/// Carries `operation` out.
pub(crate) fn carry_out<D: Disk>(
    fs: &FileSystem<D>,
    operation: &Operation,
    now: Time,
) -> Result<Done, FsError> {
    let none = |()| Done::Nothing;
    match operation {
        Operation::Make { parent, name, new, by } => {
            let new = MakeNew { mode: new.mode, device: new.device, target: &new.target };
            fs.make_file(*parent, name, &new, &caller(*by, now)).map(|made| Done::Made(made.inode))
        }
        Operation::MakeUnnamed { parent, mode, by } => {
            let made = fs.make_unnamed(*parent, *mode, &caller(*by, now));
            made.map(|made| Done::Made(made.inode))
        }
        Operation::Link { number, parent, name } => {
            fs.link(*number, *parent, name, now).map(|_| Done::Nothing)
        }
        Operation::Unlink { parent, name } => fs.unlink(*parent, name, now).map(Done::Gone),
        Operation::RemoveDirectory { parent, name } => {
            fs.remove_directory(*parent, name, now).map(|gone| Done::Gone(Some(gone)))
        }
        Operation::Rename { from, to, how } => {
            let caller = Caller { now, ..Caller::default() };
            fs.rename((from.0, &from.1), (to.0, &to.1), *how, &caller).map(Done::Gone)
        }
        Operation::Write { number, offset, data, drops } => {
            let written = fs.write(*number, *offset, data, *drops, now);
            written.map(|written| Done::Count(written as u64))
        }
        Operation::SetSize { number, size, drops } => {
            let changes =
                Changes { size: Some(*size), drops_privileges: *drops, ..Changes::default() };
            fs.set_attributes(*number, &changes, now).map(|_| Done::Nothing)
        }
        Operation::Allocate { number, range, what, drops } => {
            fs.allocate(*number, *range, *what, *drops, now).map(none)
        }
        Operation::Copy { from, to, bytes, drops } => {
            fs.copy(*from, *to, *bytes, *drops, now).map(Done::Count)
        }
        Operation::SetAttribute { number, name, value, must } => {
            fs.set_extended_attribute(*number, (name, value), *must, now).map(none)
        }
        Operation::RemoveAttribute { number, name } => {
            fs.remove_extended_attribute(*number, name, now).map(none)
        }
        Operation::Change { number, mode, owner, times } => {
            let changes = Changes {
                mode: *mode,
                uid: owner.map(|owner| owner.0),
                gid: owner.map(|owner| owner.1),
                accessed: times[0],
                modified: times[1],
                ..Changes::default()
            };
            fs.set_attributes(*number, &changes, now).map(|_| Done::Nothing)
        }
        Operation::Seek { number, offset, to_data } => {
            let to = if *to_data { SeekTo::Data } else { SeekTo::Hole };
            fs.seek(*number, *offset, to).map(Done::Count)
        }
        Operation::LetGo { number } => {
            fs.let_go(*number);
            Ok(Done::Nothing)
        }
        Operation::Work => fs.work().map(|_| Done::Nothing),
        Operation::Commit => {
            let done = fs.commit().and_then(|_| fs.put_nodes_together());
            done.map(|_| Done::Nothing)
        }
        Operation::Sync => fs.sync().map(none),
    }
}

/// What the model makes of it, where the real one has made `made` or written `count` bytes of it.
fn expected(
    model: &mut Model,
    operation: &Operation,
    now: Time,
    (made, count): (u64, Option<u64>),
) -> Result<Done, Errno> {
    let none = |()| Done::Nothing;
    match operation {
        Operation::Make { parent, name, new, by } => {
            model.make((*parent, name), new, *by, now, made).map(|()| Done::Made(made))
        }
        Operation::MakeUnnamed { parent, mode, by } => {
            model.make_unnamed(*parent, *mode, *by, now, made).map(|()| Done::Made(made))
        }
        Operation::Link { number, parent, name } => {
            model.link(*number, *parent, name, now).map(none)
        }
        Operation::Unlink { parent, name } => model.unlink(*parent, name, now).map(Done::Gone),
        Operation::RemoveDirectory { parent, name } => {
            model.remove_directory(*parent, name, now).map(|gone| Done::Gone(Some(gone)))
        }
        Operation::Rename { from, to, how } => {
            let by = Maker { uid: 0, gid: 0, mask: 0 };
            let (from, to) = ((from.0, &*from.1), (to.0, &*to.1));
            model.rename(from, to, *how, (by, now), made).map(Done::Gone)
        }
        Operation::Write { number, offset, data, drops } => {
            let bytes = count.unwrap_or(data.len() as u64);
            let data = &data[..bytes as usize];
            model.write(*number, *offset, data, *drops, now).map(|()| Done::Count(bytes))
        }
        Operation::SetSize { number, size, drops } => {
            model.set_size(*number, *size, *drops, now).map(none)
        }
        Operation::Allocate { number, range, what, drops } => {
            model.allocate(*number, *range, *what, *drops, now).map(none)
        }
        Operation::Copy { from, to, bytes, drops } => {
            let bytes = count.unwrap_or(*bytes);
            model.copy(*from, *to, bytes, *drops, now).map(Done::Count)
        }
        Operation::SetAttribute { number, name, value, must } => {
            model.set_attribute(*number, (name, value), *must, now).map(none)
        }
        Operation::RemoveAttribute { number, name } => {
            model.remove_attribute(*number, name, now).map(none)
        }
        Operation::Change { number, mode, owner, times } => {
            model.change(*number, (*mode, *owner), *times, now).map(none)
        }
        Operation::Seek { number, offset, to_data } => {
            model.seek(*number, *offset, *to_data).map(Done::Count)
        }
        Operation::LetGo { number } => {
            model.let_go(*number);
            Ok(Done::Nothing)
        }
        Operation::Work | Operation::Commit | Operation::Sync => Ok(Done::Nothing),
    }
}

/// The number of a whiteout that a rename has left.
fn whiteout<D: Disk>(fs: &FileSystem<D>, operation: &Operation) -> u64 {
    match operation {
        Operation::Rename { from, how: Rename::LeavesWhiteout { .. }, .. } => {
            fs.lookup(from.0, &from.1).map_or(0, |found| found.inode)
        }
        _ => 0,
    }
}

/// Operations that must always find room.
fn must_work(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Unlink { .. }
            | Operation::RemoveDirectory { .. }
            | Operation::SetSize { size: 0, .. }
            | Operation::RemoveAttribute { .. }
            | Operation::Change { .. }
    )
}

/// Carries `operation` out on both; what is different. `refused` counts what found no room.
pub(crate) fn step<D: Disk>(
    fs: &FileSystem<D>,
    model: &mut Model,
    operation: &Operation,
    now: Time,
    refused: &mut u64,
) -> Result<(), String> {
    let done = carry_out(fs, operation, now);
    let says = |what: &str| Err(format!("{operation:?}: {what}"));
    let before = model.clone();
    let made = match &done {
        Ok(Done::Made(made)) => *made,
        Ok(_) => whiteout(fs, operation),
        // A number that is never used, as what it is for is thrown away.
        Err(_) => u64::MAX,
    };
    let wanted = expected(model, operation, now, (made, None));
    match (done, wanted) {
        (Err(error), Ok(_)) if error.errno() == Errno::NOSPC => {
            if must_work(operation) {
                return says("there was no room for what must always work");
            }
            *refused += 1;
            *model = before;
        }
        (Err(error), Ok(_)) => return says(&format!("fails: {error}")),
        (Err(error), Err(wanted)) => {
            *model = before;
            if error.errno() != wanted && error.errno() != Errno::NOSPC {
                return says(&format!("fails: {error}, not {wanted}"));
            }
        }
        (Ok(done), Err(wanted)) => return says(&format!("gives {done:?}, not {wanted}")),
        (Ok(done), Ok(wanted)) if done == wanted => {}
        (Ok(Done::Count(count)), Ok(Done::Count(all)))
            if count < all && count > 0 && made == 0 && operation.target().is_some() =>
        {
            // There was room for some.
            *refused += 1;
            *model = before;
            let part = expected(model, operation, now, (0, Some(count)));
            let part = part.map_err(|error| error.to_string())?;
            if part != Done::Count(count) {
                return says(&format!("gives {count}, not {part:?}"));
            }
            model.forget_blocks(operation.target().unwrap());
        }
        (Ok(done), Ok(wanted)) => return says(&format!("gives {done:?}, not {wanted:?}")),
    }
    Ok(())
}

/// A small store with an empty file system.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) block_bytes: u32,
    pub(crate) segment_blocks: u32,
    pub(crate) blocks: u64,
    pub(crate) means: u8,
    pub(crate) rotational_delay_ns: u64,
}

impl Shape {
    /// A small one that makes room by `means`.
    pub(crate) fn small(means: u8) -> Self {
        Self { blocks: 3000, block_bytes: 1024, segment_blocks: 192, means, rotational_delay_ns: 0 }
    }

    pub(crate) fn of(draw: u64) -> Self {
        let block_bytes = [1024, 4096, 1024, 2048][(draw % 4) as usize];
        Self {
            block_bytes,
            segment_blocks: [192, 176, 256][(draw / 4 % 3) as usize],
            blocks: [6000, 9000, 20_000][(draw / 12 % 3) as usize],
            means: (draw / 36 % 5) as u8,
            rotational_delay_ns: [0, 20_000][(draw / 180 % 2) as usize],
        }
    }

    pub(crate) fn device_bytes(&self) -> u64 {
        u64::from(self.block_bytes) * self.blocks
    }

    pub(crate) fn open_options(&self) -> OpenOptions {
        let means = match self.means {
            0 => Means::Fixed(Collect::Always(Mechanism::Clean)),
            1 => Means::Fixed(Collect::Always(Mechanism::Plug)),
            2 => Means::Fixed(Collect::Always(Mechanism::Thread)),
            3 => Means::Fixed(Collect::Matthews1999(PlugCandidate::LeastUtilized)),
            _ => Means::Adaptive,
        };
        let rotational_delay_ns = Some(self.rotational_delay_ns);
        let (placement, collected_logs) = (Placement::SepBit, Some(2));
        OpenOptions {
            means,
            placement,
            collected_logs,
            rotational_delay_ns,
            ..OpenOptions::default()
        }
    }

    /// Makes a file system on `disk`.
    pub(crate) fn make<'a>(&self, disk: impl Disk + 'a) -> Result<AnyFileSystem<'a>, FsError> {
        let options = FormatOptions {
            block_bytes: self.block_bytes,
            segment_blocks: self.segment_blocks,
            ..FormatOptions::new([9; 16])
        };
        Store::format(&disk, &options)?;
        let store = open_store(disk, &self.open_options())?;
        FileSystem::make(&store, &MakeOptions { seed: 77, ..MakeOptions::default() })?;
        Self::mount(store)
    }

    fn mount(store: AnyStore<'_>) -> Result<AnyFileSystem<'_>, FsError> {
        // As few nodes in memory as there may be.
        FileSystem::open(
            Arc::new(store),
            &MountOptions { cache_bytes: 0, ..MountOptions::default() },
        )
    }

    /// Opens what is on `disk`.
    pub(crate) fn open<'a>(&self, disk: impl Disk + 'a) -> Result<AnyFileSystem<'a>, FsError> {
        Self::mount(open_store(disk, &self.open_options())?)
    }
}

/// A store on a disk of any kind, and a file system. The compiler makes all of both for each type that they lie on,
/// which took most of the time in which these tests were made.
pub(crate) type AnyStore<'a> = Store<Box<dyn Disk + 'a>>;
pub(crate) type AnyFileSystem<'a> = FileSystem<Box<dyn Disk + 'a>>;

pub(crate) fn open_store<'a>(
    disk: impl Disk + 'a,
    options: &OpenOptions,
) -> Result<AnyStore<'a>, agewell_store::StoreError> {
    Store::open(Box::new(disk), options)
}

/// Closes it, and the store below.
pub(crate) fn close<D: Disk>(fs: FileSystem<D>) -> Result<D, FsError> {
    let store = fs.close()?;
    Ok(Arc::into_inner(store).expect("nobody else has it").close()?)
}
