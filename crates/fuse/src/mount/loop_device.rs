//! A block device that stands for an image in a file.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::MountError;

/// A loop device over an image. When this is dropped the device goes, as soon as nothing is mounted from
/// it.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
}

impl LoopDevice {
    /// Attaches one, by `losetup` of util-linux, which needs root.
    ///
    /// # Errors
    ///
    /// [`MountError::Program`] with what `losetup` says.
    pub fn attach(image: &Path, read_only: bool) -> Result<Self, MountError> {
        let mut command = Command::new("losetup");
        command.args(["--find", "--show"]);
        if read_only {
            command.arg("--read-only");
        }
        let failed = |message| MountError::Program { program: "losetup", message };
        let output =
            command.arg("--").arg(image).output().map_err(|error| failed(error.to_string()))?;
        if !output.status.success() {
            return Err(failed(super::by_helper::first_line(&output.stderr)));
        }
        Ok(Self { path: PathBuf::from(String::from_utf8_lossy(&output.stdout).trim_end()) })
    }

    /// The device.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // One that is mounted is detached by the kernel at the end of the mount.
        let _ = Command::new("losetup").arg("--detach").arg(&self.path).output();
    }
}
