//! Access control lists as the kernel sends them, and what they do to permissions.
//!
//! The kernel checks permissions by the lists that a file system keeps (`system.posix_acl_access`,
//! `system.posix_acl_default`); keeping list and mode in step is left to it. The rules are those of
//! POSIX 1003.1e draft 17, as `acl(5)` has them.

use rustix::io::Errno;

/// The extended attribute with the list of a file.
pub const ACCESS_LIST: &[u8] = b"system.posix_acl_access";

/// The extended attribute with the list that is passed on to what is made in a directory.
pub const DEFAULT_LIST: &[u8] = b"system.posix_acl_default";

/// The version in front of the entries, the only one there is.
const VERSION: u32 = 2;

const OWNER: u16 = 0x01;
const USER: u16 = 0x02;
const OWNING_GROUP: u16 = 0x04;
const GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;

/// The number that no user and no group has; entries of neither have it.
const NOBODY: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    tag: u16,
    permissions: u16,
    id: u32,
}

/// A list: one entry each for the owner, the owning group and others; any for users and groups; and a mask
/// where there are such.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessList(Vec<Entry>);

impl AccessList {
    /// Out of the value of an extended attribute.
    ///
    /// # Errors
    /// `OPNOTSUPP` if it is of another version; `INVAL` if it is not a whole list in the order of tags, as the
    /// kernel sends them. It sends none without entries: setting that is removing the list.
    pub fn parse(value: &[u8]) -> Result<Self, Errno> {
        let (version, rest) = value.split_first_chunk().ok_or(Errno::INVAL)?;
        let (chunks, remainder) = rest.as_chunks::<8>();
        if u32::from_le_bytes(*version) != VERSION {
            return Err(Errno::OPNOTSUPP);
        }
        if !remainder.is_empty() {
            return Err(Errno::INVAL);
        }
        let entries: Vec<Entry> = chunks
            .iter()
            .map(|&[tag0, tag1, bits0, bits1, id @ ..]| Entry {
                tag: u16::from_le_bytes([tag0, tag1]),
                permissions: u16::from_le_bytes([bits0, bits1]),
                id: u32::from_le_bytes(id),
            })
            .collect();
        let count = |tag| entries.iter().filter(|entry| entry.tag == tag).count();
        let known = entries.iter().all(|entry| {
            let tags = [OWNER, USER, OWNING_GROUP, GROUP, MASK, OTHER];
            let is_nobody = matches!(entry.tag, USER | GROUP) && entry.id == NOBODY;
            tags.contains(&entry.tag) && entry.permissions <= 7 && !is_nobody
        });
        let is_whole = [OWNER, OWNING_GROUP, OTHER].iter().all(|&tag| count(tag) == 1);
        let named = count(USER) + count(GROUP);
        let is_masked = count(MASK) == 1 || (count(MASK) == 0 && named == 0);
        let is_sorted = entries.is_sorted_by_key(|entry| entry.tag);
        (known && is_whole && is_masked && is_sorted).then_some(Self(entries)).ok_or(Errno::INVAL)
    }

    /// As the value of an extended attribute.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut value = VERSION.to_le_bytes().to_vec();
        for entry in &self.0 {
            value.extend(entry.tag.to_le_bytes());
            value.extend(entry.permissions.to_le_bytes());
            value.extend(entry.id.to_le_bytes());
        }
        value
    }

    /// The nine bits of permissions that the mode of a file with this list shows.
    #[must_use]
    pub fn permissions(&self) -> u32 {
        let of = |tag| u32::from(self.entry(tag).map_or(0, |entry| entry.permissions));
        of(OWNER) << 6 | of(self.class_of_group()) << 3 | of(OTHER)
    }

    /// Whether the mode says as much, so that the list need not be kept.
    #[must_use]
    pub fn is_minimal(&self) -> bool {
        self.0.len() == 3
    }

    /// Follows a change of the mode.
    pub fn set_permissions(&mut self, mode: u32) {
        self.change(|_, bits| bits, mode);
    }

    /// The list of a file that is made with `mode` in a directory with this default list: its
    /// [`AccessList::permissions`] are those of the file. The umask has no part in it.
    #[must_use]
    pub fn inherited(&self, mode: u32) -> Self {
        let mut list = self.clone();
        list.change(|had, bits| had & bits, mode);
        list
    }

    fn change(&mut self, new: impl Fn(u16, u16) -> u16, mode: u32) {
        let classes = [(OWNER, mode >> 6), (self.class_of_group(), mode >> 3), (OTHER, mode)];
        for (tag, bits) in classes {
            for entry in self.0.iter_mut().filter(|entry| entry.tag == tag) {
                entry.permissions = new(entry.permissions, bits as u16 & 7);
            }
        }
    }

    fn class_of_group(&self) -> u16 {
        if self.entry(MASK).is_some() { MASK } else { OWNING_GROUP }
    }

    fn entry(&self, tag: u16) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.tag == tag)
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::AccessList;

    fn list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
        let mut value = 2_u32.to_le_bytes().to_vec();
        for &(tag, permissions, id) in entries {
            value.extend(tag.to_le_bytes());
            value.extend(permissions.to_le_bytes());
            value.extend(id.to_le_bytes());
        }
        value
    }

    /// rwx for the owner, rw for user 7, rx for the group, r for others.
    fn with_user(mask: u16) -> Vec<u8> {
        let none = u32::MAX;
        list(&[(1, 7, none), (2, 6, 7), (4, 5, none), (16, mask, none), (32, 4, none)])
    }

    #[test]
    fn the_mask_stands_for_the_group_in_the_mode() {
        let acl = AccessList::parse(&with_user(6)).unwrap();
        assert_eq!(acl.permissions(), 0o764);
        assert!(!acl.is_minimal());
        assert_eq!(acl.to_bytes(), with_user(6));
        let minimal = AccessList::parse(&list(&[(1, 6, 0), (4, 4, 0), (32, 0, 0)])).unwrap();
        assert_eq!(minimal.permissions(), 0o640);
        assert!(minimal.is_minimal());
    }

    #[test]
    fn a_change_of_mode_changes_the_mask_and_not_the_group() {
        let mut acl = AccessList::parse(&with_user(7)).unwrap();
        acl.set_permissions(0o4610);
        assert_eq!(acl.permissions(), 0o610);
        let none = u32::MAX;
        let expected = list(&[(1, 6, none), (2, 6, 7), (4, 5, none), (16, 1, none), (32, 0, none)]);
        assert_eq!(acl.to_bytes(), expected);
    }

    #[test]
    fn what_is_made_has_no_more_than_list_and_mode_allow() {
        let acl = AccessList::parse(&with_user(7)).unwrap().inherited(0o660);
        assert_eq!(acl.permissions(), 0o660);
        assert_eq!(AccessList::parse(&with_user(4)).unwrap().inherited(0o777).permissions(), 0o744);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        let good = with_user(7);
        for cut in 0..good.len() {
            assert!(AccessList::parse(&good[..cut]).is_err(), "{cut}");
        }
        let entry = |tag| (tag, 7, 0);
        for bad in [
            list(&[entry(1), entry(4)]),
            list(&[entry(1), entry(2), entry(4), entry(32)]),
            list(&[entry(4), entry(1), entry(32)]),
            list(&[entry(1), entry(1), entry(4), entry(32)]),
            list(&[entry(1), entry(4), (32, 8, 0)]),
            list(&[entry(1), entry(4), entry(32), entry(64)]),
            list(&[entry(1), entry(4), entry(16), entry(16), entry(32)]),
            list(&[entry(1), (2, 7, u32::MAX), entry(4), entry(16), entry(32)]),
            list(&[entry(1), entry(4), (8, 7, u32::MAX), entry(16), entry(32)]),
            list(&[]),
        ] {
            assert_eq!(AccessList::parse(&bad), Err(Errno::INVAL), "{bad:?}");
        }
        let mut other_version = good;
        other_version[0] = 1;
        assert_eq!(AccessList::parse(&other_version), Err(Errno::OPNOTSUPP));
    }

    #[test]
    fn what_the_kernel_takes_is_taken() {
        let entry = |tag| (tag, 5, 0);
        for good in [
            // A mask may stand without names, and a name twice.
            list(&[entry(1), entry(4), entry(16), entry(32)]),
            list(&[
                entry(1),
                entry(2),
                entry(2),
                entry(4),
                entry(8),
                entry(8),
                entry(16),
                entry(32),
            ]),
        ] {
            let parsed = AccessList::parse(&good).unwrap();
            assert!(!parsed.is_minimal());
            assert_eq!(parsed.to_bytes(), good);
        }
    }
}
