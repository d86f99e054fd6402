//! Mounts a file system in memory, in the foreground, until it is unmounted:
//! `memory [--threads N] [--capacity-mib N] [--sync-ms N] [--block DEVICE-OR-IMAGE] DIRECTORY`.
//!
//! It does the least that a file system in user space can do for a request, so what it reaches is the
//! most that another may (`docs/internals/fuse.md`).

#![allow(clippy::print_stderr, clippy::exit, reason = "it is a command")]

mod contents;
mod in_memory;
mod tree;

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agewell_fuse::mount::{self, LoopDevice, MountKind, MountOptions};
use agewell_fuse::{Options, Session};
use in_memory::{Behaviour, InMemory};
use rustix::mount::MountFlags;

struct Arguments {
    options: Options,
    behaviour: Behaviour,
    block: Option<PathBuf>,
    point: PathBuf,
}

fn arguments() -> Option<Arguments> {
    let mut options = Options::default();
    let mut behaviour =
        Behaviour { capacity: 4 << 30, sync_takes: Duration::ZERO, loses_replies: false };
    let mut block = None;
    let mut given = std::env::args_os().skip(1);
    loop {
        let word = given.next()?;
        let mut number =
            || given.next().and_then(|text: OsString| text.to_str()?.parse::<u64>().ok());
        match word.to_str() {
            Some("--threads") => {
                options.threads = number().filter(|&threads| threads > 0)? as usize;
            }
            Some("--capacity-mib") => behaviour.capacity = number()? << 20,
            Some("--sync-ms") => behaviour.sync_takes = Duration::from_millis(number()?),
            Some("--block") => block = Some(PathBuf::from(given.next()?)),
            _ => return Some(Arguments { options, behaviour, block, point: word.into() }),
        }
    }
}

fn serve(with: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let is_device = |path: &Path| path.starts_with("/dev");
    let attached = match &with.block {
        Some(path) if !is_device(path) => Some(LoopDevice::attach(path, false)?),
        _ => None,
    };
    let device = attached.as_ref().map(|attached| attached.path().to_owned());
    let device = device.or_else(|| with.block.clone());
    let kind = match device {
        Some(_) => MountKind::Block { block_size: 4096 },
        None => MountKind::Plain,
    };
    let options = MountOptions {
        source: device.map_or_else(|| "memory".into(), OsString::from),
        kind,
        read_only: false,
        // What others may not use by default only root may give them.
        allow_other: std::fs::metadata("/proc/self")?.uid() == 0,
        without: MountFlags::empty(),
    };
    let connection = mount::mount(&with.point, &options)?;
    drop(attached);
    Session::new(connection, with.options).run(&InMemory::new(with.behaviour))?;
    Ok(())
}

fn main() {
    let Some(arguments) = arguments() else {
        eprintln!(
            "usage: memory [--threads N] [--capacity-mib N] [--sync-ms N] [--block DEVICE] DIRECTORY"
        );
        std::process::exit(2);
    };
    if let Err(error) = serve(&arguments) {
        eprintln!("memory: error: {error}");
        std::process::exit(1);
    }
}
