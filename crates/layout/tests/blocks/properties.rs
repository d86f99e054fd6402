//! Guarantees of every layout.

use proptest::prelude::*;

use crate::case::{Case, cases};
use crate::kinds::{self, KINDS};

/// As many as take a few seconds, or as many as the environment says.
fn cases_to_try() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(3000)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases_to_try(),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Each block read is the version written last; nothing is read that was never written; counts
    /// of live blocks are exact; what is atomic loses nothing in a crash.
    #[test]
    fn every_layout_holds_what_was_written(case in cases()) {
        kinds::run(&case);
    }

    /// The same operations give the same transfers, byte for byte.
    #[test]
    fn every_layout_does_the_same_again(mut case in cases()) {
        case.steps /= 4;
        prop_assert_eq!(kinds::run(&case).taken, kinds::run(&case).taken);
    }
}

fn plain(kind: usize) -> Case {
    Case {
        kind,
        clients: 1,
        buffer_blocks: 4,
        fill_pct: 60,
        preallocated_pct: 0,
        preloaded: false,
        deletions: 5,
        files: 3,
        steps: 300,
        seed: 1,
        tells: false,
    }
}

/// A layout that has refused something for want of room goes on after deletions.
#[test]
fn every_layout_goes_on_after_it_was_full() {
    for kind in 0..KINDS {
        let case = Case { fill_pct: 140, deletions: 6, steps: 1500, ..plain(kind) };
        let ran = kinds::run(&case);
        assert!(ran.refused > 0, "{}: never full", kinds::name(kind));
        let (done, refused) = (ran.done_after_refusal, ran.refused);
        assert!(done > 100, "{}: {done} done, {refused} refused", kinds::name(kind));
    }
}

/// Every layout issues the pieces of one call as a batch.
#[test]
fn every_layout_issues_what_lies_in_pieces_together() {
    for kind in 0..KINDS {
        let ran = kinds::run(&Case { deletions: 20, ..plain(kind) });
        let (together, all) = (ran.together, ran.taken.len());
        assert!(together > 10, "{}: {together} of {all} transfers", kinds::name(kind));
    }
}

/// Every layout issues discards, and only where they are enabled.
#[test]
fn every_layout_tells_what_dies() {
    for kind in 0..KINDS {
        let case = Case { deletions: 25, steps: 1000, ..plain(kind) };
        assert_eq!(kinds::run(&case).discarded, 0, "{}", kinds::name(kind));
        let told = kinds::run(&Case { tells: true, ..case });
        assert!(told.discarded > 50, "{}: {}", kinds::name(kind), told.discarded);
    }
}
