//! Copying out all that is intact, whatever else is damaged.

use std::io;

use agewell_store::Store;
use agewell_store::device::Disk;
use rustix::fs::FileType;

use super::{CheckOptions, Found, look, walk};
use crate::attributes::{PART_BITS, part_name};
use crate::format::{Entry, Extent, ExtentState, Inode, Kind, ROOT_INODE, offset_of};
use crate::inodes::attributes_in;
use crate::{Attributes, FsError};

/// Where what is salvaged goes. Paths begin with `/`, and have neither `.` nor `..`; a file may come before the
/// directory that it lies in. What has no path any more lies in `/lost+found`.
///
/// An error ends it.
pub trait Salvage {
    /// There is a file of any type.
    ///
    /// # Errors
    /// If it cannot be kept.
    fn file(&mut self, path: &[u8], attributes: &Attributes) -> io::Result<()>;
    /// The file at `path`, which was told or will be, has this name too.
    ///
    /// # Errors
    /// If it cannot be kept.
    fn name(&mut self, name: &[u8], path: &[u8]) -> io::Result<()>;
    /// What is in a file from `offset` on. What is not told is zeros.
    ///
    /// # Errors
    /// If it cannot be kept.
    fn data(&mut self, path: &[u8], offset: u64, data: &[u8]) -> io::Result<()>;
    /// Where a symbolic link leads.
    ///
    /// # Errors
    /// If it cannot be kept.
    fn target(&mut self, path: &[u8], target: &[u8]) -> io::Result<()>;
    /// An extended attribute.
    ///
    /// # Errors
    /// If it cannot be kept.
    fn attribute(&mut self, path: &[u8], name: &[u8], value: &[u8]) -> io::Result<()>;
    /// So many bytes of a file from `offset` on are lost.
    ///
    /// # Errors
    /// If that cannot be noted.
    fn lost(&mut self, path: &[u8], offset: u64, bytes: u64) -> io::Result<()>;
}

/// What was salvaged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// Files of any type.
    pub files: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Bytes that are lost, of files that are known.
    pub lost_bytes: u64,
}

/// The file whose items come.
struct Current {
    number: u64,
    inode: Inode,
    path: Vec<u8>,
    target: Vec<u8>,
    /// An extended attribute of which parts are to come: name, value so far, bytes in all.
    attribute: Option<(Vec<u8>, Vec<u8>, usize)>,
}

struct Copy<'a, D, S> {
    store: &'a Store<D>,
    known: &'a Found,
    to: &'a mut S,
    salvaged: Salvaged,
    current: Option<Current>,
    error: Option<io::Error>,
}

/// Hands all that is intact of the file system in `store` to `to`.
///
/// # Errors
/// If the store itself fails, or `to` does.
pub fn salvage<D: Disk>(
    store: &Store<D>,
    to: &mut impl Salvage,
) -> Result<Result<Salvaged, io::Error>, FsError> {
    let known = look(store, CheckOptions::default())?;
    let mut again = Found::new(store);
    again.journaled.clone_from(&known.journaled);
    again.unfit.clone_from(&known.unfit);
    let salvaged = Salvaged::default();
    let mut copy = Copy { store, known: &known, to, salvaged, current: None, error: None };
    walk::walk(store, &mut again, |_, key, value| {
        let (object, kind, offset) = ((key >> 72) as u64, (key >> 64) as u8, offset_of(key));
        if copy.error.is_none()
            && let Err(error) = copy.item(object, kind, offset, value)
        {
            copy.error = Some(error);
        }
    })?;
    let ended = copy.end();
    Ok(match copy.error {
        Some(error) => Err(error),
        None => ended.map(|()| copy.salvaged),
    })
}

impl<D: Disk, S: Salvage> Copy<'_, D, S> {
    /// A path of a file, in `/lost+found` if it has no name.
    fn path(&self, number: u64) -> Vec<u8> {
        let found = self.known.path(number);
        found.unwrap_or_else(|| format!("/lost+found/#{number}").into_bytes())
    }

    /// All items of a file have come.
    fn end(&mut self) -> io::Result<()> {
        self.end_attribute()?;
        let Some(current) = self.current.take() else { return Ok(()) };
        let is_link = current.inode.file_type() == FileType::Symlink;
        if is_link && current.target.len() as u64 == current.inode.size {
            self.to.target(&current.path, &current.target)?;
        }
        Ok(())
    }

    fn end_attribute(&mut self) -> io::Result<()> {
        let Some(current) = &mut self.current else { return Ok(()) };
        match current.attribute.take() {
            Some((name, value, length)) if value.len() == length => {
                self.to.attribute(&current.path, &name, &value)
            }
            _ => Ok(()),
        }
    }

    fn item(&mut self, object: u64, kind: u8, offset: u64, value: &[u8]) -> io::Result<()> {
        if self.current.as_ref().is_some_and(|current| current.number != object) {
            self.end()?;
        }
        if kind == Kind::Entry as u8 && object > 0 {
            return self.entry(object, offset, value);
        }
        if object == 0 {
            return Ok(());
        }
        if kind == Kind::Inode as u8 {
            let Some(inode) = Inode::decode(value).filter(|_| offset == 0) else { return Ok(()) };
            // What was removed and is only open still is not looked for.
            let is_orphan = self.known.known.get(&object).is_some_and(|known| known.is_orphan);
            if is_orphan && inode.links == 0 && object != ROOT_INODE {
                return Ok(());
            }
            let path = self.path(object);
            let block_bytes = u64::from(self.store.geometry().block_bytes);
            self.to.file(&path, &attributes_in(block_bytes, object, &inode))?;
            self.salvaged.files += 1;
            let (target, attribute) = (Vec::new(), None);
            self.current = Some(Current { number: object, inode, path, target, attribute });
            return Ok(());
        }
        let Some(current) = &mut self.current else { return Ok(()) };
        if kind == Kind::Attribute as u8 {
            if offset & ((1 << PART_BITS) - 1) == 0 {
                self.end_attribute()?;
                let Some(current) = &mut self.current else { return Ok(()) };
                current.attribute = part_name(value).map(|(name, length)| {
                    let skipped = 5 + name.len();
                    (name.to_vec(), value[skipped..].to_vec(), length)
                });
            } else if let Some((_, so_far, length)) = &mut current.attribute
                && so_far.len() < *length
            {
                so_far.extend(value);
            }
        } else if kind == Kind::Content as u8 && current.inode.is_file() && offset == 0 {
            let bytes = value.len().min(current.inode.size.min(1 << 20) as usize);
            self.salvaged.bytes += bytes as u64;
            self.to.data(&current.path, 0, &value[..bytes])?;
        } else if kind == Kind::Content as u8 {
            current.target.extend(value);
        } else if kind == Kind::Extent as u8 && current.inode.is_file() {
            return self.extent(offset, value);
        }
        Ok(())
    }

    /// A name of a file that is not the one by which it is known.
    fn entry(&mut self, directory: u64, entry: u64, value: &[u8]) -> io::Result<()> {
        let Some((inode, file_type, name)) = Entry::view(value) else { return Ok(()) };
        let place = self.known.known.get(&inode).and_then(|known| known.place.as_ref());
        let is_place = place.is_none_or(|place| (place.0, place.1) == (directory, entry));
        if is_place || file_type == FileType::Directory {
            return Ok(());
        }
        let mut path = self.path(directory);
        if directory != ROOT_INODE {
            path.push(b'/');
        }
        path.extend(name);
        let known = self.path(inode);
        self.to.name(&path, &known)
    }

    /// Reads the blocks of an extent, those that can be read.
    fn extent(&mut self, at: u64, value: &[u8]) -> io::Result<()> {
        let block_bytes = self.store.geometry().block_bytes as usize;
        let Some(extent) = Extent::decode(at, value) else { return Ok(()) };
        let Some(current) = &self.current else { return Ok(()) };
        if extent.state == ExtentState::Promised {
            return Ok(());
        }
        let mut data = vec![0; block_bytes];
        for block in 0..extent.count {
            let offset = (extent.at + u64::from(block)).saturating_mul(block_bytes as u64);
            let bytes = current.inode.size.saturating_sub(offset).min(block_bytes as u64);
            if bytes == 0 {
                return Ok(());
            }
            let number = extent.number + block;
            let is_there = number < self.store.geometry().blocks
                && matches!(self.store.read(number, &mut data), Ok(true));
            if is_there {
                self.salvaged.bytes += bytes;
                self.to.data(&current.path, offset, &data[..bytes as usize])?;
            } else {
                self.salvaged.lost_bytes += bytes;
                self.to.lost(&current.path, offset, bytes)?;
            }
        }
        Ok(())
    }
}
