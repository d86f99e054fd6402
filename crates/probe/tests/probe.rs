//! Probes of modelled drives, and of disks that answer as no disk does.

use agewell_core::{SimDuration, SimTime};
use agewell_disk::parameters::FastWrite;
use agewell_disk::{DeviceKind, DeviceParameters};
use agewell_probe::{
    Answer, Class, DiskFacts, Disturbance, Extent, ModelledDisk, Probe, ProbeError, ProbeOptions,
    ProbedDisk, probe,
};
use proptest::prelude::*;

fn catalogue(name: &str) -> DeviceParameters {
    let path = format!("{}/../../devices/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    DeviceParameters::load(path).expect("a device of the catalogue")
}

fn as_in_a_virtual_machine(seed: u64) -> Disturbance {
    Disturbance { late_answers: true, wander: 0.001, seed }
}

fn probed(disk: &mut dyn ProbedDisk) -> Probe {
    probe(disk, ProbeOptions::default(), &mut |_, _| true).expect("it answers")
}

fn mean_of_random_reads_ns(parameters: &DeviceParameters, sectors: u64) -> f64 {
    let mut disk = ModelledDisk::new(parameters, Disturbance::default());
    let reads = 2000;
    let places = sectors / 8;
    (0..reads)
        .map(|number| {
            let first = agewell_core::mix(number) % places * 8;
            disk.read(Extent { first, sectors: 8 }).expect("within the disk").taken_ns()
        })
        .sum::<f64>()
        / reads as f64
}

/// The promises of the probe, on drives without and with a buffer, of 1990 and of 2010, with skews that
/// differ and that do not. All drives, and traces replayed, are `examples/catalogue.rs`.
#[test]
fn drives_with_an_arm_are_recovered_on_a_busy_machine() {
    for name in ["hp-c2204a", "hp-97560", "seagate-st34501n"] {
        let truth = catalogue(name);
        let found = probed(&mut ModelledDisk::new(&truth, as_in_a_virtual_machine(11)));
        assert_eq!((found.class, &found.fallback), (Class::Armed, &None), "{name}");
        assert!(found.spent.as_seconds() <= 300.0, "{name}: {:?}", found.spent);
        let (DeviceKind::Mechanical(made), DeviceKind::Mechanical(drive)) =
            (&found.parameters.kind, &truth.kind)
        else {
            panic!("{name}: drives with arms")
        };
        let turn = made.rotation_period_ps as f64 / drive.rotation_period_ps as f64;
        assert!((turn - 1.0).abs() < 0.001, "{name}: a turn is {turn} of the true one");
        let sectors = truth.capacity_sectors.min(found.parameters.capacity_sectors);
        let ratio = mean_of_random_reads_ns(&found.parameters, sectors)
            / mean_of_random_reads_ns(&truth, sectors);
        assert!((ratio - 1.0).abs() < 0.07, "{name}: random reads take {ratio} of the true time");
        let again =
            DeviceParameters::from_toml("x", &found.parameters.to_toml()).expect("reads back");
        assert_eq!(again, found.parameters);
        let table = toml::from_str(&found.parameters.to_toml()).expect("TOML");
        assert_eq!(
            agewell_disk::parameters::missing_sources(&table),
            Vec::<String>::new(),
            "{name}"
        );
    }
}

#[test]
fn without_disturbance_surfaces_rotation_and_buffer_are_exact() {
    let truth = catalogue("seagate-st34501n");
    let found = probed(&mut ModelledDisk::new(&truth, Disturbance::default()));
    let (DeviceKind::Mechanical(made), DeviceKind::Mechanical(drive)) =
        (&found.parameters.kind, &truth.kind)
    else {
        panic!("drives with arms")
    };
    let turn = made.rotation_period_ps as f64 / drive.rotation_period_ps as f64;
    assert!((turn - 1.0).abs() < 2e-5, "a turn is {turn} of the true one");
    assert_eq!(made.geometry.surfaces, drive.geometry.surfaces);
    // The one that is set aside for writes is not seen.
    let for_reads = drive.buffer.segments - u32::from(drive.buffer.dedicated_write_segment);
    assert!(made.buffer.segments.abs_diff(for_reads) <= 1, "{} segments", made.buffer.segments);
}

#[test]
fn flash_shows_its_stripe_page_and_dies() {
    for name in ["samsung-970-pro", "flash-sata-tlc"] {
        let truth = catalogue(name);
        let found = probed(&mut ModelledDisk::new(&truth, Disturbance::default()));
        assert_eq!(found.class, Class::Flash, "{name}");
        let (DeviceKind::Flash(made), DeviceKind::Flash(drive)) =
            (&found.parameters.kind, &truth.kind)
        else {
            panic!("{name}: flash")
        };
        assert_eq!(made.dies(), drive.dies(), "{name}");
        // Where pages are of several types their times hide where one ends: half of it is found.
        let pages = drive.page_bytes / made.page_bytes;
        assert!(pages == 1 || (pages == 2 && drive.read.types().len() > 1), "{name}: {pages}");
        // The file gets one time for pages of all types, that of the middle one, which is below the mean.
        let random_pct = if drive.read.types().len() > 1 { 15.0 } else { 5.0 };
        let random = &found.differences[0];
        assert!(random.error_pct().abs() < random_pct, "{name}: {random:?}");
        assert!(
            found.differences[1].error_pct().abs() < 10.0,
            "{name}: {:?}",
            found.differences[1]
        );
    }
}

#[test]
fn access_time_and_bandwidth_come_back() {
    let truth = catalogue("matthews-fast");
    let found = probed(&mut ModelledDisk::new(&truth, Disturbance::default()));
    assert_eq!(found.class, Class::Simple);
    let (DeviceKind::Simple(made), DeviceKind::Simple(drive)) =
        (&found.parameters.kind, &truth.kind)
    else {
        panic!("two numbers")
    };
    assert!(made.access_time_ns.abs_diff(drive.access_time_ns) < drive.access_time_ns / 100);
    let rates = (made.bandwidth_bytes_per_s as f64, drive.bandwidth_bytes_per_s as f64);
    // A long read pays the access time as well.
    assert!(rates.0 < rates.1 && rates.0 > 0.8 * rates.1, "{rates:?}");
}

/// The model times all levels of early reporting alike; that there is one is seen, whatever the system says.
#[test]
fn a_write_area_shows_whether_writes_are_reported_early() {
    for (name, reports_early) in [("hp-97560", true), ("hp-c2247a", false)] {
        let truth = catalogue(name);
        let part = truth.capacity_sectors / 16 / 8 * 8;
        let area = Extent { first: truth.capacity_sectors / 8 * 8 - part, sectors: part };
        let disk = ModelledDisk::new(&truth, as_in_a_virtual_machine(5)).with_write_area(area);
        let mut disk = Misinformed::new(disk, !reports_early);
        let DeviceKind::Mechanical(made) = probed(&mut disk).parameters.kind else {
            panic!("a drive with an arm")
        };
        assert_eq!(made.buffer.fast_write != FastWrite::Never, reports_early, "{name}");
    }
}

/// A modelled disk of which the system says the opposite of whether it has a write cache.
struct Misinformed(ModelledDisk, DiskFacts);

impl Misinformed {
    fn new(disk: ModelledDisk, write_cache: bool) -> Self {
        let facts = DiskFacts { write_cache: Some(write_cache), ..disk.facts().clone() };
        Self(disk, facts)
    }
}

impl ProbedDisk for Misinformed {
    fn facts(&self) -> &DiskFacts {
        &self.1
    }

    fn read(&mut self, extent: Extent) -> Result<Answer, ProbeError> {
        ProbedDisk::read(&mut self.0, extent)
    }

    fn read_together(
        &mut self,
        extents: &[Extent],
        depth: usize,
        answers: &mut Vec<Answer>,
    ) -> Result<(), ProbeError> {
        self.0.read_together(extents, depth, answers)
    }

    fn idle(&mut self, time: SimDuration) {
        ProbedDisk::idle(&mut self.0, time);
    }

    fn now(&self) -> SimTime {
        self.0.now()
    }

    fn writable(&mut self) -> Option<&mut dyn agewell_probe::WritableArea> {
        self.0.writable()
    }
}

/// A disk that answers as the test wants it to.
struct Strange<F> {
    facts: DiskFacts,
    now: u64,
    reads: u64,
    fails_at: u64,
    others: Option<(u64, u64)>,
    takes_ns: F,
}

impl<F: FnMut(u64, Extent) -> u64> Strange<F> {
    fn new(sectors: u64, takes_ns: F) -> Self {
        let facts = DiskFacts {
            name: "strange".into(),
            sectors,
            sector_bytes: 512,
            write_cache: None,
            is_modelled: true,
        };
        Self { facts, now: 0, reads: 0, fails_at: u64::MAX, others: None, takes_ns }
    }
}

impl<F: FnMut(u64, Extent) -> u64> ProbedDisk for Strange<F> {
    fn facts(&self) -> &DiskFacts {
        &self.facts
    }

    fn read(&mut self, extent: Extent) -> Result<Answer, ProbeError> {
        assert!(extent.sectors > 0 && extent.first + extent.sectors <= self.facts.sectors);
        assert!(extent.first.is_multiple_of(8) && extent.sectors.is_multiple_of(8));
        self.reads += 1;
        if self.reads >= self.fails_at {
            return Err(ProbeError::Request {
                name: "strange".into(),
                byte: extent.first * 512,
                done: "read",
                source: std::io::ErrorKind::Other.into(),
            });
        }
        let begin = SimTime(self.now);
        self.now += (self.takes_ns)(self.now, extent);
        Ok(Answer { begin, end: SimTime(self.now) })
    }

    fn read_together(
        &mut self,
        extents: &[Extent],
        _depth: usize,
        answers: &mut Vec<Answer>,
    ) -> Result<(), ProbeError> {
        for extent in extents {
            answers.push(self.read(*extent)?);
        }
        Ok(())
    }

    fn idle(&mut self, time: SimDuration) {
        self.now += time.0;
    }

    fn now(&self) -> SimTime {
        SimTime(self.now)
    }

    fn requests_of_others(&self) -> Option<(u64, u64)> {
        self.others
    }
}

const GIB: u64 = 1 << 21;

fn holds_together(found: &Probe) {
    let text = found.parameters.to_toml();
    let again = DeviceParameters::from_toml("x", &text).expect("a device file that reads back");
    assert_eq!(again.uncertainty, found.parameters.uncertainty);
}

#[test]
fn constant_times_are_two_numbers_or_flash() {
    for (taken_ns, class) in
        [(0, Class::Flash), (1, Class::Flash), (80_000, Class::Flash), (15_000_000, Class::Simple)]
    {
        let found = probed(&mut Strange::new(GIB, |_, _| taken_ns));
        assert_eq!(found.class, class, "{taken_ns} ns");
        holds_together(&found);
    }
}

#[test]
fn a_spindle_without_tracks_is_two_numbers_with_the_reason() {
    // Reads end at an angle that belongs to the place, but has nothing to do with its neighbours'.
    let turn = 8_333_333;
    let found = probed(&mut Strange::new(GIB, |now, extent| {
        let angle = agewell_core::mix(extent.first) % turn;
        let wait = (angle + turn - now % turn) % turn;
        if wait < 1_500_000 { wait + turn } else { wait }
    }));
    assert_eq!(found.class, Class::Simple);
    assert!(found.fallback.as_deref().is_some_and(|why| why.contains("no tracks")), "{found:?}");
    holds_together(&found);
}

#[test]
fn slow_reads_without_a_spindle_are_two_numbers_with_the_reason() {
    let mut draws = 0;
    let found = probed(&mut Strange::new(GIB, |_, _| {
        draws += 1;
        2_000_000 + agewell_core::mix(draws) % 20_000_000
    }));
    assert_eq!(found.class, Class::Simple);
    assert!(found.fallback.as_deref().is_some_and(|why| why.contains("angle")), "{found:?}");
}

#[test]
fn a_failed_read_ends_the_probe_with_its_place() {
    for fails_at in [1, 300, 500] {
        let mut disk = Strange::new(GIB, |_, _| 80_000);
        disk.fails_at = fails_at;
        let problem = probe(&mut disk, ProbeOptions::default(), &mut |_, _| true).unwrap_err();
        assert!(problem.to_string().contains("strange: byte "), "{problem}");
    }
}

#[test]
fn a_tiny_disk_is_refused_or_measured_and_an_interrupt_is_heeded() {
    let mut tiny = Strange::new(100, |_, _| 80_000);
    let problem = probe(&mut tiny, ProbeOptions::default(), &mut |_, _| true).unwrap_err();
    assert!(problem.to_string().contains("100 sectors are too few"), "{problem}");
    holds_together(&probed(&mut Strange::new(2048, |_, _| 80_000)));
    let mut disk = Strange::new(GIB, |_, _| 80_000);
    let problem = probe(&mut disk, ProbeOptions::default(), &mut |_, _| false).unwrap_err();
    assert!(matches!(problem, ProbeError::Interrupted));
    assert!(disk.reads < 100, "it stops at once, not after {} reads", disk.reads);
}

#[test]
fn a_disk_that_others_use_is_refused_unless_that_is_asked_for() {
    let mut disk = Strange::new(GIB, |_, _| 80_000);
    disk.others = Some((30, 1000));
    let problem = probe(&mut disk, ProbeOptions::default(), &mut |_, _| true).unwrap_err();
    assert!(problem.to_string().contains("30 of 1000 requests"), "{problem}");
    let despite = ProbeOptions { despite_others: true, ..ProbeOptions::default() };
    let found = probe(&mut disk, despite, &mut |_, _| true).expect("asked for");
    assert!(found.parameters.sources["uncertainty"].contains("3.0 % of the requests"));
    disk.others = Some((10, 1000));
    probe(&mut disk, ProbeOptions::default(), &mut |_, _| true).expect("few enough");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    /// Whatever a disk answers, there is a device file that reads back, or one error.
    #[test]
    fn no_answers_make_it_panic(
        seed in any::<u64>(),
        size in prop::sample::select(vec![2048_u64, 9_999, 1 << 17, 1 << 24, 1 << 34]),
        sector_bytes in prop::sample::select(vec![512_u32, 4096]),
        turn in prop::option::of(1_000_000_u64..60_000_000),
        track in 8_u64..5_000,
        most_ns in prop::sample::select(vec![1_u64, 100_000, 3_000_000, 2_000_000_000]),
        late_one_in in 2_u64..200,
    ) {
        let mut draws = seed;
        let mut draw = move |below: u64| {
            draws = draws.wrapping_add(1);
            agewell_core::mix(draws) % below.max(1)
        };
        let mut disk = Strange::new(size, move |now, extent| {
            let late = if draw(late_one_in) == 0 { draw(400_000_000) } else { 0 };
            match turn {
                // A platter of sorts: tracks of one length, no arm, and a wait that is sometimes skipped.
                Some(turn) => {
                    let angle = extent.first % track * turn / track;
                    let wait = (angle + turn - now % turn) % turn;
                    wait + late + draw(most_ns.min(turn / 4))
                }
                None => draw(most_ns) + late,
            }
        });
        disk.facts.sector_bytes = sector_bytes;
        if let Ok(found) = probe(&mut disk, ProbeOptions::default(), &mut |_, _| true) {
            holds_together(&found);
        }
    }
}
