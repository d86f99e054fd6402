//! Hashes the sources that results are computed from, so that a result and the folder it is kept
//! in can say which build made them: the version stays the same through many builds.
//!
//! Hashed are, in the order of their paths, every file below `src` and the manifest of this crate
//! and of the crates that it depends on, and the workspace's manifest and lock file, which fix the
//! outside crates. Neither the compiler nor the machine counts: the same sources give the same
//! numbers everywhere, and so the same hash. Tests, benchmarks and documentation do not count
//! either.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Characters of the hash that are kept: 64 bits, so that no two builds share one by chance.
const KEPT: usize = 16;

fn main() -> io::Result<()> {
    let this = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let crates = this.parent().expect("the crates lie side by side").to_owned();
    let root = crates.parent().expect("the crates lie in a folder of the workspace").to_owned();

    let mut files = BTreeSet::new();
    for name in local_crates(&crates, "py")? {
        let folder = crates.join(name);
        println!("cargo::rerun-if-changed={}", folder.join("src").display());
        gather(&folder.join("src"), &mut files)?;
        files.insert(folder.join("Cargo.toml"));
    }
    files.insert(root.join("Cargo.toml"));
    // A packaged source tree may come without one.
    files.extend(Some(root.join("Cargo.lock")).filter(|lock| lock.is_file()));

    let mut hasher = Sha256::new();
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
        let name = file.strip_prefix(&root).expect("every file is below the root");
        let bytes = fs::read(file)?;
        hasher.update(name.to_string_lossy().as_bytes());
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    }
    let mut text = String::new();
    for byte in hasher.finalize() {
        write!(text, "{byte:02x}").expect("a string takes any text");
    }
    println!("cargo::rustc-env=AGEWELL_BUILD={}", &text[..KEPT]);
    Ok(())
}

/// The crates of this workspace that `first` is built from, itself among them, by their folders.
fn local_crates(crates: &Path, first: &str) -> io::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![first.to_owned()];
    while let Some(name) = waiting.pop() {
        if !found.insert(name.clone()) {
            continue;
        }
        let manifest = fs::read_to_string(crates.join(&name).join("Cargo.toml"))?;
        let mut is_built_from = false;
        for line in manifest.lines() {
            if line.starts_with('[') {
                // Those of one system only count on all, so that a build is called the same everywhere.
                is_built_from = line == "[dependencies]"
                    || line.starts_with("[target.") && line.ends_with(".dependencies]");
            } else if !is_built_from {
                continue;
            }
            let dependency = line.split(['=', ' ', '.']).next().unwrap_or_default();
            waiting.extend(dependency.strip_prefix("agewell-").map(str::to_owned));
        }
    }
    Ok(found)
}

/// Every file below `folder`.
fn gather(folder: &Path, files: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            gather(&entry.path(), files)?;
        } else {
            files.insert(entry.path());
        }
    }
    Ok(())
}
