//! The microbenchmarks of Matthews 1999, §6.3 and §6.5.1: a file is written, written again in some
//! order, and read in some order five times.

use agewell_layout::block_layout::BlockLayout;
use agewell_layout::reorganise::{Decide, Related, ReorganiseSetting, When};
use agewell_log::Purpose;

use crate::loads::{Plain, Reorganising, Subject, by_gain, matthews, plain, reorganising, with};

const BLOCKS: u32 = 40_000;
const PASSES: usize = 5;

/// Disk time of each read pass and all that came with it, ns.
fn passes<L: BlockLayout>(
    subject: &mut Subject<L>,
    writes: &[u32],
    reads: &[u32],
) -> [(u64, u64); PASSES] {
    let all: Vec<u32> = (0..writes.len() as u32).collect();
    subject.write(&all);
    subject.write(writes);
    std::array::from_fn(|_| subject.read(reads))
}

struct Compared {
    plain: Plain,
    reorganising: Reorganising,
    without: [(u64, u64); PASSES],
    with: [(u64, u64); PASSES],
}

fn compare(utilization: f64, random: bool, setting: ReorganiseSetting) -> Compared {
    let mut plain = plain(BLOCKS, utilization);
    let mut reorganising = reorganising(BLOCKS, utilization, setting);
    let sequential: Vec<u32> = (0..BLOCKS).collect();
    let writes = if random { plain.shuffled(BLOCKS) } else { sequential.clone() };
    let without = passes(&mut plain, &writes, &sequential);
    let with = passes(&mut reorganising, &writes, &sequential);
    reorganising.log.verify();
    Compared { plain, reorganising, without, with }
}

/// Figures 6-7 and 6-8: nothing changes in the first pass, the second reorganises, and from the
/// third on reads take what they take where the order of writing was that of reading.
#[test]
fn random_writes_are_reorganised_in_the_second_pass() {
    for setting in [matthews(), by_gain(), with(Related::WholeFile, Decide::Value, When::Load)] {
        let compared = compare(0.5, true, setting);
        let written_as_read = compare(0.5, false, setting);
        let best_ns = written_as_read.without[4].0 as f64;
        assert_eq!(compared.with[0], compared.without[0], "{setting:?}");
        assert!(compared.with[1].1 > compared.with[1].0, "nothing was moved: {setting:?}");
        assert_eq!(compared.with[4].1, compared.with[4].0, "moved again: {setting:?}");
        for (read_ns, _) in &compared.with[2..] {
            let ratio = *read_ns as f64 / best_ns;
            assert!(ratio < 1.1, "{ratio} of the best in {setting:?}");
        }
        // Five passes more than pay for it: without, each takes several times as long.
        assert!(compared.plain.disk.total_ns() > compared.reorganising.disk.total_ns() * 3 / 2);
    }
}

/// Data that lies in the order of reads is not touched (§6.5.1.1).
#[test]
fn what_lies_as_it_is_read_is_left_alone() {
    for setting in [matthews(), by_gain()] {
        let compared = compare(0.5, false, setting);
        assert_eq!(compared.with, compared.without);
        assert_eq!(compared.reorganising.counts().moved, 0);
    }
    // A pattern of its own, written and read alike.
    let mut subject = reorganising(BLOCKS, 0.5, matthews());
    let pattern = subject.shuffled(BLOCKS);
    passes(&mut subject, &pattern, &pattern);
    assert_eq!(subject.counts().moved, 0);
}

/// At 90 % utilization it costs more, and the rows of segments are shorter (figures 6-9, 6-10).
#[test]
fn a_full_disk_is_reorganised_at_a_higher_price() {
    let half = compare(0.5, true, matthews());
    let full = compare(0.9, true, matthews());
    let moved_ns = |compared: &Compared| {
        let disk = &compared.reorganising.disk;
        disk.total_ns() - disk.spent_ns(Purpose::Read) - disk.spent_ns(Purpose::NewData)
    };
    assert!(moved_ns(&full) > moved_ns(&half));
    assert!(full.with[4].0 >= half.with[4].0);
    assert!(full.with[4].0 * 2 < full.without[4].0);
}
