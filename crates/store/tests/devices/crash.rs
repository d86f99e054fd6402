//! The states in which a loss of power may leave a disk, held against copies of whole images.

use std::collections::{HashMap, HashSet};

use agewell_store::device::{CrashDisk, CrashStates, Disk, Piece, Recording};
use proptest::prelude::*;

use crate::plain::{contents, hold_against_plain, refuses_what_is_beyond_the_end, steps};

const SECTOR: usize = 512;
const BLOCK: u64 = 4096;
const BLOCKS: u64 = 12;

fn image(disk: &dyn Disk) -> Vec<u8> {
    let mut image = vec![0; disk.size_bytes() as usize];
    disk.read(0, &mut image).unwrap();
    image
}

/// A write: first sector, sectors, what the data is made from.
type Write = (u64, u64, u8);

/// Epochs of writes on a disk of `BLOCKS` blocks.
fn epochs() -> impl Strategy<Value = Vec<Vec<Write>>> {
    let last = BLOCKS * 8;
    let write = (0..last, 1_u64..20, any::<u8>())
        .prop_map(move |(first, sectors, seed)| (first, sectors.min(last - first), seed));
    prop::collection::vec(prop::collection::vec(write, 0..6), 1..4)
}

fn data((first, sectors, seed): Write) -> Vec<u8> {
    contents(first, sectors as usize * SECTOR, seed)
}

fn enter(image: &mut [u8], write: Write) {
    let at = write.0 as usize * SECTOR;
    let data = data(write);
    image[at..at + data.len()].copy_from_slice(&data);
}

/// Records `epochs`, and what was on the medium at the start of each.
fn record(epochs: &[Vec<Write>]) -> (Recording, Vec<Vec<u8>>) {
    let disk = CrashDisk::new(BLOCKS * BLOCK, 3);
    let mut bases = Vec::new();
    for (number, epoch) in epochs.iter().enumerate() {
        if number > 0 {
            disk.flush().unwrap();
        }
        bases.push(image(&disk));
        for write in epoch {
            let offset = write.0 * SECTOR as u64;
            disk.write(&[Piece { offset, data: &data(*write) }]).unwrap();
        }
    }
    (disk.recording(), bases)
}

fn images(states: &CrashStates) -> Vec<Vec<u8>> {
    (0..states.len()).map(|number| image(&states.state(number))).collect()
}

proptest! {
    #[test]
    fn the_disk_holds_what_was_written(steps in steps(40, 7)) {
        hold_against_plain(&CrashDisk::new(40 * BLOCK, 0), &steps, BLOCK)?;
    }

    /// Blocks of 512 bytes, which share pages, and a last page that is not whole.
    #[test]
    fn the_disk_holds_small_blocks(steps in steps(43, 11)) {
        hold_against_plain(&CrashDisk::new(43 * 512, 0), &steps, 512)?;
    }

    /// A state that is written to, recorded or not.
    #[test]
    fn a_state_holds_what_is_written_to_it(steps in steps(40, 7)) {
        let disk = CrashDisk::new(40 * BLOCK, 0);
        disk.write(&[Piece { offset: 0, data: &vec![1; 5 * BLOCK as usize] }]).unwrap();
        let recording = disk.recording();
        let zeros = recording.states(0).state(0);
        hold_against_plain(&zeros, &steps, BLOCK)?;
        hold_against_plain(&CrashDisk::over(&recording.state(0, 0), 0), &steps, BLOCK)?;
    }
}

proptest! {
    // Each makes some thousand images.
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Every subset of the writes, and every tear of the last one, made by copying whole images.
    #[test]
    fn every_subset_and_every_tear_is_a_state(epochs in epochs()) {
        let (recording, bases) = record(&epochs);
        prop_assert_eq!(recording.epochs(), epochs.len());
        for (number, (epoch, base)) in epochs.iter().zip(&bases).enumerate() {
            let found: HashSet<Vec<u8>> = images(&recording.states(number)).into_iter().collect();
            for subset in 0_u32..1 << epoch.len() {
                let mut expected = base.clone();
                let kept = (0..epoch.len()).filter(|write| subset >> write & 1 == 1);
                kept.for_each(|write| enter(&mut expected, epoch[write]));
                prop_assert!(found.contains(&expected), "epoch {number}, subset {subset:b}");
            }
            let Some((last, before)) = epoch.split_last() else { continue };
            let mut without = base.clone();
            for write in before {
                enter(&mut without, *write);
            }
            let mut with = without.clone();
            enter(&mut with, *last);
            for cut in last.0 as usize..(last.0 + last.1) as usize {
                let cut = cut * SECTOR;
                let beginning = [&with[..cut], &without[cut..]].concat();
                prop_assert!(found.contains(&beginning), "the beginning up to {cut}");
                let end = [&without[..cut], &with[cut..]].concat();
                prop_assert!(found.contains(&end), "the end from {cut}");
                let is_garbage_behind = found.iter().any(|state| {
                    let end = (last.0 + last.1) as usize * SECTOR;
                    state[..cut] == with[..cut]
                        && state[end..] == without[end..]
                        && state[cut..end].chunks(SECTOR).zip(with[cut..end].chunks(SECTOR))
                            .zip(without[cut..end].chunks(SECTOR))
                            .all(|((state, with), without)| state != with && state != without)
                });
                let is_first = cut == last.0 as usize * SECTOR;
                prop_assert!(is_first || is_garbage_behind, "garbage from {cut}");
            }
        }
    }

    /// No state has what could not be: each sector is as it was, as a write had it, or, of one torn
    /// write, something else.
    #[test]
    fn every_state_is_possible(epochs in epochs()) {
        let (recording, bases) = record(&epochs);
        for (number, (epoch, base)) in epochs.iter().zip(&bases).enumerate() {
            let states = recording.states(number);
            for (state, found) in images(&states).iter().enumerate() {
                let mut strange = Vec::new();
                for (sector, bytes) in found.chunks(SECTOR).enumerate() {
                    let at = sector * SECTOR;
                    let is_of_a_write = epoch.iter().any(|write| {
                        let within = (sector as u64).checked_sub(write.0);
                        within.is_some_and(|within| within < write.1)
                            && data(*write)[(sector - write.0 as usize) * SECTOR..][..SECTOR] == *bytes
                    });
                    if bytes != &base[at..at + SECTOR] && !is_of_a_write {
                        strange.push(sector as u64);
                    }
                }
                let of_one_write = strange.is_empty() || epoch.iter().any(|write| {
                    strange.iter().all(|sector| (write.0..write.0 + write.1).contains(sector))
                });
                prop_assert!(of_one_write, "{}: {strange:?}", states.describe(state as u64));
            }
        }
    }

    #[test]
    fn fingerprints_are_the_same_where_the_bytes_are_and_only_there(
        epochs in epochs(),
        discards in prop::collection::vec((0..BLOCKS, 0_usize..4), 0..3),
    ) {
        let disk = CrashDisk::new(BLOCKS * BLOCK, 3);
        for (number, epoch) in epochs.iter().enumerate() {
            for write in epoch {
                let offset = write.0 * SECTOR as u64;
                disk.write(&[Piece { offset, data: &data(*write) }]).unwrap();
            }
            for (block, _) in discards.iter().filter(|(_, epoch)| *epoch == number) {
                disk.discard(block * BLOCK, BLOCK).unwrap();
            }
            disk.flush().unwrap();
        }
        let recording = disk.recording();
        for epoch in 0..recording.epochs() {
            let states = recording.states(epoch);
            let mut fingerprints: HashMap<Vec<u8>, HashSet<u64>> = HashMap::new();
            let mut distinct = HashSet::new();
            for (number, state) in images(&states).into_iter().enumerate() {
                let fingerprint = states.fingerprint(number as u64);
                fingerprints.entry(state).or_default().insert(fingerprint);
                distinct.insert(fingerprint);
            }
            // Nothing is missed: as many fingerprints as there are images, at least.
            prop_assert!(distinct.len() >= fingerprints.len());
            // Images that differ in how older discards read may become the same by what is written.
            if discards.is_empty() {
                prop_assert_eq!(distinct.len(), fingerprints.len());
            }
            let images: HashSet<Vec<u8>> =
                states.distinct().map(|(_, state)| image(&state)).collect();
            prop_assert_eq!(images.len(), fingerprints.len());
            prop_assert_eq!(states.distinct().count(), distinct.len());
        }
    }
}

#[test]
fn ranges_beyond_the_end_are_refused() {
    refuses_what_is_beyond_the_end(&CrashDisk::new(3 * BLOCK, 0), BLOCK);
    let disk = CrashDisk::new(3 * BLOCK, 0);
    refuses_what_is_beyond_the_end(&disk.recording().state(0, 0), BLOCK);
    assert!(disk.write(&[Piece { offset: 100, data: &[0; 512] }]).is_err(), "not a sector");
}

#[test]
fn the_same_number_is_the_same_state_in_another_recording_of_the_same_run() {
    let run = vec![(0..14).map(|at| (at * 7 % 90, 5, at as u8)).collect::<Vec<Write>>()];
    let (first, again) = (record(&run).0.states(0), record(&run).0.states(0));
    assert_eq!(first.len(), again.len());
    assert_eq!(images(&first), images(&again));
}

/// 14 writes of a block each: of more than ten every subset of up to two, and all but up to two.
#[test]
fn of_many_writes_small_subsets_and_their_complements_are_states() {
    let disk = CrashDisk::new(14 * BLOCK, 0);
    for block in 0..14 {
        disk.write(&[Piece { offset: block * BLOCK, data: &[1; BLOCK as usize] }]).unwrap();
    }
    let recording = disk.recording();
    let kept: HashSet<u32> = images(&recording.states(0))
        .iter()
        .filter_map(|image| {
            let blocks = image.chunks(BLOCK as usize).enumerate();
            let is_whole = |block: &[u8]| block.iter().all(|byte| *byte == block[0] && *byte < 2);
            let mut kept = 0;
            for (number, block) in blocks {
                if !is_whole(block) {
                    return None;
                }
                kept |= u32::from(block[0]) << number;
            }
            Some(kept)
        })
        .collect();
    let all = (1_u32 << 14) - 1;
    for first in 0..14 {
        for second in 0..14 {
            let pair = 1 << first | 1 << second;
            assert!(kept.contains(&pair), "only {first} and {second}");
            assert!(kept.contains(&(all ^ pair)), "all but {first} and {second}");
        }
    }
    let drawn = kept.iter().filter(|kept| (3..=11).contains(&kept.count_ones())).count();
    assert!(drawn >= 50, "{drawn} drawn subsets and prefixes");
}

/// A write of many pages may arrive in any of them.
#[test]
fn pages_of_a_large_write_are_lost_apart() {
    let disk = CrashDisk::new(16 * BLOCK, 0);
    disk.write(&[Piece { offset: 0, data: &vec![1; 16 * BLOCK as usize] }]).unwrap();
    let recording = disk.recording();
    let scattered = images(&recording.states(0)).into_iter().filter(|image| {
        let pages: Vec<u8> = image.chunks(BLOCK as usize).map(|page| page[0]).collect();
        pages.windows(2).filter(|pair| pair[0] != pair[1]).count() > 3
    });
    assert!(scattered.count() > 30);
}

#[test]
fn what_was_discarded_reads_as_it_was_as_zeros_and_as_garbage_in_later_epochs_too() {
    let disk = CrashDisk::new(4 * BLOCK, 0);
    disk.write(&[Piece { offset: 0, data: &[1; 2 * BLOCK as usize] }]).unwrap();
    disk.flush().unwrap();
    disk.discard(0, BLOCK).unwrap();
    disk.flush().unwrap();
    disk.write(&[Piece { offset: 3 * BLOCK, data: &[2; BLOCK as usize] }]).unwrap();
    let recording = disk.recording();
    for epoch in [1, 2] {
        let mut found = [false; 3];
        for state in images(&recording.states(epoch)) {
            let first = &state[..BLOCK as usize];
            let (is_old, is_zero) = (first == [1; BLOCK as usize], first == [0; BLOCK as usize]);
            found[if is_old { 0 } else { 1 + usize::from(!is_zero) }] = true;
            assert!(state[BLOCK as usize..2 * BLOCK as usize] == [1; BLOCK as usize]);
        }
        assert_eq!(found, [true; 3], "epoch {epoch}");
    }
    // What is written there afterwards is there in all.
    disk.write(&[Piece { offset: 0, data: &[3; BLOCK as usize] }]).unwrap();
    disk.flush().unwrap();
    let states = disk.recording().states(3);
    assert!(images(&states).iter().all(|state| state[..BLOCK as usize] == [3; BLOCK as usize]));
    let same = images(&states).into_iter().collect::<HashSet<_>>().len();
    assert_eq!(same, 1);
}

#[test]
fn marks_are_those_made_before_the_flush_that_ends_the_epoch() {
    let disk = CrashDisk::new(4 * BLOCK, 0);
    disk.mark(10);
    disk.write(&[Piece { offset: 0, data: &[1; BLOCK as usize] }]).unwrap();
    disk.mark(11);
    disk.flush().unwrap();
    disk.mark(12);
    let recording = disk.recording();
    assert_eq!((recording.marks(0), recording.marks(1)), (&[10, 11][..], &[10, 11, 12][..]));
    assert_eq!((recording.items(0), recording.items(1)), (1, 0));
}

/// A crash of recovery: what it wrote is lost in part, what was there before it is not.
#[test]
fn a_state_crashes_again() {
    let disk = CrashDisk::new(4 * BLOCK, 0);
    disk.write(&[Piece { offset: 0, data: &[1; BLOCK as usize] }]).unwrap();
    disk.write(&[Piece { offset: BLOCK, data: &[2; BLOCK as usize] }]).unwrap();
    let recording = disk.recording();
    let states = recording.states(0);
    for (number, state) in states.distinct() {
        let before = image(&state);
        let again = CrashDisk::over(&state, number);
        again.write(&[Piece { offset: 2 * BLOCK, data: &[3; BLOCK as usize] }]).unwrap();
        let second = again.recording();
        assert_eq!(image(&second.state(0, 0)), before);
        assert_eq!(image(&second.state(0, 1))[..2 * BLOCK as usize], before[..2 * BLOCK as usize]);
        assert_eq!(image(&second.state(0, 1))[2 * BLOCK as usize], 3);
        assert_eq!(image(&state), before, "a recording leaves what it lies over as it was");
    }
}

/// A store writes the same again and again: that is no other state.
#[test]
fn what_was_there_already_makes_no_other_state() {
    let disk = CrashDisk::new(4 * BLOCK, 0);
    let write = |block: u64, byte| {
        disk.write(&[Piece { offset: block * BLOCK, data: &[byte; BLOCK as usize] }]).unwrap();
    };
    write(0, 1);
    write(1, 2);
    disk.flush().unwrap();
    write(1, 2);
    let states = disk.recording().states(1);
    let has_garbage = |number| states.describe(number).contains("garbage");
    let (torn, whole): (Vec<u64>, Vec<u64>) =
        states.distinct().map(|(number, _)| number).partition(|number| has_garbage(*number));
    assert_eq!(whole, [0]);
    // Garbage behind each of seven cuts, in the sector before it, and in the page.
    assert_eq!(torn.len(), 7 + 7 + 1);
}

/// What was discarded and is written again is what it was only where the discard did nothing.
#[test]
fn a_write_of_what_was_discarded_makes_another_state_where_that_reads_otherwise() {
    let disk = CrashDisk::new(4 * BLOCK, 0);
    let data = vec![1; BLOCK as usize];
    disk.write(&[Piece { offset: 0, data: &data }]).unwrap();
    disk.flush().unwrap();
    disk.discard(0, BLOCK).unwrap();
    disk.flush().unwrap();
    disk.write(&[Piece { offset: 0, data: &data }]).unwrap();
    let states = disk.recording().states(2);
    let distinct: HashSet<Vec<u8>> = states.distinct().map(|(_, state)| image(&state)).collect();
    assert_eq!(distinct, images(&states).into_iter().collect());
    assert!(distinct.iter().any(|state| state[..BLOCK as usize] == data));
    assert!(distinct.iter().any(|state| state[..BLOCK as usize] == [0; BLOCK as usize]));
}
