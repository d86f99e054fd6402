//! What the items of a tree say, one after another in the order of their keys.

use std::collections::{BTreeMap, BTreeSet};

use super::{Found, Known, Owned, Problem};
use crate::access_list::{ACCESS_LIST, AccessList, DEFAULT_LIST};
use crate::attributes::{PART_BITS, VALUE_BYTES_MAX, part_name};
use crate::directory::{FIRST_ENTRY, SAME_BITS};
use crate::format::{
    ENTRIES_END, Entry, Extent, ExtentState, Inode, Kind, NO_OBJECT, SystemKind, name_hash,
    number_in, offset_of,
};
use crate::node::{Key, value_bytes_max};
use crate::sharing::Piece;

/// An extended attribute of which parts are still to come.
struct Attribute {
    offset: u64,
    name: Vec<u8>,
    value: Vec<u8>,
    length: usize,
    parts: u64,
}

/// See the module. What is kept is about the file whose items come now.
pub(super) struct Items {
    part_bytes: usize,
    object: u64,
    /// Names of a directory: the entry that each leads to, and where its item is.
    names: BTreeMap<u64, Vec<u64>>,
    seen_names: BTreeSet<Vec<u8>>,
    attribute: Option<Attribute>,
    /// Where attributes begin, and where their names' hashes are.
    attributes: BTreeMap<u64, u64>,
    extents_end: u64,
}

impl Items {
    pub(super) fn new(block_bytes: usize) -> Self {
        Self {
            part_bytes: value_bytes_max(block_bytes),
            object: NO_OBJECT,
            names: BTreeMap::new(),
            seen_names: BTreeSet::new(),
            attribute: None,
            attributes: BTreeMap::new(),
            extents_end: 0,
        }
    }

    /// Looks at the next item.
    pub(super) fn see(&mut self, found: &mut Found, key: Key, value: &[u8]) {
        let (object, kind, offset) = ((key >> 72) as u64, (key >> 64) as u8, offset_of(key));
        if object != self.object {
            self.end(found);
            self.object = object;
        }
        let what = if object == NO_OBJECT {
            system_item(found, kind, offset, value)
        } else {
            self.item(found, kind, offset, value)
        };
        if let Some(what) = what {
            self.tell(found, kind, offset, what);
        }
    }

    /// An item is not as it should be. Of a file that is being removed some parts are gone, the first first.
    fn tell(&self, found: &mut Found, kind: u8, offset: u64, what: &'static str) {
        let is_going = found.known.get(&self.object).is_some_and(|known| known.is_orphan);
        let has_parts = [Kind::Attribute as u8, Kind::Name as u8].contains(&kind);
        if !(is_going && has_parts && self.object != NO_OBJECT) {
            found.tell(self.object, Problem::Item { kind, offset, what });
        }
    }

    /// The items of a file have ended.
    pub(super) fn end(&mut self, found: &mut Found) {
        self.end_attribute(found);
        let object = self.object;
        for offset in std::mem::take(&mut self.names).into_values().flatten() {
            if !found.is_partial {
                found.tell(object, Problem::NameWithoutEntry { offset });
            }
        }
        self.seen_names.clear();
        self.extents_end = 0;
        let attributes = std::mem::take(&mut self.attributes);
        let step = 1 << PART_BITS;
        for (offset, hash) in &attributes {
            let mut at = *hash;
            while at != *offset && attributes.contains_key(&at) {
                at = at.wrapping_add(step);
            }
            if at != *offset && !found.is_partial {
                let what = "the attribute is not found by its name";
                self.tell(found, Kind::Attribute as u8, *offset, what);
            }
        }
    }

    /// All parts of an attribute have come.
    fn end_attribute(&mut self, found: &mut Found) {
        let Some(attribute) = self.attribute.take() else { return };
        let Attribute { offset, name, value, length, .. } = attribute;
        let is_list = name == ACCESS_LIST || name == DEFAULT_LIST;
        let what = if value.len() != length {
            "parts of the attribute are missing, or too many"
        } else if is_list && AccessList::parse(&value).is_err() {
            "the access control list is none"
        } else {
            return;
        };
        self.tell(found, Kind::Attribute as u8, offset, what);
    }

    fn item(
        &mut self,
        found: &mut Found,
        kind: u8,
        offset: u64,
        value: &[u8],
    ) -> Option<&'static str> {
        let object = self.object;
        if kind == Kind::Inode as u8 {
            let inodes_end =
                found.superblock.as_ref().map_or(u64::MAX, |superblock| superblock.inodes_end);
            if offset != 0 {
                return Some("an inode has no offset");
            }
            if object >= inodes_end {
                found.tell(object, Problem::Inode("its number was never given"));
            }
            let Some(inode) = Inode::decode(value) else { return Some("it is no inode") };
            found.known.entry(object).or_default().inode = Some(inode);
            return None;
        }
        let inode = found.known.entry(object).or_default().inode;
        match kind {
            kind if kind == Kind::Attribute as u8 => self.attribute_item(found, offset, value),
            kind if kind == Kind::Name as u8 => {
                let Some(entry) = number_in(value) else { return Some("it leads to no entry") };
                self.names.entry(entry).or_default().push(offset);
                // Names of what is no directory are told with its entries.
                None
            }
            kind if kind == Kind::Entry as u8 => {
                if inode.is_some_and(|inode| !inode.is_directory()) {
                    return Some("only a directory has entries");
                }
                self.entry_item(found, offset, value)
            }
            kind if kind == Kind::Content as u8 => {
                let known = known_of(found, object);
                known.content_bytes += value.len() as u64;
                let is_small_file = inode.is_some_and(|inode| inode.is_file());
                (is_small_file && offset > 0).then_some("a small file has one content")
            }
            kind if kind == Kind::Extent as u8 => self.extent_item(found, offset, value),
            _ => Some("there are no items of this kind"),
        }
    }

    fn attribute_item(
        &mut self,
        found: &mut Found,
        offset: u64,
        value: &[u8],
    ) -> Option<&'static str> {
        known_of(found, self.object).has_attributes = true;
        let part = offset & ((1 << PART_BITS) - 1);
        if part == 0 {
            self.end_attribute(found);
            let Some((name, length)) = part_name(value) else { return Some("it has no name") };
            if length > VALUE_BYTES_MAX {
                return Some("it is longer than any may be");
            }
            if let Some(superblock) = &found.superblock {
                let hash = name_hash(superblock.seed, name, PART_BITS);
                self.attributes.insert(offset, hash);
            }
            let skipped = 5 + name.len();
            self.attribute = Some(Attribute {
                offset,
                name: name.to_vec(),
                value: value[skipped..].to_vec(),
                length,
                parts: 1,
            });
            return None;
        }
        let attribute = self.attribute.as_mut().filter(|attribute| {
            attribute.offset + attribute.parts == offset && value.len() <= self.part_bytes
        });
        let Some(attribute) = attribute else { return Some("it is a part of no attribute") };
        attribute.parts += 1;
        if attribute.value.len() <= VALUE_BYTES_MAX {
            attribute.value.extend(value);
        }
        None
    }

    fn entry_item(&mut self, found: &mut Found, offset: u64, value: &[u8]) -> Option<&'static str> {
        let directory = self.object;
        let Some((inode, file_type, name)) = Entry::view(value) else {
            return Some("it is no entry");
        };
        if !(FIRST_ENTRY..ENTRIES_END).contains(&offset) {
            return Some("no entry has this number");
        }
        let known = known_of(found, directory);
        known.entries += 1;
        known.last_entry = offset;
        if !self.seen_names.insert(name.to_vec()) {
            found.tell(directory, Problem::SameName { entry: offset });
        }
        let hash = found.superblock.as_ref().map(|it| name_hash(it.seed, name, SAME_BITS));
        let mut is_named = false;
        for at in self.names.remove(&offset).unwrap_or_default() {
            let fits = hash.is_none_or(|hash| at >> SAME_BITS == hash >> SAME_BITS);
            if fits && !is_named {
                is_named = true;
            } else {
                found.tell(directory, Problem::NameWithoutEntry { offset: at });
            }
        }
        if !is_named && !found.is_partial {
            found.tell(directory, Problem::Unnamed { entry: offset });
        }
        let leads_to = known_of(found, inode);
        leads_to.names = leads_to.names.saturating_add(1);
        leads_to.place.get_or_insert_with(|| (directory, offset, name.to_vec()));
        found.entries.push((directory, offset, inode, file_type));
        None
    }

    fn extent_item(
        &mut self,
        found: &mut Found,
        offset: u64,
        value: &[u8],
    ) -> Option<&'static str> {
        let Some(extent) = Extent::decode(offset, value) else { return Some("it is no extent") };
        if extent.at < self.extents_end {
            return Some("it begins within the one before it");
        }
        self.extents_end = extent.end();
        known_of(found, self.object).blocks += u64::from(extent.count);
        if extent.state == ExtentState::Promised {
            found.promised = found.promised.saturating_add(extent.count.into());
        } else {
            known_of(found, self.object).data_end = extent.end();
            found.extents.push(Owned { inode: self.object, extent });
        }
        None
    }
}

fn known_of(found: &mut Found, inode: u64) -> &mut Known {
    found.known.entry(inode).or_default()
}

/// An item that is about no one file.
fn system_item(found: &mut Found, kind: u8, offset: u64, value: &[u8]) -> Option<&'static str> {
    if kind == SystemKind::Orphan as u8 {
        known_of(found, offset).is_orphan = true;
        return (!value.is_empty()).then_some("it says more than it may");
    }
    if kind == SystemKind::Shrinking as u8 {
        known_of(found, offset).is_shrinking = true;
        return (!value.is_empty()).then_some("it says more than it may");
    }
    if kind == SystemKind::Shared as u8 {
        let number = u32::try_from(offset).ok();
        let Some(piece) = number.and_then(|number| Piece::decode(number, value)) else {
            return Some("it counts nothing");
        };
        found.counted.push(piece);
        return None;
    }
    Some("there are no items of this kind")
}
