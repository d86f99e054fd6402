//! Access control lists, as Linux hands them over (`linux/posix_acl_xattr.h`).

use rustix::io::Errno;

pub(crate) const ACCESS_LIST: &[u8] = b"system.posix_acl_access";
pub(crate) const DEFAULT_LIST: &[u8] = b"system.posix_acl_default";

/// An access control list: tag, permissions and id of each entry.
pub(crate) type List = Vec<(u16, u16, u32)>;

pub(crate) fn decode_list(value: &[u8]) -> Result<List, Errno> {
    if value.len() < 4 || value[..4] != 2u32.to_le_bytes() || value.len() % 8 != 4 {
        return Err(Errno::INVAL);
    }
    let list: List = value[4..]
        .chunks(8)
        .map(|entry| {
            let half = |at: usize| u16::from_le_bytes([entry[at], entry[at + 1]]);
            (half(0), half(2), u32::from_le_bytes(entry[4..8].try_into().unwrap()))
        })
        .collect();
    let count = |tag| list.iter().filter(|entry| entry.0 == tag).count();
    let named = count(2) + count(8);
    let is_good = count(1) == 1 && count(4) == 1 && count(0x20) == 1 && count(0x10) <= 1;
    let is_good =
        is_good && (named == 0 || count(0x10) == 1) && list.is_sorted_by_key(|entry| entry.0);
    let is_good = is_good && list.iter().all(|entry| [1, 2, 4, 8, 0x10, 0x20].contains(&entry.0));
    if is_good && list.iter().all(|entry| entry.1 < 8) { Ok(list) } else { Err(Errno::INVAL) }
}

pub(crate) fn encode_list(list: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut bytes = 2u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in list {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(permissions.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

pub(crate) fn mode_of(list: &List) -> u32 {
    let of = |tag| list.iter().find(|entry| entry.0 == tag).map(|entry| u32::from(entry.1));
    of(1).unwrap() << 6 | of(0x10).or(of(4)).unwrap() << 3 | of(0x20).unwrap()
}

pub(crate) fn with_mode(mut list: List, mode: u32) -> List {
    let group = if list.iter().any(|entry| entry.0 == 0x10) { 0x10 } else { 4 };
    for entry in &mut list {
        let shift = match entry.0 {
            1 => 6,
            0x20 => 0,
            tag if tag == group => 3,
            _ => continue,
        };
        entry.1 = (mode >> shift & 7) as u16;
    }
    list
}
