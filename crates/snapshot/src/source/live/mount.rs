//! How a file system is mounted, from `/proc/self/mountinfo`.
//!
//! Source: Linux `Documentation/filesystems/proc.rst`, section 3.5.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::status::Status;

/// A line of `/proc/self/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    /// `ext4`, `xfs`, `fuse.sshfs`, ...
    pub(super) kind: String,
    /// Which directory of the file system is mounted.
    root: Vec<u8>,
    /// Where.
    point: Vec<u8>,
    /// What the mount was given to mount; a block device or any other text.
    source: PathBuf,
    /// Device numbers of the file system, which on btrfs are not those of its files.
    device: (u32, u32),
    /// Options of the file system, split by commas.
    options: Vec<u8>,
}

/// Text with its octal escapes (`\040` is a space) resolved.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, behind @ ..] = rest {
        let digits = behind.get(..3).filter(|_| *first == b'\\');
        let code = digits.and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 8).ok()
        });
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &behind[3..] } else { behind };
    }
    bytes
}

impl Mount {
    /// The mount through which the file with `status` was reached, if the kernel reports it.
    pub(super) fn of(status: &Status) -> Option<Self> {
        let text = std::fs::read("/proc/self/mountinfo").ok()?;
        text.split(|&byte| byte == b'\n').find_map(|line| Self::parse(line, status))
    }

    fn parse(line: &[u8], status: &Status) -> Option<Self> {
        let mut fields = line.split(|&byte| byte == b' ');
        let number = |field: &[u8]| std::str::from_utf8(field).ok()?.parse::<u64>().ok();
        let identity = number(fields.next()?)?;
        let _parent = fields.next()?;
        let device = std::str::from_utf8(fields.next()?).ok()?;
        let (major, minor) = device.split_once(':')?;
        let device = (major.parse().ok()?, minor.parse().ok()?);
        let found =
            if status.mount != 0 { identity == status.mount } else { device == status.device };
        if !found {
            return None;
        }
        let root = unescaped(fields.next()?);
        let point = unescaped(fields.next()?);
        // Mount options and optional fields, up to a dash.
        let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
        let kind = String::from_utf8(unescaped(fields.next()?)).ok()?;
        let source = PathBuf::from(OsString::from_vec(unescaped(fields.next()?)));
        let options = fields.next().unwrap_or_default().to_vec();
        Some(Self { kind, root, point, source, device, options })
    }

    /// Whether `path` is the top of the file system, not a part of it.
    pub(super) fn is_whole(&self, path: &Path) -> bool {
        use std::os::unix::ffi::OsStrExt;
        let real = std::fs::canonicalize(path);
        self.root == b"/" && real.is_ok_and(|real| real.as_os_str().as_bytes() == self.point)
    }

    /// The block device below the file system, open for reading, if there is one and that is
    /// allowed.
    pub(super) fn open_device(&self) -> Option<File> {
        use std::os::unix::fs::{FileTypeExt, MetadataExt};
        let (major, minor) = self.device;
        let event = format!("/sys/dev/block/{major}:{minor}/uevent");
        let named = std::fs::read_to_string(event).ok().and_then(|text| {
            let name = text.lines().find_map(|line| line.strip_prefix("DEVNAME="))?;
            Some(Path::new("/dev").join(name))
        });
        let wanted = rustix::fs::makedev(major, minor);
        let mut paths = named.into_iter().chain([self.source.clone()]);
        paths.find_map(|path| {
            let file = File::open(path).ok()?;
            let metadata = file.metadata().ok()?;
            let right = metadata.file_type().is_block_device() && metadata.rdev() == wanted;
            right.then_some(file)
        })
    }

    /// Whether times of files may wait in memory only.
    pub(super) fn keeps_times_back(&self) -> bool {
        self.options.split(|&byte| byte == b',').any(|option| option == b"lazytime")
    }

    /// Device numbers of the file system.
    pub(super) fn device(&self) -> (u32, u32) {
        self.device
    }
}

/// Where other file systems are mounted below `path`, as far as the kernel reports.
#[must_use]
pub fn mounts_below(path: &Path) -> Vec<PathBuf> {
    let (Ok(real), Ok(text)) = (std::fs::canonicalize(path), std::fs::read("/proc/self/mountinfo"))
    else {
        return Vec::new();
    };
    let points = text.split(|&byte| byte == b'\n').filter_map(|line| {
        let point = line.split(|&byte| byte == b' ').nth(4)?;
        Some(PathBuf::from(OsString::from_vec(unescaped(point))))
    });
    points.filter(|point| *point != real && point.starts_with(&real)).collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use super::{Mount, unescaped};
    use crate::source::live::status::Status;

    fn status_of_root() -> Status {
        let root = rustix::fs::CWD;
        let name = CString::new("/").expect("no zero within");
        Status::of_entry(root, &name).expect("the root directory is there")
    }

    /// A line with optional fields and escapes is read; one of another mount is passed over.
    #[test]
    fn a_line() {
        let line = br"36 35 98:0 /mnt1 /mnt\0402 rw,noatime master:1 - ext4 /dev/ro\134ot rw";
        let status = Status { mount: 36, ..status_of_root() };
        let mount = Mount::parse(line, &status).expect("the mount asked for");
        assert_eq!(mount.kind, "ext4");
        assert_eq!(mount.root, b"/mnt1");
        assert_eq!(mount.point, b"/mnt 2");
        assert_eq!(mount.source.to_str(), Some(r"/dev/ro\ot"));
        assert_eq!(mount.device, (98, 0));
        assert!(!mount.keeps_times_back());
        let lazy = [&line[..], b",lazytime"].concat();
        assert!(Mount::parse(&lazy, &status).is_some_and(|mount| mount.keeps_times_back()));
        assert_eq!(Mount::parse(line, &Status { mount: 37, ..status }), None);
    }

    /// Cut lines and escapes are no panic.
    #[test]
    fn mangled_lines() {
        let line = br"36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext4 /dev/root rw";
        let status = Status { mount: 36, ..status_of_root() };
        for end in 0..line.len() {
            let _ = Mount::parse(&line[..end], &status);
        }
        assert_eq!(unescaped(br"\04"), br"\04");
        assert_eq!(unescaped(br"\999a\040"), br"\999a ");
    }

    /// The mount of a file that is there is found.
    #[test]
    fn the_root_is_mounted() {
        let mount = Mount::of(&status_of_root()).expect("every system has a root mount");
        assert_eq!(mount.point, b"/");
    }
}
