//! Stores whose bytes are changed. Bytes at random have no right checksum, so that nothing behind the first would
//! ever be read; here the checksums are made right again after the change.

use std::io::Read as _;
use std::ops::Range;
use std::sync::LazyLock;

use agewell_check::{CheckOptions, check, salvage, summary};
use flate2::read::GzDecoder;
use twox_hash::XxHash3_64;

/// Stores with records of every kind: one closed in order, one left.
static IMAGES: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
    let packed: [&[u8]; 2] = [
        include_bytes!("../../crates/check/tests/images/closed-1.0.img.gz"),
        include_bytes!("../../crates/check/tests/images/left-1.0.img.gz"),
    ];
    packed.map(|packed| {
        let mut image = Vec::new();
        GzDecoder::new(packed).read_to_end(&mut image).expect("a whole file");
        image
    })
});

/// Of those images: bytes of a block, where the roots, the ring, the map and the slots begin, blocks of a root.
const BLOCK_BYTES: usize = 512;
const PARTS: [usize; 4] = [2, 6, 46, 50];
const ROOT_BLOCKS: usize = 2;

/// Bytes of a change: the block, the place in it, how many bytes of what.
const CHANGE_BYTES: usize = 6;

/// Reads a store after the changes that `bytes` says.
pub fn read_store(bytes: &[u8]) {
    let Some((&how, changes)) = bytes.split_first() else { return };
    let mut image = IMAGES[usize::from(how & 1)].clone();
    let blocks = image.len() / BLOCK_BYTES;
    for change in changes.chunks_exact(CHANGE_BYTES) {
        let number = |at: usize| usize::from(u16::from_le_bytes([change[at], change[at + 1]]));
        let at = number(0) % blocks * BLOCK_BYTES + number(2) % BLOCK_BYTES;
        let end = (at + 1 + usize::from(change[4] % 8)).min(image.len());
        image[at..end].fill(change[5]);
    }
    if how & 2 == 0 {
        seal_all(&mut image);
    }
    if how & 4 != 0 {
        image.truncate(usize::from(how >> 3) * 4096);
    }
    let checked = check(&image, CheckOptions { data: how & 8 == 0 }, &mut |_, _| true);
    match &checked {
        Ok(checked) => {
            let figures = summary(checked);
            assert!(figures.live_blocks <= checked.map.iter().count() as u64);
            for finding in &checked.findings {
                assert!(!finding.to_string().contains('\n'), "one line: {finding}");
            }
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "one line: {error}"),
    }
    let mut given = 0_u64;
    let mut keep = |_, _: &[u8]| {
        given += 1;
        Ok(())
    };
    if let Ok(salvaged) = salvage(&image, &mut keep, &mut |_| true) {
        assert!(given <= salvaged.blocks.len() as u64);
    }
}

/// Makes every checksum right: of pages first, whose sums the roots have.
fn seal_all(image: &mut [u8]) {
    let [roots, ring, map, slots] = PARTS;
    let blocks = image.len() / BLOCK_BYTES;
    for at in [0, 1, blocks - 1] {
        seal(image, at..at + 1, at, 40);
    }
    for at in map..slots {
        seal(image, at..at + 1, at - (at - map) % 2, 8);
    }
    for root in [roots, roots + ROOT_BLOCKS] {
        for page in 0..(slots - map) / 2 {
            let named = root * BLOCK_BYTES + 256 + 8 * page;
            let place = usize::from(image[named] & 1);
            let sum = (map + 2 * page + place) * BLOCK_BYTES + 8;
            image.copy_within(sum..sum + 8, named);
            image[named] = image[named] & !1 | place as u8;
        }
        seal(image, root..root + ROOT_BLOCKS, root, 8);
    }
    for at in ring..map {
        let length = &image[at * BLOCK_BYTES + 48..at * BLOCK_BYTES + 52];
        let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
        if image[at * BLOCK_BYTES..].starts_with(b"AWRR") && (1..=map - at).contains(&length) {
            seal(image, at..at + length, at, 8);
        }
    }
    for at in slots..blocks - 1 {
        if image[at * BLOCK_BYTES..].starts_with(b"AWIN") {
            seal(image, at..at + 1, at, 8);
        }
    }
}

/// Makes the checksum right of a structure in `blocks` that knows itself at `address`.
fn seal(image: &mut [u8], blocks: Range<usize>, address: usize, sum_at: usize) {
    let bytes = blocks.start * BLOCK_BYTES..blocks.end * BLOCK_BYTES;
    let sum_place = bytes.start + sum_at..bytes.start + sum_at + 8;
    let mut place = [0; 28];
    place[..16].copy_from_slice(&image[24..40]);
    place[16..20].copy_from_slice(&image[bytes.start..bytes.start + 4]);
    place[20..].copy_from_slice(&(address as u64).to_le_bytes());
    image[sum_place.clone()].fill(0);
    let sum = XxHash3_64::oneshot_with_seed(XxHash3_64::oneshot(&place), &image[bytes]);
    image[sum_place].copy_from_slice(&sum.to_le_bytes());
}
