//! The remap table and the plans of moves against slow models that track every sector by itself.

use agewell_core::{Operation, RandomStreams, Sector, SectorCount, SimDuration, SimTime};
use agewell_shuffle::{
    Aging, MoveMode, Observation, Place, PolicyConfig, QuantumGrid, RemapKind, RemapTable,
    ShuffleConfig, ShuffleView, Shuffler, choose, plan_moves,
};
use proptest::prelude::*;

fn grid(quanta: u64, spare: u64, quantum: u64, head: u64, tail: u64) -> QuantumGrid {
    let capacity = head + (quanta + spare) * quantum + tail;
    let logical = head + quanta * quantum;
    let logical = if spare == 0 { capacity } else { logical };
    QuantumGrid::new(
        SectorCount(capacity),
        SectorCount(logical),
        Sector(head),
        SectorCount(quantum),
    )
    .expect("the generator makes grids that fit")
}

fn config(kind: RemapKind, coverage_ppm: u32, links: bool, interleave: u32) -> PolicyConfig {
    PolicyConfig {
        kind,
        coverage_ppm,
        links,
        interleave,
        arrange_unaccessed: false,
        center: 0,
        reserved: None,
    }
}

/// Every sector's place, worked out one at a time with plain arithmetic.
fn place_of_sector(table: &RemapTable, sector: u64) -> u64 {
    let grid = table.grid();
    let (head, size) = (grid.first_sector().0, grid.quantum_sectors().0);
    if sector < head || sector >= head + u64::from(grid.quanta()) * size {
        return sector;
    }
    let slot = table.slot_of(((sector - head) / size) as u32);
    head + u64::from(slot) * size + (sector - head) % size
}

fn shuffled_table(grid: QuantumGrid, seed: u64) -> RemapTable {
    let mut table = RemapTable::new(grid);
    let seen = Observation::new(grid.quanta(), false);
    let mut stream = RandomStreams::new(seed).stream("test");
    let view = ShuffleView { seen: &seen, table: &table };
    let placement = choose(&view, &config(RemapKind::Random, 1_000_000, false, 1), &mut stream);
    table.adopt(&placement);
    table.verify();
    table
}

proptest! {
    /// The pieces are exactly the runs of consecutive sectors that the sector-by-sector model
    /// finds.
    #[test]
    fn pieces_are_the_maximal_runs_of_the_sector_by_sector_model(
        quanta in 2_u64..12, quantum in 1_u64..9, head in 0_u64..5, tail in 0_u64..1,
        seed in 0_u64..1000, from in 0_u64..120, length in 0_u64..60,
    ) {
        let grid = grid(quanta, 0, quantum, head, tail);
        let table = shuffled_table(grid, seed);
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for sector in from..from + length {
            let place = place_of_sector(&table, sector);
            match runs.last_mut() {
                Some((start, sectors)) if *start + *sectors == place => *sectors += 1,
                _ => runs.push((place, 1)),
            }
        }
        let pieces: Vec<(u64, u64)> = table
            .map(Sector(from), SectorCount(length))
            .map(|piece| (piece.sector.0, piece.sectors.0))
            .collect();
        prop_assert_eq!(pieces, runs);
    }

    /// Carrying out a plan copy by copy on a model disk loses nothing, and stopping after any copy
    /// leaves a valid copy of every quantum on the disk, or (on a full disk) all but one there and
    /// that one in the buffer.
    #[test]
    fn every_quantum_has_a_valid_copy_after_every_step(
        quanta in 2_u64..40, spare in 0_u64..3, before in 0_u64..1000, after in 0_u64..1000,
    ) {
        let grid = grid(quanta, spare, 4, 0, 0);
        let start = shuffled_table(grid, before);
        let target = shuffled_table(grid, after);
        let mut goal = start.clone();
        // Keep some quanta in place, so that plans are not always one long cycle.
        let mut seen = Observation::new(grid.quanta(), false);
        for quantum in 0..quanta as u32 {
            (0..target.slot_of(quantum) % 3).for_each(|_| seen.access(quantum));
        }
        seen.end_interval(Aging::new(1.0));
        let view = ShuffleView { seen: &seen, table: &start };
        let mut stream = RandomStreams::new(0).stream("test");
        let mut policy = config(RemapKind::Shuffle, 1_000_000, false, 1);
        policy.center = (quanta / 2) as u32;
        goal.adopt(&choose(&view, &policy, &mut stream));

        let placement = choose(&view, &policy, &mut stream);
        let plan = plan_moves(&start, &placement, policy.center, |_, _| false);
        let mut disk: Vec<Option<u32>> =
            (0..grid.slots()).map(|slot| start.quantum_in(slot)).collect();
        let mut buffer = None;
        for step in &plan.steps {
            let content = match step.from {
                Place::Slot(slot) => disk[slot as usize],
                Place::Buffer => buffer.take(),
            };
            prop_assert_eq!(content, Some(step.quantum));
            match step.to {
                Place::Slot(slot) => disk[slot as usize] = content,
                Place::Buffer => {
                    prop_assert_eq!(spare, 0);
                    buffer = content;
                }
            }
            for quantum in 0..quanta as u32 {
                let valid = disk.contains(&Some(quantum)) || buffer == Some(quantum);
                prop_assert!(valid, "quantum {} is lost after {:?}", quantum, step);
            }
        }
        for quantum in 0..quanta as u32 {
            prop_assert_eq!(disk[goal.slot_of(quantum) as usize], Some(quantum));
        }
        let moved = (0..quanta as u32).filter(|q| start.slot_of(*q) != goal.slot_of(*q)).count();
        prop_assert_eq!(plan.moved_quanta as usize, moved);
    }

    /// Whatever the policy, the interval and the mode, a read returns what was last written:
    /// requests, rearrangements and moves in idle time interleaved at random, on a model disk of
    /// single sectors.
    #[test]
    fn a_read_returns_what_was_last_written(
        kind in prop::sample::select(RemapKind::ALL.to_vec()),
        idle in any::<bool>(), links in any::<bool>(), interleave in 1_u32..4,
        quanta in 4_u64..20, extra in 0_u64..5,
        actions in prop::collection::vec((0_u8..8, 0_u64..100, 1_u64..9), 1..120),
    ) {
        let spare = if kind == RemapKind::ReservedCopy { extra + quanta } else { extra };
        let grid = grid(quanta, spare, 4, 3, 0);
        let config = ShuffleConfig {
            kind, links, interleave, reserved: 0.3,
            interval: Some(SimDuration(10)), first_after: SimDuration(10),
            moves: if idle { MoveMode::Idle } else { MoveMode::Instant },
            ..ShuffleConfig::default()
        };
        let streams = RandomStreams::new(1);
        let mut shuffler = Shuffler::on_grid(&config, grid, SimDuration::ZERO, &streams)
            .expect("the region fits");
        let mut model = Model::new(&shuffler, 3 + quanta * 4);
        let mut now = 0;
        for (step, (action, sector, sectors)) in actions.into_iter().enumerate() {
            match action {
                0..=3 => {
                    let sector = sector % model.logical;
                    let sectors = sectors.min(model.logical - sector);
                    let operation =
                        if action < 2 { Operation::Write } else { Operation::Read };
                    shuffler.observe(SimTime(now), operation, Sector(sector), SectorCount(sectors));
                    model.request(&shuffler, operation, sector, sectors, step as u64 + 1)?;
                }
                4 | 5 => model.idle(&mut shuffler),
                _ => now += 7,
            }
            while shuffler.due(SimTime(now)) {
                let before = shuffler.table().clone();
                shuffler.rearrange();
                model.rearranged(&before, &shuffler);
            }
        }
        while shuffler.next_step().is_some() {
            model.idle(&mut shuffler);
        }
        shuffler.table().verify();
        model.request(&shuffler, Operation::Read, 0, model.logical, 0)?;
    }
}

/// A disk of single sectors, and what the host believes to be in them.
struct Model {
    logical: u64,
    expected: Vec<u64>,
    disk: Vec<u64>,
    buffer: Vec<u64>,
}

impl Model {
    fn new(shuffler: &Shuffler, logical: u64) -> Self {
        let grid = shuffler.table().grid();
        let physical = grid.first_sector().0 + u64::from(grid.slots()) * grid.quantum_sectors().0;
        Self {
            logical,
            expected: vec![0; logical as usize],
            disk: vec![0; physical as usize],
            buffer: Vec::new(),
        }
    }

    fn request(
        &mut self,
        shuffler: &Shuffler,
        operation: Operation,
        sector: u64,
        sectors: u64,
        stamp: u64,
    ) -> Result<(), TestCaseError> {
        let grid = shuffler.table().grid();
        let mut logical = sector;
        for piece in shuffler.map(Sector(sector), SectorCount(sectors)) {
            for place in piece.sector.0..piece.sector.0 + piece.sectors.0 {
                let located = grid.locate(Sector(logical));
                let aside = located.filter(|(q, _)| shuffler.held_in_buffer() == Some(*q));
                let content = match aside {
                    Some((_, offset)) => &mut self.buffer[offset as usize],
                    None => &mut self.disk[place as usize],
                };
                if operation == Operation::Write {
                    *content = stamp;
                    self.expected[logical as usize] = stamp;
                }
                prop_assert_eq!(*content, self.expected[logical as usize], "sector {}", logical);
                logical += 1;
            }
        }
        prop_assert_eq!(logical, sector + sectors);
        Ok(())
    }

    fn idle(&mut self, shuffler: &mut Shuffler) {
        let Some(step) = shuffler.next_step() else { return };
        let grid = *shuffler.table().grid();
        let sectors_of = |slot: u32| {
            let first = grid.slot_sector(slot).0 as usize;
            first..first + grid.quantum_sectors().0 as usize
        };
        let requests: Vec<_> = shuffler.requests_of(step).collect();
        let disk_side = [step.from, step.to].iter().filter(|p| **p != Place::Buffer).count();
        assert_eq!(requests.len(), if step.already_there { 0 } else { disk_side });
        if !step.already_there {
            let content = match step.from {
                Place::Slot(slot) => self.disk[sectors_of(slot)].to_vec(),
                Place::Buffer => std::mem::take(&mut self.buffer),
            };
            match step.to {
                Place::Slot(slot) => self.disk[sectors_of(slot)].copy_from_slice(&content),
                Place::Buffer => self.buffer = content,
            }
        }
        shuffler.complete_step();
    }

    /// Instant moves carry the contents along.
    fn rearranged(&mut self, before: &RemapTable, shuffler: &Shuffler) {
        let after = shuffler.table();
        let old = self.disk.clone();
        for sector in 0..self.logical {
            let from = place_of_sector(before, sector) as usize;
            self.disk[place_of_sector(after, sector) as usize] = old[from];
        }
    }
}
