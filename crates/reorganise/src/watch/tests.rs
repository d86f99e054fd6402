//! The history and the choice on made-up disks: what is read together is moved, and nothing else.

use agewell_log::policy::cost::CostModel;
use agewell_regrouping::{
    Choice, MemberKey, MemberView, Part, ReadHistory, Request, Run, Steps, choose, place_sum,
    run_slots,
};
use agewell_snapshot::{Extent, ExtentFlags, FileKind, NO_TIME, Snapshot, SnapshotFile};
use proptest::prelude::*;

use super::state::{Words, read};
use super::tree_view::TreeView;
use super::{ROW_SLOTS, SLOT_BYTES};

/// 12 ms to go elsewhere, 150 MB/s: a disk of today.
const DISK: CostModel = CostModel {
    access_ns: 12_000_000,
    further_ns: 12_000_000,
    bandwidth_bytes_per_s: 150_000_000,
    block_bytes: SLOT_BYTES,
};

/// No arm: a slot anywhere takes 60 us more than the next.
const FLASH: CostModel =
    CostModel { access_ns: 60_000, further_ns: 60_000, bandwidth_bytes_per_s: 500_000_000, ..DISK };

fn key(file: u64) -> MemberKey {
    MemberKey { number: 100 + file, birth_ns: 7 }
}

/// Files, each by its directory and where its pieces lie (slot, slots).
struct Disk {
    cost: CostModel,
    files: Vec<(u64, Vec<(u64, u64)>)>,
    arm: u64,
}

impl Disk {
    /// `count` files of `slots` slots, each `apart` slots behind the one before, all of directories
    /// of their own.
    fn scattered(cost: CostModel, count: u64, slots: u64, apart: u64) -> Self {
        // Not in the order of their numbers.
        let place = |file: u64| 1000 + (file * 7 % count) * (slots + apart);
        let files = (0..count).map(|file| (1000 + file, vec![(place(file), slots)]));
        Self { cost, files: files.collect(), arm: 0 }
    }

    fn snapshot(&self) -> Snapshot {
        let file = |inode, kind, directory, first_extent, extents, slots: u64| SnapshotFile {
            inode,
            kind,
            links: 1,
            size_bytes: slots * SLOT_BYTES,
            birth_ns: 7,
            change_ns: NO_TIME,
            modify_ns: NO_TIME,
            directory,
            readdir_rank: 0,
            name_rank: 0,
            first_extent,
            extents,
        };
        let mut snapshot = Snapshot::default();
        snapshot.files.push(file(2, FileKind::Directory, 2, 0, 0, 0));
        for (number, (directory, pieces)) in self.files.iter().enumerate() {
            let first_extent = snapshot.extents.len() as u32;
            let mut at = 0;
            for (slot, slots) in pieces {
                snapshot.extents.push(Extent {
                    logical_bytes: at * SLOT_BYTES,
                    physical_bytes: slot * SLOT_BYTES,
                    length_bytes: slots * SLOT_BYTES,
                    flags: ExtentFlags::default(),
                });
                at += slots;
            }
            let inode = key(number as u64).number;
            let pieces = pieces.len() as u32;
            snapshot.files.push(file(
                inode,
                FileKind::Regular,
                *directory,
                first_extent,
                pieces,
                at,
            ));
        }
        snapshot
    }

    /// The file is read whole.
    fn read(&mut self, history: &mut ReadHistory, file: usize) {
        let mut offset = 0;
        for (slot, slots) in self.files[file].1.clone() {
            self.request(history, file, offset, slot, slots, true);
            offset += slots;
        }
    }

    fn request(
        &mut self,
        history: &mut ReadHistory,
        file: usize,
        offset: u64,
        slot: u64,
        slots: u64,
        is_read: bool,
    ) {
        let access_ns = if slot == self.arm { 0 } else { self.cost.access_ns };
        let bytes = slots * SLOT_BYTES;
        self.arm = slot + slots;
        history.observe(&Request {
            is_read,
            slot,
            slots,
            time_ns: access_ns + self.cost.streaming_ns(bytes),
            parts: vec![Part { file: key(file as u64), offset, slots }],
        });
    }

    fn choose(&self, history: &mut ReadHistory, allowance_bytes: u64) -> Choice {
        let snapshot = self.snapshot();
        let view = TreeView::new(&snapshot, history);
        let slots = |(number, _)| (number, run_slots(view.places().runs(number)));
        let sizes: Vec<(u32, u32)> = history.known().map(slots).collect();
        for (number, slots) in sizes {
            history.set_slots(number, slots);
        }
        choose(history, &view, allowance_bytes)
    }

    /// The groups are moved as chosen: side by side, behind everything.
    fn carry(&mut self, history: &mut ReadHistory, choice: &Choice) {
        let mut at = 10_000_000;
        for group in &choice.groups {
            for number in &group.files {
                let file = history.file(*number).expect("known").key.number - 100;
                let pieces = &mut self.files[file as usize].1;
                let mut offset = 0;
                let runs = pieces.iter().map(|(slot, slots)| {
                    offset += slots;
                    Run { offset: offset - slots, slot: *slot, slots: *slots }
                });
                let before: Vec<Run> = runs.collect();
                *pieces = vec![(at, offset)];
                let after = [Run { offset: 0, slot: at, slots: offset }];
                at += offset;
                history.tried(*number);
                history.moved(*number, &before, place_sum(&after));
            }
            history.trust.moved(group.torn, group.expected);
            history.totals.moving_ns += group.cost_ns as u64;
        }
    }
}

/// Files of a program that is started again and again, and others that are read once.
fn program(disk: &mut Disk, history: &mut ReadHistory, files: usize, starts: usize) {
    for start in 0..starts {
        (0..files).for_each(|file| disk.read(history, file));
        // One that nobody reads again.
        disk.read(history, files + start);
    }
}

fn chosen(history: &ReadHistory, choice: &Choice) -> Vec<u64> {
    let groups = choice.groups.iter().flat_map(|group| &group.files);
    let mut files: Vec<u64> =
        groups.filter_map(|file| history.file(*file)).map(|file| file.key.number - 100).collect();
    files.sort_unstable();
    files
}

#[test]
fn files_that_are_read_together_again_and_again_are_chosen_and_no_others() {
    let mut disk = Disk::scattered(DISK, 240, 2, 5000);
    let mut history = ReadHistory::new(1000, ROW_SLOTS, DISK);
    program(&mut disk, &mut history, 200, 8);
    let choice = disk.choose(&mut history, u64::MAX);
    assert_eq!(chosen(&history, &choice), (0..200).collect::<Vec<u64>>());
    let group = &choice.groups[0];
    assert!(group.saved_ns > group.cost_ns);
    // Neighbours in the order of reads: each is followed by the one that was read after it.
    let order: Vec<u64> =
        group.files.iter().map(|file| history.file(*file).unwrap().key.number).collect();
    let kept = order.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
    assert!(kept >= order.len() - 2, "{order:?}");
}

#[test]
fn what_is_read_once_is_not_worth_a_move() {
    let mut disk = Disk::scattered(DISK, 600, 2, 5000);
    let mut history = ReadHistory::new(1000, ROW_SLOTS, DISK);
    (0..600).for_each(|file| disk.read(&mut history, file));
    let choice = disk.choose(&mut history, u64::MAX);
    assert!(choice.groups.is_empty());
    assert_eq!(choice.considered.groups, 0);
}

#[test]
fn nothing_pays_on_flash_and_the_best_is_told() {
    let mut disk = Disk::scattered(FLASH, 240, 200, 5000);
    let mut history = ReadHistory::new(1000, ROW_SLOTS, FLASH);
    program(&mut disk, &mut history, 200, 5);
    let choice = disk.choose(&mut history, u64::MAX);
    assert!(choice.groups.is_empty(), "{choice:?}");
    let told = choice.considered;
    assert!(told.declined > 0 && told.best_cost_seconds > told.best_saved_seconds, "{told:?}");
}

#[test]
fn files_side_by_side_already_lie_well() {
    let mut disk = Disk::scattered(DISK, 240, 2, 5000);
    for file in 0..200 {
        disk.files[file].1 = vec![(5_000_000 + 2 * file as u64, 2)];
    }
    let mut history = ReadHistory::new(1000, ROW_SLOTS, DISK);
    program(&mut disk, &mut history, 200, 8);
    let choice = disk.choose(&mut history, u64::MAX);
    assert!(choice.groups.is_empty());
    assert_eq!((choice.considered.groups, choice.considered.well), (1, 1));
}

#[test]
fn a_file_in_pieces_that_is_read_again_and_again_is_chosen_alone() {
    let mut disk = Disk::scattered(DISK, 4, 2, 5000);
    // 20 MiB, more than is laid in one row, in pieces of 256 KiB.
    disk.files[0].1 = (0..80).map(|piece| (100_000 + piece * 1000, 64)).collect();
    let mut history = ReadHistory::new(1000, ROW_SLOTS, DISK);
    for _ in 0..30 {
        (0..2).for_each(|file| disk.read(&mut history, file));
    }
    let choice = disk.choose(&mut history, u64::MAX);
    assert_eq!(chosen(&history, &choice), [0]);
}

#[test]
fn a_file_that_is_written_as_often_as_it_is_read_is_left() {
    let mut disk = Disk::scattered(DISK, 240, 2, 5000);
    let mut history = ReadHistory::new(1000, ROW_SLOTS, DISK);
    for _ in 0..8 {
        (0..200).for_each(|file| disk.read(&mut history, file));
        for file in 0..200 {
            let (slot, slots) = disk.files[file].1[0];
            disk.request(&mut history, file, 0, slot, slots, false);
        }
    }
    assert!(disk.choose(&mut history, u64::MAX).groups.is_empty());
}

#[test]
fn files_taken_out_of_a_row_of_their_directory_count_as_torn() {
    let mut disk = Disk::scattered(DISK, 240, 2, 5000);
    // Every other file of a directory, in its order.
    for file in 0..200 {
        let place = if file < 100 { 2 * file } else { 2 * (file - 100) + 1 };
        disk.files[file] = (50, vec![(5_000_000 + 2 * place as u64, 2)]);
    }
    let mut history = ReadHistory::new(1000, ROW_SLOTS, DISK);
    for _ in 0..8 {
        (0..100).for_each(|file| disk.read(&mut history, file));
    }
    let choice = disk.choose(&mut history, u64::MAX);
    // A gap of a small file is streamed over, so that nothing is to be gained.
    assert!(choice.groups.is_empty(), "{choice:?}");
}

#[test]
fn what_moves_save_is_seen_in_the_reads_that_follow() {
    let mut disk = Disk::scattered(DISK, 240, 2, 5000);
    let mut history = ReadHistory::new(1000, ROW_SLOTS, DISK);
    program(&mut disk, &mut history, 200, 8);
    assert!(history.trust.saved_ns().abs() < 1.0);
    let choice = disk.choose(&mut history, u64::MAX);
    disk.carry(&mut history, &choice);
    let before_ns = history.totals.read_ns;
    program(&mut disk, &mut history, 200, 3);
    let passes_ns = (history.totals.read_ns - before_ns) as f64;
    // Three passes over 200 files, each 12 ms nearer.
    let saved_ns = history.trust.saved_ns();
    assert!((saved_ns - 3.0 * 200.0 * 12e6).abs() < 0.05 * saved_ns, "{saved_ns}");
    assert!(passes_ns < 0.1 * saved_ns, "{passes_ns}");
    // They lie well now, and are not moved again.
    assert!(disk.choose(&mut history, u64::MAX).groups.is_empty());
}

#[test]
fn a_load_that_moves_on_is_no_longer_believed() {
    let mut disk = Disk::scattered(DISK, 4000, 2, 5000);
    let mut history = ReadHistory::new(5000, ROW_SLOTS, DISK);
    // Each program is started three times and never again.
    for first in (0..4000).step_by(100) {
        for _ in 0..3 {
            (first..first + 100).for_each(|file| disk.read(&mut history, file));
        }
        let choice = disk.choose(&mut history, u64::MAX);
        disk.carry(&mut history, &choice);
    }
    let lost_ns = history.totals.moving_ns as f64 - history.trust.saved_ns();
    // What was tried in vain cost little of the time.
    assert!(lost_ns < 0.1 * history.totals.read_ns as f64, "{lost_ns}");
}

/// Requests of whatever files, of whatever lengths.
fn requests(files: u64) -> impl Strategy<Value = Request> {
    let part = (0..files, 0_u64..4, 1_u64..9);
    let place = (any::<bool>(), 0_u64..5000, 0_u64..20_000_000);
    (place, prop::collection::vec(part, 0..3)).prop_map(|((is_read, slot, time_ns), parts)| {
        let parts: Vec<Part> = parts
            .into_iter()
            .map(|(file, offset, slots)| Part { file: key(file), offset, slots })
            .collect();
        let slots = parts.iter().map(|part| part.slots).sum::<u64>().max(1);
        Request { is_read, slot, slots, time_ns, parts }
    })
}

/// What distinguishes histories: all but the numbers of their partitions.
fn told(history: &ReadHistory) -> String {
    let related = history.related();
    let of = |number: u32| {
        let partition = related.partitions().of(number)?;
        Some(related.partitions().members(partition).collect::<Vec<_>>())
    };
    let files: Vec<_> = history
        .known()
        .map(|(number, file)| {
            let steps: Vec<_> = related.steps_from(number).collect();
            format!("{number} {file:?} {:?} {steps:?}\n", of(number))
        })
        .collect();
    format!("{:?} {:?} {:?} {files:?}", history.totals, history.trust, history.times)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is read: no more files are known than may be, the invariants of the graph hold, and one
    /// that was kept in a file meanwhile goes on as if nothing had been.
    #[test]
    fn memory_is_bounded_and_a_restart_changes_nothing(
        files_max in 8_u32..24,
        first in prop::collection::vec(requests(60), 0..150),
        second in prop::collection::vec(requests(60), 0..150),
    ) {
        let mut history = ReadHistory::new(files_max, ROW_SLOTS, DISK);
        for request in &first {
            history.observe(request);
        }
        history.interrupted();
        let mut words = Words::default();
        words.extend(history.words());
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("history");
        words.write(&path).expect("written");
        let parsed = read(&path, |words| ReadHistory::from_words(files_max, ROW_SLOTS, DISK, words));
        let mut again = parsed.expect("its own").expect("is there");
        prop_assert_eq!(told(&history), told(&again));
        for request in &second {
            history.observe(request);
            again.observe(request);
            prop_assert!(history.count() as u32 <= files_max);
            prop_assert!(history.memory_bytes() <= 4096 + 2048 * files_max as usize);
        }
        history.related().verify();
        prop_assert_eq!(told(&history), told(&again));
        // A lower limit holds at once.
        let mut words = Words::default();
        words.extend(history.words());
        words.write(&path).expect("written");
        let fewer = read(&path, |words| ReadHistory::from_words(8, ROW_SLOTS, DISK, words));
        prop_assert!(fewer.expect("its own").expect("is there").count() <= 8);
    }

    /// A choice is the same for the same history, and never beyond what may be moved.
    #[test]
    fn a_choice_is_within_its_allowance_and_always_the_same(
        reads in prop::collection::vec(0_usize..30, 0..600),
        times in 1_usize..8,
        allowance_bytes in 0_u64..600_000,
    ) {
        let mut disk = Disk::scattered(DISK, 30, 3, 700);
        let mut history = ReadHistory::new(100, ROW_SLOTS, DISK);
        for _ in 0..times {
            for file in &reads {
                disk.read(&mut history, *file);
            }
        }
        let mut twin = history.clone();
        let choice = disk.choose(&mut history, allowance_bytes);
        prop_assert_eq!(&choice, &disk.choose(&mut twin, allowance_bytes));
        let bytes: u64 = choice.groups.iter().map(|group| group.bytes).sum();
        prop_assert!(bytes <= allowance_bytes);
        for group in &choice.groups {
            prop_assert!(group.saved_ns > group.cost_ns);
        }
    }

    /// A damaged file is refused in one line, or is another history; never a panic.
    #[test]
    fn a_damaged_history_is_refused(
        requests in prop::collection::vec(requests(20), 0..60),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut history = ReadHistory::new(50, ROW_SLOTS, DISK);
        for request in &requests {
            history.observe(request);
        }
        let mut words = Words::default();
        words.extend(history.words());
        // Past the checksum, which finds nearly all of them.
        let mut changed = words.all();
        let at = at.index(changed.len());
        changed[at] = u64::from(byte);
        let mut words = Words::default();
        words.extend(changed);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("history");
        words.write(&path).expect("written");
        let _ = read(&path, |words| ReadHistory::from_words(50, ROW_SLOTS, DISK, words));
        let mut bytes = std::fs::read(&path).expect("read");
        let place = 16 + at * 8 % (bytes.len() - 16);
        bytes[place] ^= byte | 1;
        std::fs::write(&path, bytes).expect("written");
        let found = read(&path, |words| ReadHistory::from_words(50, ROW_SLOTS, DISK, words));
        let text = found.expect_err("refused").to_string();
        prop_assert!(text.contains("--state") && !text.contains('\n'), "{}", text);
    }
}
