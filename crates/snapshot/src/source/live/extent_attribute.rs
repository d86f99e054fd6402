//! Where the bytes of one file lie, and what is free, by extended attributes: what mounts of agewell have in
//! the place of FIEMAP and GETFSMAP, which the kernel does not hand on to file systems in user space.
//!
//! `agewell.extents.N` is the extents from byte N of the file on, as many as there is room for, 32 bytes
//! each: logical, physical and length in bytes, and the flags of FIEMAP. `agewell.free.N` is what is free of
//! the device from byte N of it on, 16 bytes each: first byte and length; nothing if there is no more.

use rustix::fd::AsFd;
use rustix::io::Result;

use super::kernel::MappedExtent;
use crate::FreeExtent;

/// Bytes of an attribute at most (`XATTR_SIZE_MAX` of Linux).
const ATTRIBUTE_BYTES_MAX: usize = 65_536;
const EXTENT_BYTES: usize = 32;
const FREE_BYTES: usize = 16;

/// What an attribute is read into.
pub(super) struct AttributeBuffer(Vec<u8>);

impl AttributeBuffer {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    /// The extents of `file` from byte `start` on.
    pub(super) fn fill(&mut self, file: impl AsFd, start: u64) -> Result<Vec<MappedExtent>> {
        self.0.resize(ATTRIBUTE_BYTES_MAX, 0);
        let name = format!("agewell.extents.{start}");
        let length = rustix::fs::fgetxattr(file, name, &mut self.0[..])?;
        Ok(decode(&self.0[..length]))
    }
}

/// What is free of the device below the file system of `file`.
pub(super) fn free(file: impl AsFd) -> Result<Vec<FreeExtent>> {
    let mut buffer = vec![0; ATTRIBUTE_BYTES_MAX];
    let (mut found, mut from) = (Vec::<FreeExtent>::new(), 0);
    loop {
        let name = format!("agewell.free.{from}");
        let length = rustix::fs::fgetxattr(&file, name, &mut buffer[..])?;
        let before = found.len();
        for piece in buffer[..length].as_chunks::<FREE_BYTES>().0 {
            let [physical_bytes, length_bytes] = [0, 8]
                .map(|at| u64::from_le_bytes(piece[at..at + 8].try_into().expect("eight bytes")));
            // What goes backwards would be asked for without end.
            if physical_bytes >= from && length_bytes > 0 {
                from = physical_bytes.saturating_add(1);
                found.push(FreeExtent { physical_bytes, length_bytes });
            }
        }
        if found.len() == before {
            return Ok(found);
        }
    }
}

fn decode(bytes: &[u8]) -> Vec<MappedExtent> {
    let extents = bytes.chunks_exact(EXTENT_BYTES).map(|extent| {
        let word = |at: usize| {
            u64::from_le_bytes(extent[at * 8..at * 8 + 8].try_into().expect("eight bytes"))
        };
        MappedExtent {
            logical_bytes: word(0),
            physical_bytes: word(1),
            length_bytes: word(2),
            flags: word(3) as u32,
        }
    });
    extents.collect()
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn extents_are_of_32_bytes() {
        let bytes: Vec<u8> = (0..100).collect();
        let found = decode(&bytes);
        assert_eq!(found.len(), 3);
        assert_eq!(found[1].logical_bytes, u64::from_le_bytes([32, 33, 34, 35, 36, 37, 38, 39]));
        assert_eq!(found[2].flags, u32::from_le_bytes([88, 89, 90, 91]));
    }
}
