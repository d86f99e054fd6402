//! `make PATH [--size SIZE] [--sparse] [--force] [--label TEXT] [--block-bytes N] [--segment-blocks N]`: an
//! empty file system.

use agewell_core::parse_bytes;
use agewell_fs::{Caller, FileSystem, MakeOptions};
use agewell_store::{FormatOptions, MakeAt, MakeError, OpenOptions, Store};
use rustix::rand::{GetRandomFlags, getrandom};

use super::words::{CommandError, Words, unknown};
use crate::mounted::now;

pub(super) fn run(mut words: Words) -> Result<(), CommandError> {
    let (mut size_bytes, mut is_sparse, mut replaces) = (None, false, false);
    let mut options = FormatOptions::new(random()?);
    let mut label = [0; 32];
    while let Some(option) = words.option() {
        match option.as_str() {
            "--size" => {
                let size = words.value(&option)?;
                let size = parse_bytes(&size)
                    .map_err(|why| CommandError::input(format!("--size {size}: {why}")))?;
                size_bytes = Some(size);
            }
            "--sparse" => is_sparse = true,
            "--force" => replaces = true,
            "--block-bytes" => options.block_bytes = words.number(&option)?,
            "--segment-blocks" => options.segment_blocks = words.number(&option)?,
            "--label" => {
                let text = words.value(&option)?;
                let into = label
                    .get_mut(..text.len())
                    .ok_or_else(|| CommandError::input("a label has at most 32 bytes"))?;
                into.copy_from_slice(text.as_bytes());
            }
            option => return Err(unknown(option)),
        }
    }
    let [path] = words.exactly("the path of a file or block device")?;
    let at = MakeAt { path: &path, size_bytes, is_sparse, replaces };
    let disk = agewell_store::make(&at, &options).map_err(|error| match error {
        MakeError::Store { .. } => CommandError::failed(error),
        error => CommandError::input(error),
    })?;
    let failed = |error: &dyn std::fmt::Display| {
        CommandError::failed(format!("{}: {error}", path.display()))
    };
    let store = Store::open(disk, &OpenOptions::default()).map_err(|error| failed(&error))?;
    let seed = u128::from_le_bytes(random()?) as u64;
    let user = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let caller = Caller { uid: user.0, gid: user.1, mask: 0, now: now() };
    FileSystem::make(&store, &MakeOptions { caller, seed, label })
        .map_err(|error| failed(&error))?;
    store.close().map_err(|error| failed(&error))?;
    Ok(())
}

/// What nobody knows beforehand.
fn random() -> Result<[u8; 16], CommandError> {
    let mut bytes = [0; 16];
    getrandom(&mut bytes, GetRandomFlags::empty())
        .map_err(|error| CommandError::failed(format!("no random numbers: {error}")))?;
    Ok(bytes)
}
