//! The three superblocks, and which of them counts.

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::checking::CheckError;
use crate::checksum::structure_sum;
use crate::findings::{Finding, Structure};
use crate::geometry::{
    BLOCK_BYTES, Geometry, PACKED_RECORDS, PLACES_APART, SCATTERED_RECORDS, read_blocks,
};
use crate::image::Image;

/// What a superblock begins with.
const MAGIC: &[u8; 8] = b"AGEWELL\0";

/// The first number of the version that is understood here.
const MAJOR_VERSION: u16 = 1;

/// Where its checksum lies.
const SUM_AT: usize = 40;

/// What lies where a superblock is looked for.
#[derive(Debug, Clone)]
pub(crate) enum Copy {
    /// A superblock; with what a reader goes by.
    Valid(Geometry),
    /// One that a reader of this version must refuse, and why; its checksum is right.
    Refused(String),
    /// One that is damaged: why, and what it says all the same if that makes sense.
    Damaged(String, Option<Geometry>),
    /// Nothing like one, and why.
    Absent(String),
}

/// A superblock and where it lies, blocks from the start.
pub(crate) type Placed = (Copy, u64);

/// How many copies there are: at addresses 0 and 1, and in the last block.
pub(crate) const COPIES: usize = 3;

/// Reads all copies; the others as far as they can be found, where the first does not say how large a block is.
pub(crate) fn read_copies<I: Image + ?Sized>(image: &I) -> [Placed; COPIES] {
    let first = first_copy(image);
    let last_address = |block_bytes| {
        let blocks = image.size_bytes() / u64::from(block_bytes);
        blocks.saturating_sub(1)
    };
    let [second, last] = if let Copy::Valid(geometry) = &first {
        let block_bytes = geometry.block_bytes;
        let last = last_address(block_bytes);
        [(read_copy(image, block_bytes, 1), 1), last_copy(image, geometry, last)]
    } else {
        [of_any_size(image, |_| 1), of_any_size(image, last_address)]
    };
    [(first, 0), second, last]
}

fn first_copy<I: Image + ?Sized>(image: &I) -> Copy {
    let (least, _) = BLOCK_BYTES;
    let head = match read_blocks(image, least, 0, 1) {
        Ok(head) => head,
        Err(why) => return Copy::Absent(format!("cannot be read: {why}")),
    };
    let block_bytes = Geometry::parse(&head).block_bytes;
    if is_block_bytes(block_bytes) {
        return read_copy(image, block_bytes, 0);
    }
    if head.starts_with(MAGIC) {
        let why = format!("it says that a block has {block_bytes} bytes");
        return Copy::Damaged(why, None);
    }
    Copy::Absent("there is none".to_owned())
}

fn is_block_bytes(bytes: u32) -> bool {
    bytes.is_power_of_two() && (BLOCK_BYTES.0..=BLOCK_BYTES.1).contains(&bytes)
}

/// The copy in the last block of the device, or else of what the store uses of it.
fn last_copy<I: Image + ?Sized>(image: &I, geometry: &Geometry, last: u64) -> Placed {
    let at_end = read_copy(image, geometry.block_bytes, last);
    let used_last = geometry.used_blocks - 1;
    if matches!(at_end, Copy::Valid(_)) || used_last == last {
        return (at_end, last);
    }
    (read_copy(image, geometry.block_bytes, used_last), used_last)
}

/// The copy at an address where nothing says how large a block is.
fn of_any_size<I: Image + ?Sized>(image: &I, address: impl Fn(u32) -> u64) -> Placed {
    let mut best = (Copy::Absent("there is none".to_owned()), 0);
    let mut block_bytes = BLOCK_BYTES.0;
    while block_bytes <= BLOCK_BYTES.1 {
        let address = address(block_bytes);
        if address > 0 {
            let found = read_copy(image, block_bytes, address);
            match found {
                Copy::Valid(_) => return (found, address),
                Copy::Absent(_) => {}
                Copy::Refused(_) | Copy::Damaged(..) => best = (found, address),
            }
        }
        block_bytes *= 2;
    }
    best
}

fn read_copy<I: Image + ?Sized>(image: &I, block_bytes: u32, address: u64) -> Copy {
    let mut block = match read_blocks(image, block_bytes, address, 1) {
        Ok(block) => block,
        Err(why) => return Copy::Absent(format!("cannot be read: {why}")),
    };
    let geometry = Geometry::parse(&block);
    let has_magic = block.starts_with(MAGIC);
    let kind = u32_at(&block, 0);
    let sum = structure_sum(&geometry.uuid, kind, address, &mut block, SUM_AT);
    let sum_is_right = sum == u64_at(&block, SUM_AT);
    let other_size = geometry.block_bytes != block_bytes;
    if !has_magic {
        // Its geometry may be whole all the same.
        let kept = (geometry.refusal().is_none() && !other_size).then_some(geometry);
        return match kept {
            Some(geometry) => Copy::Damaged("it is not marked as one".to_owned(), Some(geometry)),
            None => Copy::Absent("there is none".to_owned()),
        };
    }
    let major = u16_at(&block, 8);
    let known = PACKED_RECORDS | PLACES_APART | SCATTERED_RECORDS;
    let features = u32_at(&block, 12) & !known;
    if sum_is_right && major != MAJOR_VERSION {
        let minor = geometry.minor_version;
        return Copy::Refused(format!(
            "has version {major}.{minor} of the format; this is a reader of version 1"
        ));
    }
    if sum_is_right && features != 0 {
        return Copy::Refused(format!("needs features that are not known here: {features:#x}"));
    }
    let refusal = if other_size {
        Some(format!("it says that a block has {} bytes", geometry.block_bytes))
    } else {
        geometry.refusal()
    };
    match (sum_is_right, refusal) {
        (true, None) => Copy::Valid(geometry),
        (true, Some(why)) => Copy::Damaged(format!("its checksum is right, but {why}"), None),
        (false, Some(_)) => Copy::Damaged("its checksum is wrong".to_owned(), None),
        (false, None) => Copy::Damaged("its checksum is wrong".to_owned(), Some(geometry)),
    }
}

/// The geometry to go by, and what is wrong with the superblocks.
pub(crate) fn choose(
    copies: &[Placed; COPIES],
    findings: &mut Vec<Finding>,
) -> Result<Geometry, CheckError> {
    let mut best: Option<&Geometry> = None;
    for (copy, _) in copies {
        if let Copy::Valid(geometry) = copy {
            best = best.filter(|best| best.generation >= geometry.generation).or(Some(geometry));
        }
    }
    for (number, (copy, address)) in (0..).zip(copies) {
        let structure = Structure::Superblock(number);
        let finding = |why: &str| Finding::damage(structure, *address, why);
        match copy {
            Copy::Damaged(why, _) | Copy::Absent(why) | Copy::Refused(why) => {
                findings.push(finding(why));
            }
            Copy::Valid(geometry) => {
                let best = best.expect("one is valid");
                if geometry.uuid == best.uuid && geometry.generation < best.generation {
                    // Growing may have been cut short.
                    findings.push(finding("it is older than another").or_note(true));
                } else if geometry != best {
                    findings.push(finding("it is valid, but differs from another"));
                }
            }
        }
    }
    if let Some(best) = best {
        return Ok(best.clone());
    }
    let refused = copies.iter().find_map(|(copy, _)| match copy {
        Copy::Refused(why) => Some(why.clone()),
        _ => None,
    });
    if let Some(why) = refused {
        return Err(CheckError::Unsupported(why));
    }
    if copies.iter().all(|(copy, _)| matches!(copy, Copy::Absent(_))) {
        return Err(CheckError::NotAStore);
    }
    Err(CheckError::NoSuperblock(std::mem::take(findings)))
}
