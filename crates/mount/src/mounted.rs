//! What the kernel asks for, answered by the file system.

use std::cell::LazyCell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agewell_fs::{
    Allocation, Attributes, Changes, FileSystem, FsError, Laid, NAME_BYTES_MAX, New, Rename,
    SeekTo, Time,
};
use agewell_fuse::{
    Caller, Command, Copy, DataReply, DirectorySink, Entry, Errno, Make, ROOT, Read, Reply, Seek,
    Sent, SetAttributes, SetTime, Space, Write,
};
use agewell_log::policy::cost::CostModel;
use agewell_store::device::Disk;
use agewell_store::{Carrier, Collector, CollectorOptions, Means};
use rustix::fs::{FallocateFlags, FileType, RenameFlags, XattrFlags};
use rustix::time::{ClockId, clock_gettime};

use crate::durable::Durable;
use crate::grow::{self, GROW};
use crate::latencies::Latencies;
use crate::lookups::Lookups;
use crate::regrouper::Regrouper;
use crate::rights;
use crate::status::{self, Requests, STATUS};
use crate::sweeper::Sweeper;
use crate::trace;

/// `FITRIM` (`linux/fs.h`): start, length and least length go in, how much was discarded comes out.
const FITRIM: u32 = 0xC018_5879;
/// `EXT4_IOC_SHUTDOWN`, also of `xfs` and `btrfs`. Its argument does not arrive.
const SHUTDOWN: u32 = 0x8004_587D;

/// The name of the attribute that says where a file lies, but for the byte of the file from which on: the
/// kernel does not hand `FIEMAP` on.
const EXTENTS: &[u8] = b"agewell.extents.";
/// Extents that it has at most: less than what an attribute has room for.
const EXTENTS_MAX: usize = 1500;

/// The same for where the device is free, from byte N of it on: first byte and bytes of each piece.
const FREE: &[u8] = b"agewell.free.";
const FREE_MAX: usize = 4000;
/// And for how many live blocks are in each segment, from segment N on.
const LIVE: &[u8] = b"agewell.live.";
const LIVE_MAX: u32 = 16_000;

/// Names of the attributes by which a mount is scrubbed a piece at a time, but for where it begins: the
/// number of a block, or the byte of a file.
const SCRUB: &[u8] = b"agewell.scrub.";
const SCRUB_FILE: &[u8] = b"agewell.damaged.";
/// Blocks that are read for each; chosen by us: few, so that nobody waits long.
const SCRUBBED_BLOCKS: u32 = 256;

/// Extents as `FIEMAP` reports them (`struct fiemap_extent`, `linux/fiemap.h`), without what is reserved:
/// logical, physical and length in bytes (u64 each), flags and zeros (u32 each).
fn encode_extents(extents: &[Laid]) -> Vec<u8> {
    const LAST: u32 = 0x1;
    const UNKNOWN_AND_DELAYED: u32 = 0x6;
    const INLINE: u32 = 0x200;
    const UNWRITTEN: u32 = 0x800;
    const SHARED: u32 = 0x2000;
    let mut bytes = Vec::with_capacity(extents.len() * 32);
    for (number, laid) in extents.iter().enumerate() {
        let is_delayed = laid.physical_bytes.is_none() && !laid.is_inline;
        let is_last = number + 1 == extents.len() && extents.len() < EXTENTS_MAX;
        let flags = [
            (is_last, LAST),
            (is_delayed, UNKNOWN_AND_DELAYED),
            (laid.is_inline, INLINE),
            (laid.is_promised, UNWRITTEN),
            (laid.is_shared, SHARED),
        ];
        let flags = flags.iter().filter(|flag| flag.0).fold(0, |all, flag| all | flag.1);
        bytes.extend(laid.logical_bytes.to_le_bytes());
        bytes.extend(laid.physical_bytes.unwrap_or(0).to_le_bytes());
        bytes.extend(laid.length_bytes.to_le_bytes());
        bytes.extend(u64::from(flags).to_le_bytes());
    }
    bytes
}

/// A file system that is mounted.
#[derive(Debug)]
pub struct Mounted<D: Disk + 'static> {
    file_system: Arc<FileSystem<D>>,
    lookups: Mutex<Lookups>,
    /// These end before what flushes does.
    sweeper: Sweeper<D>,
    regrouper: Option<Regrouper>,
    collector: Mutex<Option<Collector>>,
    carrier: Mutex<Option<Carrier>>,
    durable: Durable<D>,
    means: Means,
    requests: Arc<Requests>,
    device: Option<PathBuf>,
}

impl<D: Disk + 'static> Mounted<D> {
    /// Of `file_system`, whose store makes room by `means`.
    ///
    /// # Errors
    /// If there can be no more threads.
    pub fn new(file_system: FileSystem<D>, means: Means) -> io::Result<Self> {
        let (file_system, requests) = (Arc::new(file_system), Arc::default());
        let durable = Durable::start(Arc::clone(&file_system), Arc::clone(&requests))?;
        let sweeper = Sweeper::start(Arc::clone(&file_system), Arc::clone(&requests))?;
        let (lookups, regrouper, collector) = (Mutex::default(), None, Mutex::default());
        Ok(Self {
            file_system,
            lookups,
            sweeper,
            regrouper,
            collector,
            carrier: Mutex::default(),
            durable,
            means,
            requests,
            device: None,
        })
    }

    /// It says from now on that it is in the file or on the device `path`.
    pub fn lies_on(&mut self, path: &Path) {
        self.device = path.canonicalize().ok();
    }

    /// Room is made behind from now on, until the end of the mount, and what is written is carried out behind.
    ///
    /// # Errors
    /// If there can be no more threads.
    ///
    /// # Panics
    /// If it is already.
    pub fn make_room(&mut self, options: CollectorOptions) -> io::Result<()> {
        let store = Arc::clone(self.file_system.store());
        self.carrier = Mutex::new(Some(Carrier::start(Arc::clone(&store))?));
        self.collector = Mutex::new(Some(Collector::start(store, options)?));
        Ok(())
    }

    /// Puts together what is read together from now on: see [`Regrouping`](crate::Regrouping).
    ///
    /// # Errors
    /// If there can be no more threads.
    pub fn regroup(&mut self, memory_bytes: u64, disk: CostModel) -> io::Result<()> {
        let (file_system, requests) = (Arc::clone(&self.file_system), Arc::clone(&self.requests));
        self.regrouper = Some(Regrouper::start(file_system, requests, memory_bytes, disk)?);
        Ok(())
    }

    fn lookups(&self) -> MutexGuard<'_, Lookups> {
        self.lookups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kernel is told of a file.
    fn entry(&self, found: Result<Attributes, FsError>) -> Result<Entry, Errno> {
        let found = found.map_err(errno)?;
        if found.inode != ROOT {
            self.lookups().tell(found.inode);
        }
        Ok(Entry { attributes: self.shown(&found), generation: 0 })
    }

    fn shown(&self, found: &Attributes) -> agewell_fuse::Attributes {
        agewell_fuse::Attributes {
            inode: found.inode,
            size: found.size,
            blocks: found.sectors,
            accessed: shown_time(found.accessed),
            modified: shown_time(found.modified),
            changed: shown_time(found.changed),
            born: shown_time(found.created),
            mode: found.mode,
            links: found.links,
            user: found.uid,
            group: found.gid,
            device: found.device,
            block_size: self.file_system.store().geometry().block_bytes,
        }
    }

    /// `inode` loses what it gives its group where the usual rule does not take it, if `caller` is one by whose
    /// changes rights are lost; whether that is so.
    fn drop_rights(&self, caller: &Caller, inode: u64) -> Result<bool, FsError> {
        let drops = rights::are_lost(caller);
        if drops {
            self.drop_group(caller, inode)?;
        }
        Ok(drops)
    }

    /// `inode` loses the right to run for its group, if `caller` is not of that.
    fn drop_group(&self, caller: &Caller, inode: u64) -> Result<(), FsError> {
        let found = self.file_system.attributes(inode)?;
        if rights::is_group_lost(caller, &found) {
            let mode = Some(rights::without_group(found.mode));
            let changes = Changes { mode, ..Changes::default() };
            self.file_system.set_attributes(inode, &changes, now())?;
        }
        Ok(())
    }

    fn make(
        &self,
        caller: &Caller,
        make: &Make<'_>,
        (file_type, device, target): (FileType, u32, &[u8]),
    ) -> Result<Entry, Errno> {
        let new = New { mode: file_type.as_raw_mode() | make.mode & 0o7777, device, target };
        timed(&self.requests.names, || {
            let by = by(caller, make.mask);
            self.entry(self.file_system.make_file(make.parent, make.name, &new, &by))
        })
    }
}

/// Counts how long `request` takes.
#[expect(clippy::disallowed_methods, reason = "it measures what users wait for")]
fn timed<R>(latencies: &Latencies, request: impl FnOnce() -> R) -> R {
    let begin = std::time::Instant::now();
    let answer = request();
    latencies.count(begin.elapsed());
    answer
}

#[expect(clippy::needless_pass_by_value, reason = "it takes what `map_err` gives")]
fn errno(error: FsError) -> Errno {
    error.errno()
}

pub(crate) fn now() -> Time {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    Time { seconds: now.tv_sec, nanoseconds: now.tv_nsec as u32 }
}

fn shown_time(time: Time) -> agewell_fuse::Time {
    agewell_fuse::Time { seconds: time.seconds, nanoseconds: time.nanoseconds }
}

fn given_time(time: agewell_fuse::Time) -> Time {
    Time { seconds: time.seconds, nanoseconds: time.nanoseconds }
}

/// `EOPNOTSUPP` for an attribute of no kind that Linux has (`xattr(7)`), `EINVAL` for one without a name.
fn check_attribute_name(name: &[u8]) -> Result<(), Errno> {
    let kinds: [&[u8]; 3] = [b"user.", b"trusted.", b"security."];
    match kinds.iter().find_map(|kind| name.strip_prefix(*kind)) {
        Some(b"") => Err(Errno::INVAL),
        Some(_) => Ok(()),
        None if matches!(name, b"system.posix_acl_access" | b"system.posix_acl_default") => Ok(()),
        None => Err(Errno::OPNOTSUPP),
    }
}

fn by(caller: &Caller, mask: u32) -> agewell_fs::Caller {
    agewell_fs::Caller { uid: caller.user, gid: caller.group, mask, now: now() }
}

impl<D: Disk + 'static> agewell_fuse::FileSystem for Mounted<D> {
    fn lookup(&self, _: &Caller, parent: u64, name: &[u8]) -> Result<Entry, Errno> {
        let found = match name {
            // The kernel knows by itself what is open. What nobody has open and no name leads to is gone.
            b"." => match self.file_system.attributes(parent) {
                Ok(found) if found.links == 0 => Err(FsError::Errno(Errno::STALE)),
                Err(FsError::Errno(Errno::NOENT)) => Err(FsError::Errno(Errno::STALE)),
                found => found,
            },
            name => self.file_system.lookup(parent, name),
        };
        self.entry(found)
    }

    fn forget(&self, inode: u64, count: u64) {
        if self.lookups().forget(inode, count) {
            self.file_system.let_go(inode);
            if self.file_system.has_work() {
                self.durable.work();
            }
        }
    }

    fn attributes(&self, _: &Caller, inode: u64) -> Result<agewell_fuse::Attributes, Errno> {
        let found = self.file_system.attributes(inode).map_err(errno)?;
        Ok(self.shown(&found))
    }

    fn set_attributes(
        &self,
        caller: &Caller,
        inode: u64,
        set: &SetAttributes,
    ) -> Result<agewell_fuse::Attributes, Errno> {
        let now = now();
        let time = |set: Option<SetTime>| {
            set.map(|set| match set {
                SetTime::Now => now,
                SetTime::To(time) => given_time(time),
            })
        };
        let changes = Changes {
            mode: set.mode,
            uid: set.user,
            gid: set.group,
            size: set.size,
            accessed: time(set.accessed),
            modified: time(set.modified),
            changed: set.changed.map(given_time),
            drops_privileges: set.kills_privileges,
        };
        let is_given_away = set.user.or(set.group).is_some();
        if set.mode.is_none() && (set.kills_privileges || is_given_away) {
            self.drop_rights(caller, inode).map_err(errno)?;
        }
        let found = self.file_system.set_attributes(inode, &changes, now).map_err(errno)?;
        Ok(self.shown(&found))
    }

    fn read_link(&self, _: &Caller, inode: u64, target: &mut Vec<u8>) -> Result<(), Errno> {
        target.extend(self.file_system.link_target(inode).map_err(errno)?);
        Ok(())
    }

    fn symbolic_link(
        &self,
        caller: &Caller,
        parent: u64,
        name: &[u8],
        target: &[u8],
    ) -> Result<Entry, Errno> {
        let make = Make { parent, name, mode: 0o777, mask: 0 };
        self.make(caller, &make, (FileType::Symlink, 0, target))
    }

    fn make_node(&self, caller: &Caller, make: &Make<'_>, device: u32) -> Result<Entry, Errno> {
        let file_type = match FileType::from_raw_mode(make.mode) {
            FileType::Unknown => FileType::RegularFile,
            FileType::Directory | FileType::Symlink => return Err(Errno::INVAL),
            file_type => file_type,
        };
        self.make(caller, make, (file_type, device, b""))
    }

    fn make_directory(&self, caller: &Caller, make: &Make<'_>) -> Result<Entry, Errno> {
        self.make(caller, make, (FileType::Directory, 0, b""))
    }

    fn create(&self, caller: &Caller, make: &Make<'_>) -> Result<Entry, Errno> {
        self.make(caller, make, (FileType::RegularFile, 0, b""))
    }

    fn create_unnamed(
        &self,
        caller: &Caller,
        parent: u64,
        mode: u32,
        mask: u32,
    ) -> Result<Entry, Errno> {
        self.entry(self.file_system.make_unnamed(parent, mode, &by(caller, mask)))
    }

    fn unlink(&self, _: &Caller, parent: u64, name: &[u8]) -> Result<(), Errno> {
        timed(&self.requests.names, || self.file_system.unlink(parent, name, now()))
            .map_err(errno)?;
        Ok(())
    }

    fn remove_directory(&self, _: &Caller, parent: u64, name: &[u8]) -> Result<(), Errno> {
        self.file_system.remove_directory(parent, name, now()).map_err(errno)?;
        Ok(())
    }

    fn rename(
        &self,
        caller: &Caller,
        from: (u64, &[u8]),
        to: (u64, &[u8]),
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        let how = Rename::from_flags(flags)?;
        self.file_system.rename(from, to, how, &by(caller, 0)).map_err(errno)?;
        Ok(())
    }

    fn link(&self, _: &Caller, inode: u64, parent: u64, name: &[u8]) -> Result<Entry, Errno> {
        self.entry(self.file_system.link(inode, parent, name, now()))
    }

    fn read(&self, _: &Caller, read: &Read, reply: DataReply<'_>) -> Result<Sent, Errno> {
        let Read { inode, offset, .. } = *read;
        if self.sweeper.is_swept(inode) {
            let (sent, later) = reply.later();
            self.sweeper.read(inode, offset, later);
            return Ok(sent);
        }
        let mut due = None;
        let sent = timed(&self.requests.reads, || {
            reply.fill(|into| {
                let read = self.file_system.read_noting(inode, offset, into).map_err(errno)?;
                due = read.1;
                Ok(read.0)
            })
        })?;
        if let Some(due) = due {
            self.sweeper.sweep(due);
        }
        Ok(sent)
    }

    fn write(&self, caller: &Caller, write: &Write<'_>) -> Result<usize, Errno> {
        let Write { inode, offset, data, kills_privileges, .. } = *write;
        timed(&self.requests.writes, || {
            if kills_privileges {
                self.drop_group(caller, inode).map_err(errno)?;
            }
            self.file_system.write(inode, offset, data, kills_privileges, now()).map_err(errno)
        })
    }

    fn space(&self, _: &Caller, _: u64) -> Result<Space, Errno> {
        // Who removes a file and then asks is to see what it held, as if removing had waited for it. What
        // fails here is met again by who works behind.
        while self.file_system.work().unwrap_or(false) {}
        let space = self.file_system.space();
        Ok(Space {
            block_size: space.block_bytes,
            blocks: space.blocks,
            free: space.free,
            available: space.free,
            // There is no other limit than room.
            files: 0,
            files_free: 0,
            name_max: NAME_BYTES_MAX as u32,
        })
    }

    fn sync_file(&self, _: &Caller, _: u64, _: bool, reply: Reply) {
        self.durable.sync(reply);
    }

    fn sync_directory(&self, _: &Caller, _: u64, _: bool, reply: Reply) {
        self.durable.sync(reply);
    }

    fn sync_all(&self, reply: Reply) {
        self.durable.sync(reply);
    }

    fn destroy(&self, reply: Reply) {
        self.sweeper.stop();
        if let Some(regrouper) = &self.regrouper {
            regrouper.stop();
        }
        let collector = self.collector.lock().unwrap_or_else(PoisonError::into_inner).take();
        let _ = collector.map(Collector::stop);
        drop(self.carrier.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.durable.end(reply, self.regrouper.is_some());
    }

    fn read_directory(
        &self,
        _: &Caller,
        inode: u64,
        cookie: u64,
        sink: &mut DirectorySink<'_>,
    ) -> Result<(), Errno> {
        let shows_all = sink.wants_entries();
        let mut told = Vec::new();
        let listed = self.file_system.list(inode, cookie, shows_all, |entry, found| {
            let shown = found.filter(|_| !matches!(entry.name, b"." | b".."));
            match shown {
                Some(found) => {
                    let shown = Entry { attributes: self.shown(found), generation: 0 };
                    let fits = sink.add_entry(entry.name, &shown, entry.next);
                    told.extend(fits.then_some(found.inode));
                    fits
                }
                None => sink.add(entry.name, entry.inode, entry.file_type, entry.next),
            }
        });
        let mut lookups = self.lookups();
        for inode in told {
            lookups.tell(inode);
        }
        listed.map_err(errno)
    }

    fn extended_attribute(
        &self,
        caller: &Caller,
        inode: u64,
        name: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<(), Errno> {
        if name == STATUS.as_bytes() {
            let status = {
                let regrouped = self.regrouper.as_ref().map(Regrouper::done);
                let (file_system, requests) = (&self.file_system, &self.requests);
                let mounted_as = (self.device.as_deref(), self.means);
                status::document(file_system, mounted_as, requests, regrouped.as_ref())
            };
            value.extend(status.to_string().into_bytes());
            return Ok(());
        }
        if let Some(asked) = name.strip_prefix(trace::TRACE) {
            value.extend(trace::answer(&self.file_system, caller, asked)?);
            return Ok(());
        }
        let number = |text: &[u8]| {
            let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
            number.ok_or(Errno::INVAL)
        };
        if let Some(blocks) = name.strip_prefix(GROW) {
            value.extend(grow::answer(&self.file_system, caller, number(blocks)?)?);
            return Ok(());
        }
        if let Some(first) = name.strip_prefix(SCRUB) {
            let first = u32::try_from(number(first)?).map_err(|_| Errno::INVAL)?;
            let (damaged, next) = self.file_system.scrub(first, SCRUBBED_BLOCKS).map_err(errno)?;
            let found = serde_json::json!({"damaged": damaged, "next": next});
            value.extend(found.to_string().into_bytes());
            return Ok(());
        }
        if let Some(from) = name.strip_prefix(SCRUB_FILE) {
            let (from, most) = (number(from)?, u64::from(SCRUBBED_BLOCKS));
            let (damaged, next) = self.file_system.scrub_file(inode, from, most).map_err(errno)?;
            let found = serde_json::json!({"damaged": damaged, "next": next});
            value.extend(found.to_string().into_bytes());
            return Ok(());
        }
        if let Some(from) = name.strip_prefix(FREE) {
            let found = self.file_system.store().free_pieces(number(from)?, FREE_MAX);
            for piece in found {
                value.extend(piece.offset_bytes.to_le_bytes());
                value.extend(piece.length_bytes.to_le_bytes());
            }
            return Ok(());
        }
        if let Some(first) = name.strip_prefix(LIVE) {
            let first = u32::try_from(number(first)?).map_err(|_| Errno::INVAL)?;
            let found = self.file_system.store().live_in_segments(first, LIVE_MAX);
            value.extend(found.into_iter().flat_map(u32::to_le_bytes));
            return Ok(());
        }
        if let Some(from) = name.strip_prefix(EXTENTS) {
            let from = number(from)?;
            let found = self.file_system.layout(inode, from, EXTENTS_MAX).map_err(errno)?;
            value.extend(encode_extents(&found));
            return Ok(());
        }
        check_attribute_name(name)?;
        value.extend(self.file_system.extended_attribute(inode, name).map_err(errno)?);
        Ok(())
    }

    fn extended_attributes(
        &self,
        caller: &Caller,
        inode: u64,
        names: &mut Vec<u8>,
    ) -> Result<(), Errno> {
        let all = self.file_system.extended_attributes(inode).map_err(errno)?;
        // `trusted.` is not there for others than root (`xattr(7)`).
        let is_root = LazyCell::new(|| rights::is_root(caller));
        let is_shown = |name: &&[u8]| !name.starts_with(b"trusted.") || *is_root;
        names.extend(all.split_inclusive(|byte| *byte == 0).filter(is_shown).flatten());
        Ok(())
    }

    fn set_extended_attribute(
        &self,
        _: &Caller,
        inode: u64,
        name: &[u8],
        value: &[u8],
        flags: XattrFlags,
        kills_set_group: bool,
    ) -> Result<(), Errno> {
        check_attribute_name(name)?;
        let must = (flags.contains(XattrFlags::CREATE), flags.contains(XattrFlags::REPLACE));
        let now = now();
        self.file_system.set_extended_attribute(inode, (name, value), must, now).map_err(errno)?;
        if kills_set_group {
            let mode = self.file_system.attributes(inode).map_err(errno)?.mode & !0o2000;
            let changes = Changes { mode: Some(mode), ..Changes::default() };
            self.file_system.set_attributes(inode, &changes, now).map_err(errno)?;
        }
        Ok(())
    }

    fn remove_extended_attribute(&self, _: &Caller, inode: u64, name: &[u8]) -> Result<(), Errno> {
        check_attribute_name(name)?;
        self.file_system.remove_extended_attribute(inode, name, now()).map_err(errno)
    }

    fn allocate(
        &self,
        caller: &Caller,
        inode: u64,
        offset: u64,
        size: u64,
        flags: FallocateFlags,
    ) -> Result<(), Errno> {
        let extends = !flags.contains(FallocateFlags::KEEP_SIZE);
        let what = match flags - FallocateFlags::KEEP_SIZE {
            flags if flags.is_empty() => Allocation::Allocate { extends },
            FallocateFlags::PUNCH_HOLE if !extends => Allocation::Punch,
            FallocateFlags::ZERO_RANGE => Allocation::Zero { extends },
            _ => return Err(Errno::OPNOTSUPP),
        };
        let drops = self.drop_rights(caller, inode).map_err(errno)?;
        self.file_system.allocate(inode, (offset, size), what, drops, now()).map_err(errno)
    }

    fn seek(&self, _: &Caller, inode: u64, offset: u64, seek: Seek) -> Result<u64, Errno> {
        let to = match seek {
            Seek::Data => SeekTo::Data,
            Seek::Hole => SeekTo::Hole,
        };
        self.file_system.seek(inode, offset, to).map_err(errno)
    }

    fn copy(&self, caller: &Caller, copy: &Copy) -> Result<u64, Errno> {
        let (from, to) = ((copy.from, copy.from_offset), (copy.to, copy.to_offset));
        let drops = self.drop_rights(caller, copy.to).map_err(errno)?;
        self.file_system.copy(from, to, copy.size, drops, now()).map_err(errno)
    }

    fn command(
        &self,
        caller: &Caller,
        command: &Command<'_>,
        output: &mut Vec<u8>,
    ) -> Result<i32, Errno> {
        // The kernel leaves it to the file system who may do so.
        if matches!(command.number, FITRIM | SHUTDOWN) && !rights::is_root(caller) {
            return Err(Errno::PERM);
        }
        match command.number {
            FITRIM if command.input.len() == 24 => {
                let words = command.input.as_chunks::<8>().0;
                let [start, length, least] = [0, 1, 2].map(|at| u64::from_le_bytes(words[at]));
                let space = self.file_system.space();
                let block_bytes = u64::from(space.block_bytes);
                let end = space.blocks * block_bytes;
                if start >= end || length < block_bytes || least > end {
                    return Err(Errno::INVAL);
                }
                let range = start..start.saturating_add(length);
                // Room that no file may have is free too; nobody expects more than the whole.
                let discarded = self.file_system.trim(range, least).map_err(errno)?.min(end);
                output.extend(&command.input[..8]);
                output.extend(discarded.to_le_bytes());
                output.extend(&command.input[16..]);
                Ok(0)
            }
            SHUTDOWN => {
                self.file_system.sync().map_err(errno)?;
                self.file_system.shut();
                Ok(0)
            }
            _ => Err(Errno::NOTTY),
        }
    }
}
