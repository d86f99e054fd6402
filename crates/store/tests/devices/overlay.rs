//! A disk that is not written to.

use agewell_store::device::{Disk, MemoryDisk, OverlayDisk, Piece};
use proptest::prelude::*;

use crate::plain::{hold_against_plain, refuses_what_is_beyond_the_end, steps};

const BLOCK_BYTES: u64 = 4096;

proptest! {
    #[test]
    fn holds_what_was_written_and_the_disk_below_does_not(steps in steps(60, 20)) {
        let below = MemoryDisk::new(60 * BLOCK_BYTES);
        hold_against_plain(&OverlayDisk::over(&below), &steps, BLOCK_BYTES)?;
        prop_assert_eq!(below.allocated_bytes(), 0);
    }
}

#[test]
fn parts_of_what_was_written_lie_over_what_is_below() {
    let below = MemoryDisk::new(16 * BLOCK_BYTES);
    below.write(&[Piece { offset: 0, data: &vec![1; 16 << 12] }]).unwrap();
    let disk = OverlayDisk::over(&below);
    disk.write(&[Piece { offset: 4096, data: &[2; 1024] }]).unwrap();
    let mut read = [0; 2048];
    disk.read(3584, &mut read).unwrap();
    assert_eq!(read[..512], [1; 512]);
    assert_eq!(read[512..1536], [2; 1024]);
    assert_eq!(read[1536..], [1; 512]);
}

#[test]
fn ranges_beyond_the_end_are_refused() {
    let disk = OverlayDisk::over(MemoryDisk::new(3 * BLOCK_BYTES));
    refuses_what_is_beyond_the_end(&disk, BLOCK_BYTES);
}
