//! Rearrangements are those that tables as large as the disk gave, and need no such tables.

use agewell_core::{Operation, RandomStreams, Sector, SectorCount, SimDuration, SimTime};
use agewell_shuffle::{MoveMode, Place, QuantumGrid, RemapKind, ShuffleConfig, Shuffler};
use rand_core::Rng;

/// FNV-1a over whatever a run gives, number by number.
struct Digest(u64);

impl Digest {
    fn take(&mut self, number: u64) {
        for byte in number.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }

    fn take_place(&mut self, place: Place) {
        self.take(match place {
            Place::Slot(slot) => slot.into(),
            Place::Buffer => u64::MAX,
        });
    }
}

/// What a fixed history of requests, rearrangements and idle times comes to.
fn digest(config: &ShuffleConfig, seed: u64) -> u64 {
    const QUANTA: u64 = 400;
    const LOGICAL: u64 = 5 + QUANTA * 4;
    let (capacity, first) = (SectorCount(LOGICAL + 600), Sector(5));
    let grid = QuantumGrid::new(capacity, SectorCount(LOGICAL), first, SectorCount(4))
        .expect("the quanta fit");
    let streams = RandomStreams::new(seed);
    let mut shuffler =
        Shuffler::on_grid(config, grid, SimDuration::ZERO, &streams).expect("the region fits");
    let mut stream = streams.stream("history");
    let mut draw = |bound: u64| ((u128::from(stream.next_u64()) * u128::from(bound)) >> 64) as u64;
    let mut digest = Digest(0xCBF2_9CE4_8422_2325);
    for now in 0..3000 {
        let span = if draw(3) == 0 { LOGICAL - 12 } else { LOGICAL / 8 };
        let (sector, sectors) = (Sector(draw(span)), SectorCount(1 + draw(12)));
        let operation = if draw(2) == 0 { Operation::Read } else { Operation::Write };
        while shuffler.due(SimTime(now)) {
            let done = shuffler.rearrange();
            digest.take(done.active_quanta.into());
            digest.take(done.moved_quanta.into());
            digest.take(done.cost.sectors);
            digest.take(done.dropped_steps);
        }
        shuffler.observe(SimTime(now), operation, sector, sectors);
        for piece in shuffler.map(sector, sectors) {
            digest.take(piece.sector.0);
            digest.take(piece.sectors.0);
        }
        if draw(2) == 0
            && let Some(step) = shuffler.next_step()
        {
            digest.take(step.quantum.into());
            digest.take_place(step.from);
            digest.take_place(step.to);
            digest.take(step.already_there.into());
            shuffler.complete_step();
        }
    }
    for quantum in 0..grid.quanta() {
        digest.take(shuffler.table().slot_of(quantum).into());
    }
    digest.0
}

/// Of [`cases`].
const EXPECTED: [u64; 18] = [
    0x2ACA_A0B8_CE48_5002,
    0x3151_2E1F_E983_3CFF,
    0xDFA6_6EC3_A4C3_C77B,
    0x9043_EAC3_3B21_723E,
    0x2ABE_63D1_D20E_8A69,
    0xC787_4FBF_478F_9BE1,
    0x3E69_D881_50FB_3B11,
    0xAA6E_9F5A_CA70_64EA,
    0x38CF_21E5_E43E_9D2A,
    0xC8A9_BBBA_C422_7C22,
    0xE6E7_1B94_FFA8_9593,
    0xAFF0_84EA_C1B8_8150,
    0x96CE_396C_D809_39C1,
    0x49A4_30DD_E71B_F013,
    0x4585_3C64_3351_422C,
    0xDA84_094B_4956_2E89,
    0x494A_8F6B_FE15_D7C2,
    0xED82_F088_9ECA_5BD0,
];

/// Every kind and mode: kind, links, interleave, `arrange_unaccessed`, coverage, moves.
fn cases() -> Vec<ShuffleConfig> {
    let base = ShuffleConfig {
        interval: Some(SimDuration(600)),
        first_after: SimDuration(500),
        ..ShuffleConfig::default()
    };
    let mut cases = Vec::new();
    for moves in [MoveMode::Instant, MoveMode::Idle] {
        for kind in RemapKind::ALL {
            cases.push(ShuffleConfig { kind, moves, ..base.clone() });
        }
        let shuffle = ShuffleConfig { kind: RemapKind::Shuffle, moves, ..base.clone() };
        cases.push(ShuffleConfig { arrange_unaccessed: true, ..shuffle.clone() });
        cases.push(ShuffleConfig { coverage: 0.6, ..shuffle.clone() });
        cases.push(ShuffleConfig { links: true, ..shuffle.clone() });
        cases.push(ShuffleConfig { links: true, interleave: 3, alpha: 0.3, ..shuffle });
    }
    cases
}

/// The digests are of the implementation that kept an entry for every quantum and slot.
#[test]
fn rearrangements_are_those_of_whole_tables() {
    let found: Vec<u64> =
        cases().iter().enumerate().map(|(case, config)| digest(config, case as u64)).collect();
    assert_eq!(found, EXPECTED);
}

/// A disk of 8 TB in blocks of 4 KiB: a table of every block would be of tens of gigabytes.
#[test]
fn a_large_disk_takes_room_for_what_is_accessed() {
    let all = SectorCount(8_000_000_000_000 / 512);
    let grid = QuantumGrid::new(all, all, Sector(0), SectorCount(8)).expect("they can be numbered");
    for moves in [MoveMode::Instant, MoveMode::Idle] {
        let config = ShuffleConfig {
            kind: RemapKind::Shuffle,
            links: true,
            interval: Some(SimDuration(1)),
            first_after: SimDuration(1),
            moves,
            ..ShuffleConfig::default()
        };
        let streams = RandomStreams::new(1);
        let mut shuffler =
            Shuffler::on_grid(&config, grid, SimDuration::ZERO, &streams).expect("it fits");
        let mut stream = streams.stream("history");
        for now in 0..6 {
            for _ in 0..100 {
                let sector = Sector(stream.next_u64() % (all.0 - 8));
                shuffler.observe(SimTime(now), Operation::Read, sector, SectorCount(8));
            }
            while shuffler.due(SimTime(now)) {
                assert!(shuffler.rearrange().moved_quanta > 0);
            }
            for _ in 0..50 {
                if shuffler.next_step().is_some() {
                    shuffler.complete_step();
                }
            }
        }
        if moves == MoveMode::Instant {
            shuffler.table().verify();
        }
    }
}

/// What places every quantum needs memory for every quantum, and is refused where that is too much.
#[test]
fn placing_every_quantum_of_a_large_disk_is_refused() {
    let all = SectorCount(8_000_000_000_000 / 512);
    let grid = QuantumGrid::new(all, all, Sector(0), SectorCount(8)).expect("they can be numbered");
    for (kind, arrange_unaccessed) in [(RemapKind::Random, false), (RemapKind::Shuffle, true)] {
        let config = ShuffleConfig { kind, arrange_unaccessed, ..ShuffleConfig::default() };
        let streams = RandomStreams::new(1);
        let error = Shuffler::on_grid(&config, grid, SimDuration::ZERO, &streams)
            .expect_err("it would take a hundred gigabytes");
        assert!(error.to_string().contains("choose a larger quantum"), "{error}");
    }
}
