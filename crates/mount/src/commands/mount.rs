//! `mount PATH DIRECTORY [-f] [-o OPTION,...]`: a file system, served until it is unmounted.
//!
//! Unless it is to stay in the foreground, a second process serves, and the first waits until the file
//! system can be used.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use agewell_disk::DeviceParameters;
use agewell_fs::{FileSystem, MountOptions};
use agewell_fuse::mount::{LoopDevice, MountKind};
use agewell_fuse::{Options, Session};
use agewell_store::Mechanism;
use agewell_store::device::{Disk, FileDisk, FileOptions, ModelledDisk};
use agewell_store::{
    COLLECTED_LOGS_MAX, CollectorOptions, CostModel, Means, OpenOptions, Placement, Store,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::words::{CommandError, Words, unknown};
use crate::Mounted;
use crate::status::STATUS;

/// Bytes of what a mount says of itself, at most (`XATTR_SIZE_MAX` of Linux).
const STATUS_BYTES_MAX: usize = 65_536;

/// Memory for what is read together, if nothing else is said; chosen by us: 32,000 pieces of files of 64
/// KiB and nodes.
const OBSERVE_BYTES: u64 = 8 << 20;

/// What the serving process says when calls on the mount are answered.
const READY: &str = "ready";

/// How it is mounted.
#[derive(Debug, Clone)]
struct Wanted {
    means: Means,
    placement: Placement,
    /// Logs of what is collected; as many as pay, if that is not said.
    collected_logs: Option<u32>,
    /// What transfers cost; learnt, if that is not said.
    prices: Option<CostModel>,
    /// Time between syncs for which room is left, and what is lost without, ns; learnt, if that is not said.
    rotational_delay_ns: Option<(u64, u64)>,
    /// The device whose times count instead of those of the real one, if there is one: a file.
    timed_as: Option<PathBuf>,
    cache: MountOptions,
    session: Options,
    is_plain: bool,
    is_read_only: bool,
    /// Memory for what is read together; none if nothing is put together.
    observe_bytes: Option<u64>,
    file: FileOptions,
    collector: CollectorOptions,
    without: MountFlags,
    allow_other: bool,
}

impl Wanted {
    fn parse(words: &[String]) -> Result<Self, CommandError> {
        let mut wanted = Self {
            means: Means::Adaptive,
            placement: OpenOptions::default().placement,
            collected_logs: None,
            prices: None,
            rotational_delay_ns: None,
            timed_as: None,
            cache: MountOptions::default(),
            session: Options::default(),
            is_plain: false,
            is_read_only: false,
            observe_bytes: Some(OBSERVE_BYTES),
            file: FileOptions::default(),
            collector: CollectorOptions::default(),
            without: MountFlags::empty(),
            allow_other: true,
        };
        let words = words.iter().flat_map(|words| words.split(','));
        for word in words.filter(|word| !word.is_empty()) {
            wanted.take(word)?;
        }
        Ok(wanted)
    }

    fn take(&mut self, word: &str) -> Result<(), CommandError> {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let number = || {
            let number = value.parse::<u64>();
            number.map_err(|_| CommandError::input(format!("-o {word}: not a number")))
        };
        let numbers: Result<Vec<u64>, _> = value.split(':').map(str::parse).collect();
        match name {
            "ro" => self.is_read_only = true,
            "rw" => self.is_read_only = false,
            "nosuid" => self.without |= MountFlags::NOSUID,
            "nodev" => self.without |= MountFlags::NODEV,
            "noexec" => self.without |= MountFlags::NOEXEC,
            "plain" => self.is_plain = true,
            "block" => self.is_plain = false,
            "buffered" => self.file.is_direct = false,
            "discard" => self.collector.discards = true,
            "nodiscard" => self.collector.discards = false,
            "allow_other" => self.allow_other = true,
            "private" => self.allow_other = false,
            "threads" => match number()? {
                0 => return Err(CommandError::input(format!("-o {word}: at least one answers"))),
                threads => self.session.threads = threads as usize,
            },
            "regroup" => self.observe_bytes = Some(OBSERVE_BYTES),
            "noregroup" => self.observe_bytes = None,
            "observe_mib" => self.observe_bytes = Some(number()? << 20),
            "cache_mib" => self.cache.cache_bytes = number()? << 20,
            "readahead_mib" => self.cache.read_ahead_bytes = number()? << 20,
            "means" => {
                self.means = match value {
                    "adaptive" => Means::Adaptive,
                    "clean" => OpenOptions::fixed(Mechanism::Clean).means,
                    "plug" => OpenOptions::fixed(Mechanism::Plug).means,
                    "thread" => OpenOptions::fixed(Mechanism::Thread).means,
                    _ => {
                        let why = "adaptive, clean, plug or thread";
                        return Err(CommandError::input(format!("-o {word}: means is {why}")));
                    }
                }
            }
            "placement" => {
                let (kind, logs) = value.split_once(':').map_or((value, None), |(kind, logs)| {
                    (
                        kind,
                        Some(
                            logs.parse()
                                .ok()
                                .filter(|logs| (2..=COLLECTED_LOGS_MAX).contains(logs)),
                        ),
                    )
                });
                self.placement = match kind {
                    "lifetime" => Placement::Lifetime,
                    "sepbit" => Placement::SepBit,
                    "none" if logs.is_none() => Placement::None,
                    _ => return Err(placement_is(word)),
                };
                self.collected_logs = match logs {
                    Some(None) => return Err(placement_is(word)),
                    logs => logs.flatten(),
                };
            }
            "timed_as" if value.starts_with('/') => self.timed_as = Some(PathBuf::from(value)),
            "timed_as" => {
                let why = "timed_as is the whole path of a device file: timed_as=/srv/my-disk.toml";
                return Err(CommandError::input(format!("-o {word}: {why}")));
            }
            "prices" if value == "learnt" => self.prices = None,
            "prices" => {
                let Ok([access_us, further_us, megabytes @ (1..)]) = numbers.as_deref() else {
                    let why = "learnt, or the microseconds of a transfer elsewhere, those of one to \
                               the same segment, and megabytes a second: 12000:4000:200";
                    return Err(CommandError::input(format!("-o {word}: prices is {why}")));
                };
                self.prices = Some(CostModel {
                    access_ns: access_us.saturating_mul(1000),
                    further_ns: further_us.saturating_mul(1000),
                    bandwidth_bytes_per_s: megabytes.saturating_mul(1_000_000),
                    ..OpenOptions::default().prices
                });
            }
            "rotdelay_us" if value == "learnt" => self.rotational_delay_ns = None,
            "rotdelay_us" => {
                let Ok([delay_us, turn_us]) = numbers.as_deref() else {
                    let why = "learnt, or the microseconds from a sync to when the next may reach the \
                               medium, and those of a turn: 400:8333";
                    return Err(CommandError::input(format!("-o {word}: rotdelay_us is {why}")));
                };
                let ns = |us: &u64| us.saturating_mul(1000);
                self.rotational_delay_ns = Some((ns(delay_us), ns(turn_us)));
            }
            // What `mount` hands on and the kernel or nobody needs here.
            "defaults" | "auto" | "noauto" | "user" | "nouser" | "users" | "_netdev" | "nofail"
            | "suid" | "dev" | "exec" | "async" | "noatime" | "relatime" | "atime"
            | "strictatime" | "nodiratime" | "diratime" | "lazytime" | "nolazytime" | "silent"
            | "loud" => {}
            name if name.starts_with("x-") || name.starts_with("comment") => {}
            _ => return Err(CommandError::input(format!("-o {word}: there is no such option"))),
        }
        Ok(())
    }
}

fn placement_is(word: &str) -> CommandError {
    let why = format!(
        "none, or lifetime or sepbit and, if it is to be said, in how many logs what is collected \
         goes, 2 to {COLLECTED_LOGS_MAX}: lifetime:4"
    );
    CommandError::input(format!("-o {word}: placement is {why}"))
}

pub(super) fn run(mut words: Words) -> Result<(), CommandError> {
    let (mut stays, mut serves) = (false, false);
    let mut given = Vec::new();
    while let Some(option) = words.option() {
        match option.as_str() {
            "-f" | "--foreground" => stays = true,
            // By ourselves: the first process waits for the second to say that it is ready.
            "--serve" => serves = true,
            "-o" => given.push(words.value(&option)?),
            "-r" => given.push("ro".into()),
            "-w" => given.push("rw".into()),
            // As `mount` calls its helpers: do not write mtab, be verbose, be sloppy.
            "-n" | "-v" | "-s" => {}
            "-t" => drop(words.value(&option)?),
            option => return Err(unknown(option)),
        }
    }
    let [path, point] = words.exactly("the path of a file system and a directory")?;
    let wanted = Wanted::parse(&given)?;
    if stays || serves {
        serve(&path, &point, &wanted, serves)
    } else {
        in_background(&path, &point, &given)
    }
}

/// Serves from another process, and returns when it does.
fn in_background(path: &Path, point: &Path, given: &[String]) -> Result<(), CommandError> {
    let failed = |error: std::io::Error| CommandError::failed(format!("mount: {error}"));
    // It works in no directory, so paths are whole.
    let whole = |path: &Path| {
        path.canonicalize()
            .map_err(|error| CommandError::input(format!("{}: {error}", path.display())))
    };
    let words: [OsString; 4] =
        ["mount".into(), whole(path)?.into(), whole(point)?.into(), "--serve".into()];
    let mut server = Command::new(std::env::current_exe().map_err(failed)?)
        .args(words)
        .args(given.iter().flat_map(|given| ["-o", given]))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut said = String::new();
    let stdout = server.stdout.take().expect("it is piped");
    BufReader::new(stdout).read_line(&mut said).map_err(failed)?;
    if said.trim_end() == READY {
        // Until the kernel knows what the server can do, `mount_setattr(2)` fails; a call waits for that.
        return rustix::fs::statvfs(point).map(drop).map_err(|error| failed(error.into()));
    }
    let mut why = String::new();
    let mut stderr = server.stderr.take().expect("it is piped");
    stderr.read_to_string(&mut why).map_err(failed)?;
    let code = server.wait().map_err(failed)?.code().unwrap_or(1);
    let why = why.trim_end().trim_start_matches("agewell-fs: error: ");
    let error = if code == 2 { CommandError::input } else { CommandError::failed };
    Err(error(if why.is_empty() { "mount: the server ended without a word" } else { why }))
}

fn serve(path: &Path, point: &Path, wanted: &Wanted, says_ready: bool) -> Result<(), CommandError> {
    let is_protected = FileDisk::is_write_protected(path);
    if is_protected && !wanted.is_read_only {
        let why = "is write-protected: -o ro mounts it without writing to it";
        return Err(CommandError::input(format!("{}: {why}", path.display())));
    }
    let mut disk = super::opened(path, wanted.file, is_protected)?;
    if let Some(device) = &wanted.timed_as {
        let parameters = DeviceParameters::load(device).map_err(CommandError::input)?;
        disk = Box::new(ModelledDisk::over(&parameters, disk));
    }
    serve_from(disk, &Place { path, point, is_protected }, wanted, says_ready)
}

/// What is mounted, and where.
struct Place<'a> {
    path: &'a Path,
    point: &'a Path,
    /// Nobody can write to it.
    is_protected: bool,
}

fn serve_from(
    disk: Box<dyn Disk>,
    place: &Place<'_>,
    wanted: &Wanted,
    says_ready: bool,
) -> Result<(), CommandError> {
    let path = place.path.display();
    let failed = |error: &dyn Display| CommandError::failed(format!("{path}: {error}"));
    let opened = OpenOptions {
        means: wanted.means,
        placement: wanted.placement,
        collected_logs: wanted.collected_logs,
        begins_by: None,
        learns_prices: wanted.prices.is_none(),
        prices: wanted.prices.unwrap_or(OpenOptions::default().prices),
        rotational_delay_ns: wanted.rotational_delay_ns.map(|(delay_ns, _)| delay_ns),
        lost_turn_ns: wanted.rotational_delay_ns.map_or(0, |(_, turn_ns)| turn_ns),
    };
    let store = Arc::new(Store::open(disk, &opened).map_err(|error| failed(&error))?);
    let file_system =
        FileSystem::open(Arc::clone(&store), &wanted.cache).map_err(|error| failed(&error))?;
    let mut mounted = Mounted::new(file_system, wanted.means).map_err(|error| failed(&error))?;
    mounted.lies_on(place.path);
    if !place.is_protected {
        mounted.make_room(wanted.collector).map_err(|error| failed(&error))?;
    }
    if let Some(observe_bytes) = wanted.observe_bytes.filter(|_| !wanted.is_read_only) {
        let started = mounted.regroup(observe_bytes, opened.prices);
        started.map_err(|error| failed(&error))?;
    }
    let connection = connect(place, wanted, store.geometry().block_bytes)?;
    if says_ready {
        let mut out = std::io::stdout();
        let _ = writeln!(out, "{READY}").and_then(|()| out.flush());
        // Its terminal is not ours.
        let _ = rustix::process::setsid();
    }
    let ended = Session::new(connection, wanted.session).run(&mounted);
    drop(mounted);
    ended.map_err(|error| failed(&error))
}

/// Mounts, as something of which the kernel hands on `sync` and for which `umount` waits, if that can be.
fn connect(place: &Place<'_>, wanted: &Wanted, block_size: u32) -> Result<OwnedFd, CommandError> {
    let Place { path, point, is_protected } = *place;
    let is_device = std::fs::metadata(path)
        .is_ok_and(|found| std::os::unix::fs::FileTypeExt::is_block_device(&found.file_type()));
    // A block device is ours already, and the kernel would want it too. What is write-protected needs one all
    // the same: by it the kernel knows that it cannot be mounted for writing later.
    let takes_loop = !(wanted.is_plain || is_device) || is_protected;
    let image = (takes_loop && rustix::process::geteuid().is_root())
        .then(|| LoopDevice::attach(path, wanted.is_read_only));
    let image = match image {
        Some(Err(error)) if is_protected => return Err(CommandError::failed(error)),
        image => image.and_then(Result::ok),
    };
    let kind = match image {
        Some(_) => MountKind::Block { block_size: block_size.min(4096) },
        None => MountKind::Plain,
    };
    let source = image.as_ref().map_or(path, LoopDevice::path);
    let options = agewell_fuse::mount::MountOptions {
        source: source.as_os_str().to_owned(),
        kind,
        read_only: wanted.is_read_only,
        allow_other: wanted.allow_other,
        without: wanted.without,
    };
    agewell_fuse::mount::mount(point, &options).map_err(CommandError::failed)
}

/// `unmount DIRECTORY`: takes a mount away, and returns when everything is on the medium.
pub(super) fn unmount(mut words: Words) -> Result<(), CommandError> {
    let mut flags = UnmountFlags::empty();
    while let Some(option) = words.option() {
        match option.as_str() {
            "-l" => flags |= UnmountFlags::DETACH,
            "-f" => flags |= UnmountFlags::FORCE,
            "-n" | "-v" | "-r" => {}
            "-t" => drop(words.value(&option)?),
            option => return Err(unknown(option)),
        }
    }
    let [point]: [PathBuf; 1] = words.exactly("a directory")?;
    let server = server_of(&point);
    agewell_fuse::mount::unmount(&point, flags).map_err(CommandError::failed)?;
    if let Some(server) = server.filter(|_| !flags.contains(UnmountFlags::DETACH)) {
        // The kernel does not wait for those that stand for no device.
        let _ = poll(&mut [PollFd::new(&server, PollFlags::IN)], None);
    }
    Ok(())
}

/// The process that serves the mount at `point`, if there is one: it says so itself.
fn server_of(point: &Path) -> Option<OwnedFd> {
    let mut value = vec![0; STATUS_BYTES_MAX];
    let length = rustix::fs::getxattr(point, STATUS, &mut value[..]).ok()?;
    let status: serde_json::Value = serde_json::from_slice(&value[..length]).ok()?;
    let process = i32::try_from(status["process"].as_u64()?).ok()?;
    pidfd_open(Pid::from_raw(process)?, PidfdFlags::empty()).ok()
}
