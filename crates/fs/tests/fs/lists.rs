//! Access control lists, as Linux hands them over (`linux/posix_acl_xattr.h`).

use rustix::io::Errno;

pub(crate) const ACCESS_LIST: &[u8] = b"system.posix_acl_access";
pub(crate) const DEFAULT_LIST: &[u8] = b"system.posix_acl_default";

/// An access control list: tag, permissions and id of each entry.
pub(crate) type List = Vec<(u16, u16, u32)>;

/// A list as the kernel sends them, of any numbers: any count of users and groups, and a mask if there are
/// such, and sometimes if there are none.
pub(crate) fn valid_list([bits, names]: [u32; 2]) -> List {
    let permissions = |number: u32| (bits >> (3 * number) & 7) as u16;
    let named = |tag: u16, count: u32| {
        (0..count).map(move |one| (tag, permissions(4 + one), names >> 8 & 0xffff | one << 16))
    };
    let (users, groups) = (names % 4, names / 4 % 3);
    let mut list = vec![(1, permissions(0), u32::MAX)];
    list.extend(named(2, users));
    list.push((4, permissions(1), u32::MAX));
    list.extend(named(8, groups));
    if users + groups > 0 || names / 12 % 4 == 0 {
        list.push((0x10, permissions(2), u32::MAX));
    }
    list.push((0x20, permissions(3), u32::MAX));
    list
}

/// What is no list, in each way that there is, and how it is refused.
pub(crate) fn invalid_list(numbers: [u32; 2], way: u32) -> (Vec<u8>, Errno) {
    // One user at least, so that there is a mask.
    let mut list = valid_list([numbers[0], numbers[1] | 1]);
    let at = |list: &List, tag: u16| list.iter().position(|entry| entry.0 == tag).unwrap();
    let (user, mask, last) = (at(&list, 2), at(&list, 0x10), list.len() - 1);
    match way % INVALID_WAYS {
        0 => list.clear(),
        1 => list[user].1 |= 8,
        2 => list[user].2 = u32::MAX,
        3 => list[last].0 = 0x40,
        4 => drop(list.remove(last)),
        5 => drop(list.remove(mask)),
        6 => drop(list.remove(0)),
        7 => list.insert(mask, list[mask]),
        8 => list.insert(0, list[0]),
        9 => list.swap(user - 1, user),
        10 => list.swap(mask, last),
        11 => {
            let mut bytes = encode_list(&list);
            bytes.truncate(bytes.len() - 1 - (numbers[0] % 7) as usize);
            return (bytes, Errno::INVAL);
        }
        12 => {
            let mut bytes = encode_list(&list);
            bytes[0] ^= 1;
            return (bytes, Errno::OPNOTSUPP);
        }
        _ => return (vec![2, 0, 0], Errno::INVAL),
    }
    (encode_list(&list), Errno::INVAL)
}

/// The ways in which a value is no list.
pub(crate) const INVALID_WAYS: u32 = 14;

pub(crate) fn decode_list(value: &[u8]) -> Result<List, Errno> {
    if value.len() >= 4 && value[..4] != 2u32.to_le_bytes() {
        return Err(Errno::OPNOTSUPP);
    }
    if value.len() % 8 != 4 {
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
    let is_good =
        is_good && list.iter().all(|entry| ![2, 8].contains(&entry.0) || entry.2 < u32::MAX);
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
