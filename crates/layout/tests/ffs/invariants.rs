//! Any sequence of operations leaves everything consistent, and every file with the blocks that a
//! slow model gives it.

use agewell_layout::ffs::{
    FastFileSystem, FragmentPlacement, IndirectPlacement, Optimization, Parameters, Policies,
};
use agewell_layout::file_system::{FileSystem, FileSystemError};
use proptest::prelude::*;

use crate::model::Model;
use crate::recorder::Recorder;

/// Operations, with numbers that are taken modulo the number of candidates.
#[derive(Debug, Clone)]
enum Step {
    Create(usize),
    MakeDirectory(usize),
    Write(usize, u64, u64),
    Append(usize, u64),
    Truncate(usize, u64),
    Remove(usize),
    RemoveDirectory(usize),
    Rename(usize, usize),
    Sync,
}

/// Files with holes reach this far: an indirect block names 4 MiB, the double one the next two.
const FAR_BYTES: u64 = 12 << 20;

fn step() -> impl Strategy<Value = Step> {
    let any = 0_usize..1000;
    let size = prop_oneof![
        3 => (1_u64..16).prop_map(|blocks| blocks * 4096),
        4 => 1_u64..9000,
        4 => 8000_u64..120_000,
        1 => 100_000_u64..1_000_000,
    ];
    prop_oneof![
        4 => any.clone().prop_map(Step::Create),
        1 => any.clone().prop_map(Step::MakeDirectory),
        1 => (any.clone(), 0_u64..40, 1_u64..4)
            .prop_map(|(file, at, blocks)| Step::Write(file, at * 4096, blocks * 4096)),
        2 => (any.clone(), 0_u64..300_000, size.clone())
            .prop_map(|(file, at, size)| Step::Write(file, at, size)),
        1 => (any.clone(), 0_u64..FAR_BYTES, 1_u64..9000)
            .prop_map(|(file, at, size)| Step::Write(file, at, size)),
        6 => (any.clone(), size.clone()).prop_map(|(file, size)| Step::Append(file, size)),
        2 => (any.clone(), 0_u64..400_000).prop_map(|(file, size)| Step::Truncate(file, size)),
        1 => (any.clone(), 0_u64..FAR_BYTES).prop_map(|(file, size)| Step::Truncate(file, size)),
        2 => any.clone().prop_map(Step::Remove),
        1 => any.clone().prop_map(Step::RemoveDirectory),
        1 => (any.clone(), any).prop_map(|(file, to)| Step::Rename(file, to)),
        1 => Just(Step::Sync),
    ]
}

fn policies() -> impl Strategy<Value = Policies> {
    let indirect = prop::sample::select(vec![
        IndirectPlacement::NewGroup,
        IndirectPlacement::RoomyGroup,
        IndirectPlacement::NearPrevious,
        IndirectPlacement::NoSwitch,
    ]);
    let fragments =
        prop::sample::select(vec![FragmentPlacement::BestFit, FragmentPlacement::NearPrevious]);
    let optimization = prop::sample::select(vec![Optimization::Time, Optimization::Space]);
    (any::<bool>(), indirect, fragments, optimization).prop_map(
        |(realloc, indirect, fragments, optimization)| Policies {
            realloc,
            indirect,
            fragments,
            optimization,
        },
    )
}

/// A small file system of about 4 MB: it fills up.
fn small(policies: Policies, fragment_bytes: u32, maxcontig: u32, rotdelay_ms: u32) -> Parameters {
    Parameters {
        block_bytes: 4096.max(fragment_bytes),
        fragment_bytes,
        sectors_per_track: 17,
        heads: 4,
        cylinders: 125,
        cylinders_per_group: 24,
        maxcontig,
        rotdelay_ms,
        maxbpg: 20,
        bytes_per_inode: 16384,
        ..Parameters::smith_1996(policies)
    }
}

struct Run {
    system: FastFileSystem,
    directories: Vec<u32>,
    files: Vec<u32>,
    model: Model,
    device: Recorder,
    /// The step was a write of which a part fitted.
    kept_part: bool,
}

impl Run {
    fn write(&mut self, file: u32, at: u64, size: u64) -> Result<(), FileSystemError> {
        let written = self.system.write(file, at, size, &mut self.device);
        if written.is_ok() {
            self.model.write(file, at, size);
        } else {
            self.kept_part = self.model.write_part(&self.system, file, at, size);
        }
        written
    }

    fn apply(&mut self, step: &Step) -> Result<(), FileSystemError> {
        let directory = |index: usize| self.directories[index % self.directories.len()];
        let file = |index: usize| self.files.get(index % self.files.len().max(1)).copied();
        match *step {
            Step::Create(index) => {
                let parent = directory(index);
                let made = self.system.create(parent, &mut self.device)?;
                self.files.push(made);
                self.model.create(made);
            }
            Step::MakeDirectory(index) => {
                let made = self.system.make_directory(directory(index), &mut self.device)?;
                self.directories.push(made);
            }
            Step::Write(index, at, size) => {
                if let Some(file) = file(index) {
                    self.write(file, at, size)?;
                }
            }
            Step::Append(index, size) => {
                if let Some(file) = file(index) {
                    let at = self.system.size_bytes(file);
                    self.write(file, at, size)?;
                }
            }
            Step::Truncate(index, size) => {
                if let Some(file) = file(index) {
                    self.system.truncate(file, size, &mut self.device)?;
                    self.model.truncate(file, size);
                }
            }
            Step::Remove(index) => {
                if let Some(file) = file(index) {
                    self.system.remove(file, &mut self.device)?;
                    self.model.remove(file);
                    self.files.swap_remove(index % self.files.len());
                }
            }
            Step::RemoveDirectory(index) => {
                let directory = directory(index);
                self.system.remove_directory(directory, &mut self.device)?;
                self.directories.retain(|other| *other != directory);
            }
            Step::Rename(index, to) => {
                let to = directory(to);
                if let Some(file) = file(index) {
                    self.system.rename(file, to, &mut self.device)?;
                }
            }
            Step::Sync => self.system.sync(&mut self.device)?,
        }
        Ok(())
    }

    /// What `step`, which has been refused, may have been given on the way and gave back: whole
    /// blocks, and fragments beside them.
    fn given_back(&self, step: &Step) -> (u32, u32) {
        let file = |index: usize| self.files[index % self.files.len()];
        match *step {
            // Of a write that fitted in part the rest was refused.
            Step::Write(index, at, size) => self
                .model
                .needs_before(file(index), self.model.first_missing(file(index), at, size)),
            Step::Append(index, size) => {
                let at = self.model.size_bytes(file(index));
                self.model
                    .needs_before(file(index), self.model.first_missing(file(index), at, size))
            }
            Step::Truncate(index, size) => self.model.needs_before(file(index), size - 1),
            // The new directory has its first fragment before its parent has room for the name.
            Step::MakeDirectory(_) => (1, 1),
            _ => (0, 0),
        }
    }
}

/// Small ones, plausible ones, and the largest.
fn any_number() -> impl Strategy<Value = u32> {
    prop_oneof![3 => 0_u32..20, 3 => 1_u32..200, 2 => 200_u32..20_000, 1 => any::<u32>()]
}

/// Whether users had used up what they may, or there was no free block, while a refused operation
/// held `blocks` and `fragments` that it has given back since.
fn was_full(system: &FastFileSystem, (blocks, fragments): (u32, u32)) -> bool {
    let usage = system.usage();
    let whole = system.fragments_per_block();
    let free_blocks: u32 = system
        .free_runs()
        .map(|(first, count)| {
            let start = first.next_multiple_of(whole);
            (first + count).saturating_sub(start) / whole
        })
        .sum();
    let given_back = blocks * whole + fragments;
    usage.free_fragments <= usage.reserved_fragments + given_back || free_blocks <= blocks
}

/// Does `steps` one after the other and checks everything now and then.
fn run_and_check(parameters: &Parameters, steps: &[Step]) -> Run {
    let system = FastFileSystem::new(parameters).unwrap();
    system.verify();
    let mut run = Run {
        system,
        directories: vec![FastFileSystem::ROOT],
        files: Vec::new(),
        model: Model::new(parameters),
        device: Recorder::default(),
        kept_part: false,
    };
    for (number, step) in steps.iter().enumerate() {
        let before = run.system.usage();
        run.kept_part = false;
        let done = run.apply(step);
        if done.is_err() && !run.kept_part {
            assert_eq!(before, run.system.usage(), "what is refused leaves all as it was");
        }
        if done == Err(FileSystemError::NoSpace) {
            assert!(was_full(&run.system, run.given_back(step)), "refused with room left");
        }
        if number % 8 == 0 || done.is_err() {
            run.system.verify();
            run.model.check(&run.system);
        }
    }
    run.system.verify();
    run.model.check(&run.system);
    run
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_sequence_of_operations_is_consistent(
        steps in prop::collection::vec(step(), 1..150),
        policies in policies(),
        fragment_bytes in prop::sample::select(vec![512_u32, 1024, 4096]),
        maxcontig in 1_u32..12,
        rotdelay_ms in prop::sample::select(vec![0_u32, 4]),
    ) {
        let parameters = small(policies, fragment_bytes, maxcontig, rotdelay_ms);
        let mut run = run_and_check(&parameters, &steps);
        // Nothing that was written waits behind a sync, and nothing lies outside the file system.
        run.system.sync(&mut run.device).unwrap();
        let sectors = u64::from(run.system.fragments() * run.system.fragment_bytes() / 512);
        let mut transfers = run.device.writes.iter().chain(&run.device.reads);
        let inside = transfers.all(|transfer| {
            transfer.sectors > 0 && transfer.sector + u64::from(transfer.sectors) <= sectors
        });
        prop_assert!(inside);
        run.device.writes.clear();
        run.system.sync(&mut run.device).unwrap();
        prop_assert_eq!(run.device.take_data(), []);
    }

    #[test]
    fn any_parameters_make_a_file_system_or_are_refused_in_a_line(
        (block, fragment, sector) in (9_u32..18, 8_u32..18, 7_u32..13),
        (track, heads) in (any_number(), any_number()),
        (cylinders, per_group) in (any_number(), any_number()),
        (minfree_pct, maxcontig, maxbpg) in (0_u32..110, any_number(), any_number()),
        (rotdelay_ms, rpm, positions) in (any_number(), any_number(), any_number()),
        (bytes_per_inode, transfer, entry_bytes) in (any_number(), any_number(), 0_u32..300),
        policies in policies(),
    ) {
        let parameters = Parameters {
            block_bytes: 1 << block,
            fragment_bytes: 1 << fragment,
            sector_bytes: 1 << sector,
            sectors_per_track: track,
            heads,
            cylinders,
            cylinders_per_group: per_group,
            minfree_pct,
            maxcontig,
            maxbpg,
            rotdelay_ms,
            rpm,
            rotational_positions: positions,
            bytes_per_inode,
            transfer_blocks_max: transfer,
            entry_bytes,
            policies,
        };
        if let Err(error) = parameters.check() {
            prop_assert!(!error.to_string().contains('\n'));
        } else if u64::from(track) * u64::from(heads) * u64::from(cylinders) < 1 << 16 {
            let Ok(mut system) = FastFileSystem::new(&parameters) else { return Ok(()) };
            let root = system.root();
            let device = &mut Recorder::default();
            for _ in 0..4 {
                // There may be no room at all.
                if let Ok(file) = system.create(root, device) {
                    let _ = system.write(file, 0, 300_000, device);
                }
            }
            system.verify();
        }
    }
}

/// A block behind the twelfth needs an indirect block, too: with room for one of the two the write
/// is refused, and the one is given back.
#[test]
fn regression_a_write_is_refused_where_its_indirect_block_takes_the_last_room() {
    let steps = [
        [Step::Create(0), Step::Create(0), Step::Create(0), Step::Create(0)].as_slice(),
        &[Step::Create(0), Step::Create(0), Step::Create(0)],
        &[
            Step::Write(253, 77824, 4096),
            Step::Append(25, 889_307),
            Step::Remove(257),
            Step::Truncate(127, 12822),
            Step::Append(694, 934_653),
            Step::Remove(479),
            Step::Append(102, 102_401),
            Step::Append(214, 957_225),
            Step::Append(370, 872_449),
            Step::Truncate(366, 0),
        ],
    ];
    let mut run = run_and_check(&small(Policies::PLAIN, 4096, 1, 0), &steps.concat());
    let usage = run.system.usage();
    assert_eq!(usage.free_fragments, usage.reserved_fragments + 1);
    let refused = Step::Write(533, 49152, 4096);
    assert_eq!(run.apply(&refused), Err(FileSystemError::NoSpace));
    assert_eq!(run.system.usage(), usage);
    assert_eq!(run.given_back(&refused), (1, 0));
    run.system.verify();
    run.model.check(&run.system);
}

/// Where a file goes on behind a hole, cutting it back frees no map within the hole: each one made
/// for a block that is refused is given back by itself.
#[test]
fn maps_made_within_a_hole_are_given_back_when_their_block_is_refused() {
    let parameters = small(Policies::PLAIN, 4096, 1, 0);
    let first_double = (12 + 1024) * 4096;
    // Free blocks left, and where the refused block lies: behind the indirect block, behind the
    // first one of the double indirect block, and, of a file that has no maps at all, the same.
    for (left, is_long, at) in [
        (1, true, 12 * 4096),
        (1, true, first_double),
        (1, false, first_double),
        (2, false, first_double),
    ] {
        let mut system = FastFileSystem::new(&parameters).unwrap();
        let root = system.root();
        let file = system.create(root, &mut ()).unwrap();
        let full = system.create(root, &mut ()).unwrap();
        if is_long {
            // Its last block hangs on the double indirect block's second one.
            system.truncate(file, FAR_BYTES, &mut ()).unwrap();
        }
        let usage = loop {
            let usage = system.usage();
            if usage.free_fragments <= usage.reserved_fragments + left {
                break usage;
            }
            system.write(full, system.size_bytes(full), 4096, &mut ()).unwrap();
        };
        assert_eq!(usage.free_fragments, usage.reserved_fragments + left);
        let maps = system.indirect_blocks(file);
        for _ in 0..3 {
            assert_eq!(system.write(file, at, 4096, &mut ()), Err(FileSystemError::NoSpace));
            assert_eq!((system.usage(), system.indirect_blocks(file)), (usage, maps.clone()));
            system.verify();
        }
        system.truncate(full, 0, &mut ()).unwrap();
        system.write(file, at, 4096, &mut ()).unwrap();
        system.verify();
        system.remove(file, &mut ()).unwrap();
        system.verify();
    }
}
