//! The published facts, counted from the operations alone.

use agewell_core::DAY_NS;

use super::*;
use crate::Operation;
use crate::workload::slow_rules::walk;

const MEBIBYTE: f64 = 1_048_576.0;
/// What a fact may be off by (two percent).
const TOLERANCE: f64 = 0.02;

/// What the operations amount to, counted without the writer.
#[derive(Default)]
struct Counted {
    creates: u64,
    deletes: u64,
    written_bytes: u64,
    /// Allocation in the evening of each day, percent of the file system.
    evenings_pct: Vec<f64>,
    /// The most allocated at any moment, the same way.
    peak_pct: f64,
    /// Last write (day) and allocation of the files at the end.
    end: Vec<(u64, u64)>,
    same_day: u64,
}

fn count(parameters: &Smith1996Parameters, operations: &[Operation]) -> Counted {
    let mut counted = Counted::default();
    // Length, allocation, day of the last write of each number; the rest is dead.
    let mut files: Vec<Option<(u64, u64)>> = Vec::new();
    let all = 502.0 * MEBIBYTE;
    let mut allocated = 0;
    for operation in operations {
        let day = operation.time_ns / DAY_NS;
        while (counted.evenings_pct.len() as u64) < day {
            counted.evenings_pct.push(allocated as f64 / all * 100.0);
        }
        let number = operation.file as usize;
        match operation.action {
            Action::MakeDirectory => {}
            Action::Create => {
                counted.creates += 1;
                files.resize(files.len().max(number + 1), None);
                files[number] = Some((day, 0));
            }
            Action::Write => {
                counted.written_bytes += operation.size_bytes;
                let bytes = allocated_bytes(operation.size_bytes);
                assert_eq!(operation.offset_bytes, 0);
                files[number] = Some((day, bytes));
                allocated += bytes;
            }
            Action::Delete => {
                counted.deletes += 1;
                let (made, bytes) = files[number].take().expect("alive");
                counted.same_day += u64::from(made == day);
                allocated -= bytes;
            }
            other => panic!("{other:?} is not of this workload"),
        }
        counted.peak_pct = counted.peak_pct.max(allocated as f64 / all * 100.0);
    }
    counted.evenings_pct.push(allocated as f64 / all * 100.0);
    counted.end = files.into_iter().flatten().collect();
    assert_eq!(parameters.file_system_bytes, all as u64);
    counted
}

fn close(what: &str, ours: f64, published: f64) {
    let off = ours / published - 1.0;
    assert!(off.abs() <= TOLERANCE, "{what}: {ours} against {published}");
}

// Every published fact holds, whatever the seed.
#[test]
fn the_published_facts_hold() {
    let parameters = Smith1996Parameters::default();
    for seed in [1, 2, 1996] {
        let (facts, operations) = generate(&parameters, seed, Vec::new()).expect("valid");
        let counted = count(&parameters, &operations);
        close("operations", (counted.creates + counted.deletes) as f64, 800_000.0);
        close("bytes written", counted.written_bytes as f64, 48.6e9);
        assert_eq!(counted.evenings_pct.len(), 300);
        assert_eq!((facts.days, facts.groups), (300, Some(27)));

        close("first evening, percent full", counted.evenings_pct[0], 9.0);
        let highest = counted.evenings_pct.iter().copied().fold(0.0, f64::max);
        close("highest, percent full", highest, 90.0);
        let above = counted.evenings_pct.iter().filter(|&&pct| pct > 70.0).count();
        assert!(above > 200, "{above} of 300 evenings above 70 %");
        assert!(counted.peak_pct <= 100.0, "{} % at a moment", counted.peak_pct);

        assert_eq!(counted.end.len(), 8_774);
        let all: u64 = counted.end.iter().map(|(_, bytes)| bytes).sum();
        let recent = counted.end.iter().filter(|(day, _)| *day >= 270);
        let (count, bytes) = recent.fold((0, 0), |(count, sum), file| (count + 1, sum + file.1));
        assert_eq!(count, 929);
        close("hot bytes", bytes as f64, 59.5 * MEBIBYTE);
        close("hot share of the space", bytes as f64 / all as f64, 0.19);
        // Most files live less than a day (§3.1).
        assert!(counted.same_day * 2 > counted.creates);

        let groups: Vec<&Operation> =
            operations.iter().take_while(|step| step.action == Action::MakeDirectory).collect();
        assert_eq!(groups.len(), 27);
        assert!(operations[27..].iter().all(|step| (1..=27).contains(&step.directory)));
    }
}

// The same seed gives the same operations, another seed others.
#[test]
fn a_seed_fixes_the_operations() {
    let parameters = small();
    let make = |seed| generate(&parameters, seed, Vec::new()).expect("valid");
    assert_eq!(make(3), make(3));
    assert_ne!(make(3).1, make(4).1);
}

fn small() -> Smith1996Parameters {
    Smith1996Parameters {
        days: 30,
        groups: 4,
        file_system_bytes: 10 << 20,
        file_operations: 9_000,
        written_bytes: 300 << 20,
        files_at_end: 200,
        allocated_bytes_at_end: 6 << 20,
        recent_days: 5,
        recent_files: 30,
        recent_allocated_bytes: 1 << 20,
        utilization_path: vec![(0, 10.0), (10, 80.0)],
        directories: 30,
        active_directories: 5,
        bytes_max: 1 << 20,
        ..Smith1996Parameters::default()
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(24))]

    // The rules hold for any seed and for other sizes, by the slow walk.
    #[test]
    fn the_rules_hold(seed in proptest::prelude::any::<u64>(), active in 1..30_u32, rewritten in 0..101_u32) {
        let parameters = Smith1996Parameters {
            active_directories: active,
            rewritten_pct: rewritten,
            ..small()
        };
        let (facts, operations) = generate(&parameters, seed, Vec::new()).expect("valid");
        let remains = walk(&operations).map_err(proptest::prelude::TestCaseError::fail)?;
        proptest::prop_assert_eq!(remains.files.len() as u64, 200);
        proptest::prop_assert_eq!(remains.peak_bytes, facts.peak_live_bytes);
    }
}

// Parameters that cannot be are refused in one line.
#[test]
fn what_cannot_be_is_refused() {
    let refused = |parameters: &Smith1996Parameters| {
        generate(parameters, 1, Vec::new()).expect_err("refused").to_string()
    };
    let none = Smith1996Parameters { active_directories: 0, ..small() };
    assert!(refused(&none).contains("active_directories must be from 1"));
    let few = Smith1996Parameters { file_operations: 300, ..small() };
    assert!(refused(&few).contains("ask for more file_operations"), "{}", refused(&few));
}

// The sizes at which FFS takes another block are counted as it takes them.
#[test]
fn allocation_is_that_of_ffs() {
    const KIB: u64 = 1 << 10;
    for (bytes, allocated) in [
        (0, 0),
        (1, KIB),
        (9 * KIB, 9 * KIB),
        (96 * KIB, 96 * KIB),
        (96 * KIB + 1, 112 * KIB),
        (96 * KIB + 2_048 * 8 * KIB, 96 * KIB + 2_048 * 8 * KIB + 8 * KIB),
        (96 * KIB + 2_048 * 8 * KIB + 1, 104 * KIB + 2_048 * 8 * KIB + 24 * KIB),
    ] {
        assert_eq!(allocated_bytes(bytes), allocated, "{bytes} bytes");
    }
}
