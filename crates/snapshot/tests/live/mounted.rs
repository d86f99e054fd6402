//! File systems on loop devices, with files that age them, always unmounted again.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use agewell_core::RandomStreams;
use rand_core::Rng;

/// How often a file system is asked to unmount, and how long it is given in between.
const UNMOUNT_TRIES: u32 = 20;
const UNMOUNT_PAUSE: Duration = Duration::from_millis(100);

/// An image, mounted below a temporary directory.
pub(crate) struct Mounted {
    directory: tempfile::TempDir,
    mounted: bool,
}

/// Runs a command and gives what it prints; `None` if it cannot be run or fails.
pub(crate) fn output(program: &str, arguments: &[&OsStr]) -> Option<String> {
    let done = Command::new(program).args(arguments).stderr(Stdio::null()).output().ok()?;
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).into_owned())
}

fn succeeds(program: &str, arguments: &[&OsStr]) -> bool {
    output(program, arguments).is_some()
}

impl Mounted {
    /// Makes a file system of `kind` in `mebibytes` and mounts it; says why where it cannot.
    pub(crate) fn new(kind: &str, mebibytes: u64, mkfs: &[&str]) -> Option<Self> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut this = Self { directory, mounted: false };
        let image = File::create(this.image()).expect("an image file");
        image.set_len(mebibytes << 20).expect("a sparse file of that length");
        let program = format!("mkfs.{kind}");
        let image = this.image();
        let mut arguments: Vec<&OsStr> = mkfs.iter().map(OsStr::new).collect();
        arguments.extend([OsStr::new("-q"), image.as_os_str()]);
        if !succeeds(&program, &arguments) {
            println!("skipped: {program} is missing or fails here");
            return None;
        }
        fs::create_dir(this.top()).expect("a mount point");
        if !this.mount("rw") {
            println!("skipped: {kind} cannot be mounted from a loop device here (root is needed)");
            return None;
        }
        Some(this)
    }

    pub(crate) fn image(&self) -> PathBuf {
        self.directory.path().join("image")
    }

    pub(crate) fn top(&self) -> PathBuf {
        self.directory.path().join("top")
    }

    /// A name for a file beside the image.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn mount(&mut self, options: &str) -> bool {
        let options = format!("loop,{options}");
        let (image, top) = (self.image(), self.top());
        let arguments = [OsStr::new("-o"), OsStr::new(&options), image.as_ref(), top.as_ref()];
        self.mounted = succeeds("mount", &arguments);
        self.mounted
    }

    pub(crate) fn unmount(&mut self) {
        // A process that another test begins at this moment holds what is open here until it has
        // become another program; nobody else uses the mount.
        let unmounted = (0..UNMOUNT_TRIES).any(|_| {
            let done = succeeds("umount", &[self.top().as_ref()]);
            if !done {
                std::thread::sleep(UNMOUNT_PAUSE);
            }
            done
        });
        assert!(unmounted, "{} stays in use", self.top().display());
        self.mounted = false;
    }

    /// The loop device below the mount.
    pub(crate) fn device(&self) -> String {
        let told = output("findmnt", &["-no".as_ref(), "SOURCE".as_ref(), self.top().as_ref()]);
        told.expect("findmnt comes with mount").trim().to_owned()
    }

    /// Everything that was written is on the device.
    pub(crate) fn sync(&self) {
        assert!(succeeds("sync", &["-f".as_ref(), self.top().as_ref()]));
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.mounted {
            // Lazily, so that a failing test with a file open leaves no mount behind either.
            succeeds("umount", &["-l".as_ref(), self.top().as_ref()]);
        }
    }
}

/// Bytes that identify their file and their place, so that any block can be recognised.
fn content(file: u64, bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|at| ((at / 512).wrapping_mul(31) ^ at ^ (file * 7)) as u8 | 1).collect()
}

fn append(path: &Path, seed: u64, bytes: usize) {
    let mut file = OpenOptions::new().append(true).create(true).open(path).expect("a file");
    file.write_all(&content(seed, bytes)).expect("there is room");
}

/// Makes `count` files in a few directories, fragments an eighth of them by appends in turn, and
/// breaks the free space up by deleting a third; then one of each kind that is special.
pub(crate) fn age(mounted: &Mounted, count: u64) {
    let top = mounted.top();
    let mut random = RandomStreams::new(1).stream("aged-tree");
    let path = |file: u64| top.join(format!("d{}", file % 7)).join(format!("f{file}"));
    for directory in 0..7 {
        fs::create_dir(top.join(format!("d{directory}"))).expect("a directory");
    }
    for file in 0..count {
        append(&path(file), file, (random.next_u64() % 40_000) as usize);
    }
    for file in (0..count).filter(|file| file % 3 == 0) {
        fs::remove_file(path(file)).expect("it was made");
    }
    for round in 0..4 {
        for file in (0..count).filter(|file| file % 8 == 1 && file % 3 != 0) {
            append(&path(file), file + round, 3000 + 5000 * round as usize);
        }
        mounted.sync();
    }
    special(&top);
    mounted.sync();
}

fn special(top: &Path) {
    let nest = top.join("nest/in/nest");
    fs::create_dir_all(&nest).expect("directories");
    let mut holes = File::create(nest.join("holes")).expect("a file");
    for piece in 0..20_u64 {
        holes.seek(SeekFrom::Start(piece * 3 * 65_536)).expect("a file can be sought in");
        holes.write_all(&content(piece, 65_536)).expect("there is room");
    }
    let empty = File::create(top.join("unwritten")).expect("a file");
    match rustix::fs::fallocate(&empty, rustix::fs::FallocateFlags::empty(), 0, 1 << 20) {
        // File systems without extents cannot.
        Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => {}
        Err(why) => panic!("there is room: {why}"),
    }
    fs::hard_link(nest.join("holes"), top.join("another name")).expect("a link");
    symlink("nest/in", top.join("link")).expect("a link");
    fs::write(top.join("small"), b"fits in an inode").expect("a file");
    fs::write(top.join("none"), b"").expect("a file");
    fs::write(top.join(OsStr::from_bytes(b"no utf-8 \xff\xfe")), b"bytes").expect("a file");
    // Where the file system can: data that two files share, and compressed data.
    let (whole, twin) = (nest.join("holes"), top.join("twin"));
    succeeds("cp", &["--reflink=always".as_ref(), whole.as_ref(), twin.as_ref()]);
    let compressed = top.join("compressed");
    fs::write(&compressed, b"").expect("there is room");
    let arguments =
        ["property".as_ref(), "set".as_ref(), compressed.as_os_str(), "compression".as_ref()];
    succeeds("btrfs", &[&arguments[..], &["zstd".as_ref()]].concat());
    fs::write(&compressed, vec![7; 1 << 20]).expect("there is room");
    assert!(succeeds("mkfifo", &[top.join("pipe").as_ref()]), "coreutils has mkfifo");
}
