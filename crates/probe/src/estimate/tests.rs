//! The estimators on ends and times of known drives, and on times that come from no drive.

use proptest::prelude::*;

use super::rotation::rotation;
use super::seek::{Interval, least_time_ns, rising};
use super::statistics::{fraction, median, quantile, undisturbed, wrap};
use super::surfaces::surfaces;
use super::track::{End, angle_of_gap, fit};
use crate::fit::flash::stripe;

const TURN_NS: f64 = 8_333_333.0;

#[test]
fn the_lowest_frequency_that_explains_the_ends_is_the_spindle() {
    let between: Vec<f64> =
        (1..60).map(|turns| TURN_NS * f64::from(turns) + f64::from(turns % 7) * 9e3).collect();
    let found = rotation(&between).expect("enough pairs");
    assert!((found.period_ns / TURN_NS - 1.0).abs() < 2e-4, "{found:?}");
    assert!(found.coherence > 0.9, "{found:?}");
}

/// Ends of reads of `track` sectors a turn, each track turned by `skew`, going down by `step` in three passes.
fn ends_of(track: f64, skew: f64, drift: f64) -> Vec<End> {
    let step = (track / 12.0 / 8.0).round() * 8.0;
    let mut turns = 0.0;
    let mut ends = Vec::new();
    for pass in 0..3 {
        for number in 0..12 {
            let sector = 1e6 - f64::from(number * 4 + pass) * step;
            let angle = fraction(sector / track + (sector / track).floor() * skew);
            turns = (turns + 0.1_f64).floor()
                + angle
                + if fraction(turns + 0.1) > angle { 1.0 } else { 0.0 };
            ends.push(End { sector, at_ns: turns * TURN_NS * (1.0 + drift) });
        }
    }
    ends
}

#[test]
fn sectors_skews_and_the_drift_of_the_spindle_come_back_together() {
    for (track, skew, drift) in
        [(421.0 * 8.0, 0.12, 0.0), (57.0, 0.3, 0.0008), (1707.0, 0.11, -0.0007)]
    {
        let found = fit(&ends_of(track, skew, drift), TURN_NS, 1.05 * track).expect("they agree");
        assert!((found.sectors / track - 1.0).abs() < 0.004, "{track}: {found:?}");
        assert!((found.drift - drift).abs() < 3e-4, "{track}: {found:?}");
        assert!((median(&found.skews) - skew).abs() < 0.01, "{track}: {found:?}");
    }
}

#[test]
fn every_fifth_skew_that_differs_is_a_change_of_cylinder() {
    let skews: Vec<f64> = (0..80)
        .map(|track| if track % 5 == 2 { 0.25 } else { 0.14 } + f64::from(track % 3) * 2e-3)
        .collect();
    let found = surfaces(&skews);
    assert_eq!(found.surfaces, 5);
    assert!((found.track_skew - 0.142).abs() < 3e-3 && (found.cylinder_skew - 0.252).abs() < 3e-3);
    assert_eq!(surfaces(&vec![0.14; 80]).surfaces, 1);
}

#[test]
fn each_read_bounds_the_least_time_on_both_sides() {
    let least = 2.7e6;
    let taken = |aimed: f64| if aimed >= least { aimed } else { aimed + TURN_NS };
    let mut interval = Interval::new(taken(6e6), TURN_NS);
    let mut all = vec![taken(6e6)];
    for _ in 0..10 {
        let next = taken(interval.middle_ns());
        interval.narrow(next);
        all.push(next);
    }
    assert!((interval.middle_ns() - least).abs() < TURN_NS / 500.0, "{interval:?}");
    let found = least_time_ns(&all, TURN_NS).expect("there are some");
    assert!((found - least).abs() < TURN_NS / 500.0, "{found}");
}

#[test]
fn a_curve_rises_after_its_falling_points_are_made_one() {
    let made = rising(&[(1.0, 2.0, 1.0), (2.0, 1.0, 1.0), (3.0, 4.0, 1.0)]);
    assert_eq!(made, [(1.0, 1.5), (2.0, 1.5), (3.0, 4.0)]);
}

fn any_time() -> impl Strategy<Value = f64> {
    prop_oneof![
        0.0..1e9_f64,
        Just(0.0),
        Just(f64::NAN),
        Just(f64::INFINITY),
        -1e12..1e12_f64,
        Just(8_333_333.0),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_times_make_an_estimator_panic(
        times in prop::collection::vec(any_time(), 0..80),
        period in prop_oneof![1e6..6e7_f64, Just(0.0), Just(f64::NAN)],
        near in prop_oneof![1.0..5e3_f64, Just(0.0), Just(f64::INFINITY)],
        step in 0_u32..4000,
    ) {
        let ends: Vec<End> = times
            .iter()
            .enumerate()
            .map(|(number, at_ns)| End { sector: 1e7 - f64::from(step) * number as f64, at_ns: *at_ns })
            .collect();
        let _ = (quantile(&times, 0.3), undisturbed(&times), surfaces(&times), stripe(&times));
        let _ = (fit(&ends, period, near), angle_of_gap(&ends, period, near));
        let _ = least_time_ns(&times, period);
        let points: Vec<(f64, f64, f64)> = times.iter().map(|time| (1.0, *time, 1.0)).collect();
        prop_assert_eq!(rising(&points).len(), points.len());
        if let Some(found) = rotation(&times) {
            prop_assert!(found.period_ns > 1e6 && found.period_ns < 1e8);
        }
    }

    #[test]
    fn angles_are_within_a_turn(turns in -1e9..1e9_f64) {
        prop_assert!((-0.5..=0.5).contains(&wrap(turns)));
        prop_assert!((0.0..1.0).contains(&fraction(turns)));
    }
}
