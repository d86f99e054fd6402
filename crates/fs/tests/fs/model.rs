//! A file system that is as plain as can be: maps of files, names and blocks. What the real one must show.

use std::collections::BTreeMap;
use std::sync::Arc;

use agewell_fs::{Allocation, FILE_BYTES_MAX, NAME_BYTES_MAX, ROOT_INODE, Rename, Time};
use rustix::fs::FileType;
use rustix::io::Errno;

use super::lists::{ACCESS_LIST, DEFAULT_LIST, decode_list, encode_list, mode_of, with_mode};

const CAPABILITY: &[u8] = b"security.capability";
const TARGET_BYTES_MAX: usize = 4095;
const VALUE_BYTES_MAX: usize = 65_536;
/// Bytes that are copied at once where blocks are not shared.
const COPY_BYTES: u64 = 1 << 20;

pub(crate) type Name = Vec<u8>;

/// The data of a file: in one piece while it is small, then blocks, of which those without bytes are
/// promised.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Data {
    pub(crate) small: Option<Vec<u8>>,
    pub(crate) blocks: BTreeMap<u64, Option<Arc<[u8]>>>,
    /// Whether it is known which blocks there are: not after there was no room.
    pub(crate) is_exact: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    File(Data),
    Directory { entries: BTreeMap<Name, u64>, parent: u64 },
    Link(Vec<u8>),
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) mode: u32,
    pub(crate) links: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) device: u32,
    pub(crate) size: u64,
    /// Access, modification, change, creation.
    pub(crate) times: [Time; 4],
    pub(crate) attributes: BTreeMap<Name, Arc<Vec<u8>>>,
    pub(crate) what: What,
}

impl File {
    pub(crate) fn file_type(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    fn data(&mut self) -> Result<&mut Data, Errno> {
        match &mut self.what {
            What::File(data) => Ok(data),
            What::Directory { .. } => Err(Errno::ISDIR),
            _ => Err(Errno::INVAL),
        }
    }

    pub(crate) fn is_directory(&self) -> bool {
        matches!(self.what, What::Directory { .. })
    }

    fn drop_privileges(&mut self) {
        if self.is_directory() {
            return;
        }
        self.mode &= !0o4000;
        if self.mode & 0o010 != 0 {
            self.mode &= !0o2000;
        }
        self.attributes.remove(CAPABILITY);
    }

    fn written(&mut self, now: Time) {
        (self.times[1], self.times[2]) = (now, now);
    }
}

/// What is made: the mode with the type, a device, where a link leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct New {
    pub(crate) mode: u32,
    pub(crate) device: u32,
    pub(crate) target: Vec<u8>,
}

/// Who makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Maker {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) mask: u32,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) block_bytes: u64,
    pub(crate) files: BTreeMap<u64, Arc<File>>,
}

fn is_name(name: &[u8]) -> Result<(), Errno> {
    match name {
        name if name.len() > NAME_BYTES_MAX => Err(Errno::NAMETOOLONG),
        b"" | b"." | b".." => Err(Errno::INVAL),
        name if name.contains(&b'/') || name.contains(&0) => Err(Errno::INVAL),
        _ => Ok(()),
    }
}

impl Model {
    pub(crate) fn new(block_bytes: u64) -> Self {
        let entries = BTreeMap::new();
        let root = File {
            mode: FileType::Directory.as_raw_mode() | 0o755,
            links: 2,
            uid: 0,
            gid: 0,
            device: 0,
            size: 0,
            times: [Time::default(); 4],
            attributes: BTreeMap::new(),
            what: What::Directory { entries, parent: ROOT_INODE },
        };
        Self { block_bytes, files: [(ROOT_INODE, Arc::new(root))].into() }
    }

    /// Bytes of a file that is in one piece.
    pub(crate) fn small_bytes_max(&self) -> u64 {
        (self.block_bytes - 16) / 2 - 20
    }

    pub(crate) fn get(&self, number: u64) -> Result<&File, Errno> {
        self.files.get(&number).map(|file| &**file).ok_or(Errno::NOENT)
    }

    fn get_mut(&mut self, number: u64) -> Result<&mut File, Errno> {
        self.files.get_mut(&number).map(Arc::make_mut).ok_or(Errno::NOENT)
    }

    pub(crate) fn entries(&self, number: u64) -> Result<&BTreeMap<Name, u64>, Errno> {
        match &self.get(number)?.what {
            What::Directory { entries, .. } => Ok(entries),
            _ => Err(Errno::NOTDIR),
        }
    }

    fn parent(&self, number: u64) -> u64 {
        match &self.files[&number].what {
            What::Directory { parent, .. } => *parent,
            _ => unreachable!("only directories are asked"),
        }
    }

    /// The entries of a directory that was not removed.
    fn live(&self, number: u64) -> Result<&BTreeMap<Name, u64>, Errno> {
        let entries = self.entries(number)?;
        if self.files[&number].links == 0 { Err(Errno::NOENT) } else { Ok(entries) }
    }

    fn enter(&mut self, directory: u64, name: &[u8], number: Option<u64>) {
        let of = self.get_mut(directory).unwrap();
        let What::Directory { entries, .. } = &mut of.what else { unreachable!() };
        match number {
            Some(number) => entries.insert(name.to_vec(), number),
            None => entries.remove(name),
        };
        of.size = entries.len() as u64;
    }

    fn add_links(&mut self, directory: u64, by: i32) {
        let of = self.get_mut(directory).unwrap();
        of.links = of.links.checked_add_signed(by).unwrap();
    }

    /// Makes a file with the number `number`, which the real one has chosen.
    fn make_inode(&mut self, parent: u64, new: &New, by: Maker, now: Time, number: u64) {
        let of = &self.files[&parent];
        let file_type = FileType::from_raw_mode(new.mode);
        let is_directory = file_type == FileType::Directory;
        let mut attributes = BTreeMap::new();
        let mut mode = new.mode;
        match of.attributes.get(DEFAULT_LIST).filter(|_| file_type != FileType::Symlink) {
            Some(list) => {
                let default = decode_list(list).unwrap();
                let granted = mode_of(&default) & mode;
                let inherited = with_mode(default, granted);
                mode = mode & !0o777 | mode_of(&inherited);
                if inherited.iter().any(|entry| !matches!(entry.0, 1 | 4 | 0x20)) {
                    let value = Arc::new(encode_list(&inherited));
                    attributes.insert(ACCESS_LIST.to_vec(), value);
                }
                if is_directory {
                    attributes.insert(DEFAULT_LIST.to_vec(), Arc::clone(list));
                }
            }
            None => mode &= !by.mask,
        }
        let inherits = of.mode & 0o2000 != 0;
        if inherits && is_directory {
            mode |= 0o2000;
        }
        let what = match file_type {
            FileType::Directory => What::Directory { entries: BTreeMap::new(), parent },
            FileType::Symlink => What::Link(new.target.clone()),
            FileType::RegularFile => {
                What::File(Data { small: Some(Vec::new()), is_exact: true, ..Data::default() })
            }
            _ => What::Other,
        };
        let is_device = matches!(file_type, FileType::CharacterDevice | FileType::BlockDevice);
        let file = File {
            mode,
            links: if is_directory { 2 } else { 1 },
            uid: by.uid,
            gid: if inherits { of.gid } else { by.gid },
            device: if is_device { new.device } else { 0 },
            size: if let What::Link(target) = &what { target.len() as u64 } else { 0 },
            times: [now; 4],
            attributes,
            what,
        };
        let before = self.files.insert(number, Arc::new(file));
        assert!(before.is_none(), "the number {number} is in use");
    }

    pub(crate) fn make(
        &mut self,
        (parent, name): (u64, &[u8]),
        new: &New,
        by: Maker,
        now: Time,
        number: u64,
    ) -> Result<(), Errno> {
        is_name(name)?;
        if self.live(parent)?.contains_key(name) {
            return Err(Errno::EXIST);
        }
        if FileType::from_raw_mode(new.mode) == FileType::Symlink {
            if new.target.is_empty() {
                return Err(Errno::NOENT);
            }
            if new.target.len() > TARGET_BYTES_MAX {
                return Err(Errno::NAMETOOLONG);
            }
        }
        self.make_inode(parent, new, by, now, number);
        self.enter(parent, name, Some(number));
        if self.files[&number].is_directory() {
            self.add_links(parent, 1);
        }
        self.get_mut(parent)?.written(now);
        Ok(())
    }

    pub(crate) fn make_unnamed(
        &mut self,
        parent: u64,
        mode: u32,
        by: Maker,
        now: Time,
        number: u64,
    ) -> Result<(), Errno> {
        self.entries(parent)?;
        let mode = FileType::RegularFile.as_raw_mode() | mode & 0o7777;
        let new = New { mode, device: 0, target: Vec::new() };
        self.make_inode(parent, &new, by, now, number);
        self.get_mut(number)?.links = 0;
        Ok(())
    }

    pub(crate) fn link(
        &mut self,
        number: u64,
        parent: u64,
        name: &[u8],
        now: Time,
    ) -> Result<(), Errno> {
        is_name(name)?;
        if self.get(number)?.is_directory() {
            return Err(Errno::PERM);
        }
        if self.live(parent)?.contains_key(name) {
            return Err(Errno::EXIST);
        }
        let file = self.get_mut(number)?;
        file.links += 1;
        file.times[2] = now;
        self.enter(parent, name, Some(number));
        self.get_mut(parent)?.written(now);
        Ok(())
    }

    /// One name of it is gone; whether that was the last.
    fn drop_name(&mut self, number: u64, now: Time) -> Option<u64> {
        let file = self.get_mut(number).unwrap();
        file.links = if file.is_directory() { 0 } else { file.links - 1 };
        file.times[2] = now;
        (file.links == 0).then_some(number)
    }

    pub(crate) fn unlink(
        &mut self,
        parent: u64,
        name: &[u8],
        now: Time,
    ) -> Result<Option<u64>, Errno> {
        let number = self.found(parent, name)?;
        if self.files[&number].is_directory() {
            return Err(Errno::ISDIR);
        }
        self.enter(parent, name, None);
        self.get_mut(parent)?.written(now);
        Ok(self.drop_name(number, now))
    }

    fn found(&self, parent: u64, name: &[u8]) -> Result<u64, Errno> {
        let entries = self.entries(parent)?;
        if name.len() > NAME_BYTES_MAX {
            return Err(Errno::NAMETOOLONG);
        }
        entries.get(name).copied().ok_or(Errno::NOENT)
    }

    pub(crate) fn remove_directory(
        &mut self,
        parent: u64,
        name: &[u8],
        now: Time,
    ) -> Result<u64, Errno> {
        let number = self.found(parent, name)?;
        if !self.entries(number)?.is_empty() {
            return Err(Errno::NOTEMPTY);
        }
        self.enter(parent, name, None);
        self.add_links(parent, -1);
        self.get_mut(parent)?.written(now);
        self.drop_name(number, now);
        Ok(number)
    }

    fn is_above(&self, number: u64, mut directory: u64) -> bool {
        while directory != number && directory != ROOT_INODE {
            directory = self.parent(directory);
        }
        directory == number
    }

    /// Moves what `name` in a directory is to `to`.
    fn moved(&mut self, number: u64, from: u64, to: u64, now: Time) {
        let file = self.get_mut(number).unwrap();
        file.times[2] = now;
        if let What::Directory { parent, .. } = &mut file.what {
            *parent = to;
            self.add_links(from, -1);
            self.add_links(to, 1);
        }
    }

    /// `whiteout` is the number of the file that stays, if one does.
    pub(crate) fn rename(
        &mut self,
        (from, from_name): (u64, &[u8]),
        (to, to_name): (u64, &[u8]),
        how: Rename,
        (by, now): (Maker, Time),
        whiteout: u64,
    ) -> Result<Option<u64>, Errno> {
        is_name(to_name)?;
        let source = self.found(from, from_name)?;
        let target = self.live(to)?.get(to_name).copied();
        let is_directory = self.files[&source].is_directory();
        if is_directory && self.is_above(source, to) {
            return Err(Errno::INVAL);
        }
        if how == Rename::Exchanges {
            let target = target.ok_or(Errno::NOENT)?;
            if self.files[&target].is_directory() && self.is_above(target, from) {
                return Err(Errno::INVAL);
            }
            self.enter(from, from_name, Some(target));
            self.enter(to, to_name, Some(source));
            self.moved(source, from, to, now);
            self.moved(target, to, from, now);
        } else {
            let keeps = matches!(how, Rename::Keeps | Rename::LeavesWhiteout { keeps: true });
            if target.is_some() && keeps {
                return Err(Errno::EXIST);
            }
            if target == Some(source) {
                return Ok(None);
            }
            let mut gone = None;
            if let Some(target) = target {
                match (is_directory, self.files[&target].is_directory()) {
                    (false, true) => return Err(Errno::ISDIR),
                    (true, false) => return Err(Errno::NOTDIR),
                    (true, true) if !self.entries(target)?.is_empty() => {
                        return Err(Errno::NOTEMPTY);
                    }
                    (true, true) => self.add_links(to, -1),
                    (false, false) => {}
                }
                gone = self.drop_name(target, now);
            }
            self.enter(to, to_name, Some(source));
            self.enter(from, from_name, None);
            if matches!(how, Rename::LeavesWhiteout { .. }) {
                let mode = FileType::CharacterDevice.as_raw_mode();
                let new = New { mode, device: 0, target: Vec::new() };
                self.make_inode(from, &new, by, now, whiteout);
                self.enter(from, from_name, Some(whiteout));
            }
            self.moved(source, from, to, now);
            self.get_mut(from)?.written(now);
            self.get_mut(to)?.written(now);
            return Ok(gone);
        }
        self.get_mut(from)?.written(now);
        self.get_mut(to)?.written(now);
        Ok(None)
    }

    pub(crate) fn let_go(&mut self, number: u64) {
        if self.files.get(&number).is_some_and(|file| file.links == 0) {
            self.files.remove(&number);
        }
    }

    // --- data -----------------------------------------------------------------------------------------

    pub(crate) fn read(&self, number: u64, offset: u64, bytes: u64) -> Result<Vec<u8>, Errno> {
        let file = self.get(number)?;
        let data = file.held()?;
        let bytes = file.size.saturating_sub(offset).min(bytes);
        let mut read = vec![0; bytes as usize];
        if let Some(small) = &data.small {
            let there = small.get(offset as usize..).unwrap_or_default();
            let there = &there[..there.len().min(read.len())];
            read[..there.len()].copy_from_slice(there);
            return Ok(read);
        }
        if bytes == 0 {
            return Ok(read);
        }
        let last = (offset + bytes - 1) / self.block_bytes;
        for (block, content) in data.blocks.range(offset / self.block_bytes..=last) {
            let Some(content) = content else { continue };
            let begin = block * self.block_bytes;
            let from = offset.max(begin);
            let to = (offset + bytes).min(begin + self.block_bytes);
            read[(from - offset) as usize..(to - offset) as usize]
                .copy_from_slice(&content[(from - begin) as usize..(to - begin) as usize]);
        }
        Ok(read)
    }

    /// Gives a small file blocks.
    fn spread(&mut self, number: u64) {
        let block_bytes = self.block_bytes;
        let data = self.get_mut(number).unwrap().data().unwrap();
        if let Some(mut small) = data.small.take().filter(|small| !small.is_empty()) {
            small.resize(block_bytes as usize, 0);
            data.blocks.insert(0, Some(small.into()));
        }
    }

    /// Overwrites bytes from `offset` on, in blocks.
    fn put(&mut self, number: u64, offset: u64, bytes: &[u8]) {
        let block_bytes = self.block_bytes;
        let blocks = &mut self.get_mut(number).unwrap().data().unwrap().blocks;
        let (mut at, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let within = (at % block_bytes) as usize;
            let (now, behind) = rest.split_at(rest.len().min(block_bytes as usize - within));
            let block = blocks.entry(at / block_bytes).or_default();
            let before =
                block.as_ref().map_or_else(|| vec![0; block_bytes as usize], |b| b.to_vec());
            let mut content = before;
            content[within..within + now.len()].copy_from_slice(now);
            *block = Some(content.into());
            at += now.len() as u64;
            rest = behind;
        }
    }

    pub(crate) fn write(
        &mut self,
        number: u64,
        offset: u64,
        bytes: &[u8],
        drops: bool,
        now: Time,
    ) -> Result<(), Errno> {
        let small_max = self.small_bytes_max();
        let file = self.get_mut(number)?;
        file.data()?;
        let end = offset.checked_add(bytes.len() as u64).filter(|end| *end <= FILE_BYTES_MAX);
        let end = end.ok_or(Errno::FBIG)?;
        if drops {
            file.drop_privileges();
        }
        file.written(now);
        file.size = file.size.max(end);
        let size = file.size;
        let data = file.data()?;
        if let Some(small) = &mut data.small {
            if size <= small_max {
                small.resize(small.len().max(end as usize), 0);
                small[offset as usize..end as usize].copy_from_slice(bytes);
                return Ok(());
            }
            self.spread(number);
        }
        self.put(number, offset, bytes);
        Ok(())
    }

    /// Zeros where there are bytes.
    fn zero(&mut self, number: u64, from: u64, to: u64) {
        let block_bytes = self.block_bytes;
        let blocks = &self.files[&number].clone();
        let What::File(data) = &blocks.what else { unreachable!() };
        if from < to && matches!(data.blocks.get(&(from / block_bytes)), Some(Some(_))) {
            self.put(number, from, &vec![0; (to - from) as usize]);
        }
    }

    pub(crate) fn set_size(
        &mut self,
        number: u64,
        size: u64,
        drops: bool,
        now: Time,
    ) -> Result<(), Errno> {
        let (block_bytes, small_max) = (self.block_bytes, self.small_bytes_max());
        let file = self.get_mut(number)?;
        file.data()?;
        if size > FILE_BYTES_MAX {
            return Err(Errno::FBIG);
        }
        if drops {
            file.drop_privileges();
        }
        file.written(now);
        let before = std::mem::replace(&mut file.size, size);
        if let Some(small) = &mut file.data()?.small {
            small.truncate(size.min(small.len() as u64) as usize);
            if size > small_max {
                self.spread(number);
            }
            return Ok(());
        }
        if size < before && !size.is_multiple_of(block_bytes) {
            self.zero(number, size, size.next_multiple_of(block_bytes));
        }
        let data = self.get_mut(number)?.data()?;
        data.blocks.retain(|block, _| *block < size.div_ceil(block_bytes));
        if size == 0 {
            data.small = Some(Vec::new());
        }
        Ok(())
    }

    pub(crate) fn allocate(
        &mut self,
        number: u64,
        (offset, bytes): (u64, u64),
        what: Allocation,
        drops: bool,
        now: Time,
    ) -> Result<(), Errno> {
        let end = offset.checked_add(bytes).filter(|end| *end <= FILE_BYTES_MAX);
        let end = end.ok_or(Errno::FBIG)?;
        if bytes == 0 {
            return Err(Errno::INVAL);
        }
        let file = self.get_mut(number)?;
        file.data()?;
        if drops {
            file.drop_privileges();
        }
        file.written(now);
        if let (Some(small), Allocation::Punch) = (&mut file.data()?.small, what) {
            let to = end.min(small.len() as u64) as usize;
            small[(offset as usize).min(to)..to].fill(0);
            return Ok(());
        }
        self.spread(number);
        let block_bytes = self.block_bytes;
        let mut blocks = (offset / block_bytes, end.div_ceil(block_bytes));
        if !matches!(what, Allocation::Allocate { .. }) {
            let whole = (offset.div_ceil(block_bytes), end / block_bytes);
            if whole.0 > whole.1 {
                self.zero(number, offset, end);
            } else {
                self.zero(number, offset, whole.0 * block_bytes);
                self.zero(number, whole.1 * block_bytes, end);
            }
            blocks = whole;
            let data = self.get_mut(number)?.data()?;
            data.blocks.retain(|block, _| !(whole.0..whole.1.max(whole.0)).contains(block));
        }
        let file = self.get_mut(number)?;
        if what != Allocation::Punch {
            for block in blocks.0..blocks.1 {
                file.data()?.blocks.entry(block).or_default();
            }
        }
        if matches!(
            what,
            Allocation::Allocate { extends: true } | Allocation::Zero { extends: true }
        ) {
            file.size = file.size.max(end);
        }
        Ok(())
    }

    /// Where the next data (or else hole) is from `offset` on.
    pub(crate) fn seek(&self, number: u64, offset: u64, to_data: bool) -> Result<u64, Errno> {
        let file = self.get(number)?;
        let data = file.held()?;
        if offset >= file.size {
            return Err(Errno::NXIO);
        }
        if data.small.is_some() {
            return Ok(if to_data { offset } else { file.size });
        }
        let begin = offset / self.block_bytes;
        let has = |block: u64| matches!(data.blocks.get(&block), Some(Some(_)));
        if to_data {
            let end = file.size.div_ceil(self.block_bytes);
            let found = data.blocks.range(begin..end).find(|block| block.1.is_some());
            let found = found.ok_or(Errno::NXIO)?;
            return Ok((found.0 * self.block_bytes).max(offset));
        }
        let mut found = begin;
        while has(found) {
            found += 1;
        }
        Ok((found * self.block_bytes).max(offset).min(file.size))
    }

    pub(crate) fn copy(
        &mut self,
        (from, from_offset): (u64, u64),
        (to, to_offset): (u64, u64),
        bytes: u64,
        drops: bool,
        now: Time,
    ) -> Result<u64, Errno> {
        let block_bytes = self.block_bytes;
        self.get(to)?.held()?;
        let mut source = self.get(from)?.clone();
        source.data()?;
        let bytes = bytes.min(source.size.saturating_sub(from_offset));
        let is_overlap =
            from == to && from_offset < to_offset + bytes && to_offset < from_offset + bytes;
        if is_overlap && bytes > 0 {
            return Err(Errno::INVAL);
        }
        let mut copied = 0;
        while copied < bytes {
            let (from_at, to_at) = (from_offset + copied, to_offset + copied);
            let whole = (bytes - copied) / block_bytes;
            let is_aligned = from_at % block_bytes == 0 && to_at % block_bytes == 0 && whole > 0;
            let is_small = |number: u64| matches!(&self.files[&number].what, What::File(data) if data.small.is_some());
            if !is_aligned || is_small(from) || is_small(to) {
                let read = self.read(from, from_at, (bytes - copied).min(COPY_BYTES))?;
                self.write(to, to_at, &read, drops, now)?;
                copied += read.len() as u64;
                continue;
            }
            let (first, into) = (from_at / block_bytes, to_at / block_bytes);
            let What::File(data) = &self.files[&from].what else { unreachable!() };
            let shared: Vec<_> = data
                .blocks
                .range(first..first + whole)
                .filter(|block| block.1.is_some())
                .map(|(block, content)| (block - first + into, content.clone()))
                .collect();
            copied += whole * block_bytes;
            let file = self.get_mut(to)?;
            if drops {
                file.drop_privileges();
            }
            file.written(now);
            file.size = file.size.max(to_offset + copied);
            let blocks = &mut file.data()?.blocks;
            blocks.retain(|block, _| !(into..into + whole).contains(block));
            blocks.extend(shared);
        }
        Ok(copied)
    }

    // --- attributes -----------------------------------------------------------------------------------

    pub(crate) fn set_attribute(
        &mut self,
        number: u64,
        (name, value): (&[u8], &[u8]),
        (be_new, be_there): (bool, bool),
        now: Time,
    ) -> Result<(), Errno> {
        if value.len() > VALUE_BYTES_MAX {
            return Err(Errno::TOOBIG);
        }
        let file = self.get_mut(number)?;
        let is_there = file.attributes.contains_key(name);
        if is_there && be_new {
            return Err(Errno::EXIST);
        }
        if !is_there && be_there {
            return Err(Errno::NODATA);
        }
        let mut is_kept = true;
        if name == ACCESS_LIST {
            let list = decode_list(value)?;
            file.mode = file.mode & !0o777 | mode_of(&list);
            is_kept = list.iter().any(|entry| !matches!(entry.0, 1 | 4 | 0x20));
        } else if name == DEFAULT_LIST {
            decode_list(value)?;
            if !file.is_directory() {
                return Err(Errno::ACCESS);
            }
        }
        if is_kept {
            file.attributes.insert(name.to_vec(), Arc::new(value.to_vec()));
        } else {
            file.attributes.remove(name);
        }
        file.times[2] = now;
        Ok(())
    }

    pub(crate) fn remove_attribute(
        &mut self,
        number: u64,
        name: &[u8],
        now: Time,
    ) -> Result<(), Errno> {
        let file = self.get_mut(number)?;
        if file.attributes.remove(name).is_none() {
            let is_list = name == ACCESS_LIST || name == DEFAULT_LIST;
            return if is_list { Ok(()) } else { Err(Errno::NODATA) };
        }
        file.times[2] = now;
        Ok(())
    }

    pub(crate) fn change(
        &mut self,
        number: u64,
        (mode, owner): (Option<u32>, Option<(u32, u32)>),
        times: [Option<Time>; 2],
        now: Time,
    ) -> Result<(), Errno> {
        let file = self.get_mut(number)?;
        if let Some((uid, gid)) = owner {
            file.drop_privileges();
            (file.uid, file.gid) = (uid, gid);
        }
        if let Some(mode) = mode {
            file.mode = file.mode & !0o7777 | mode & 0o7777;
            if let Some(list) = file.attributes.get_mut(ACCESS_LIST) {
                *list = Arc::new(encode_list(&with_mode(decode_list(list).unwrap(), mode)));
            }
        }
        for (at, time) in times.into_iter().enumerate() {
            file.times[at] = time.unwrap_or(file.times[at]);
        }
        file.times[2] = now;
        Ok(())
    }

    /// What no crash leaves: files without a name.
    pub(crate) fn without_orphans(&self) -> Self {
        let mut left = self.clone();
        left.files.retain(|_, file| file.links > 0);
        left
    }
}

impl Model {
    /// It is not known any more which blocks a file has.
    pub(crate) fn forget_blocks(&mut self, number: u64) {
        if let Ok(data) = self.get_mut(number).and_then(File::data) {
            data.is_exact = false;
        }
    }
}
