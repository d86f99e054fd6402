//! The disk in memory.

use agewell_store::device::{Disk, MemoryDisk, Piece};
use proptest::prelude::*;

use crate::plain::{hold_against_plain, refuses_what_is_beyond_the_end, steps};

const BLOCK_BYTES: u64 = 64 << 10;

proptest! {
    /// 2.5 MiB: two chunks and a half.
    #[test]
    fn holds_what_was_written(steps in steps(40, 36)) {
        hold_against_plain(&MemoryDisk::new(40 * BLOCK_BYTES), &steps, BLOCK_BYTES)?;
    }
}

#[test]
fn ranges_beyond_the_end_are_refused() {
    refuses_what_is_beyond_the_end(&MemoryDisk::new(3 * BLOCK_BYTES), BLOCK_BYTES);
}

#[test]
fn takes_memory_for_what_is_written_and_gives_back_what_is_discarded() {
    let disk = MemoryDisk::new(64 << 30);
    assert_eq!(disk.allocated_bytes(), 0);
    disk.write(&[Piece { offset: 40 << 30, data: &[1; 4096] }]).unwrap();
    assert_eq!(disk.allocated_bytes(), 1 << 20);
    disk.discard(40 << 30, 4096).unwrap();
    assert_eq!(disk.allocated_bytes(), 1 << 20, "the rest of the chunk is not dead");
    disk.discard(40 << 30, 1 << 20).unwrap();
    assert_eq!(disk.allocated_bytes(), 0);
}

#[test]
fn an_image_comes_back_as_it_was() {
    let image: Vec<u8> = (0..3_000_001_u32).map(|at| (at / 7) as u8).collect();
    assert!(MemoryDisk::from_image(&image).image() == image);
    assert_eq!(MemoryDisk::from_image(&vec![0; 5 << 20]).allocated_bytes(), 0);
}
