//! The closed-form map of a disk against a walk over every physical sector.

use agewell_disk::geometry::Geometry;
use agewell_disk::parameters::{GeometryParameters, Sparing, TrackOrder, ZoneParameters};
use proptest::prelude::*;

/// Where each block of `zone` lies, by listing the places it could lie at: (track in zone, sector).
fn walk(geometry: &GeometryParameters, zone: &ZoneParameters) -> Vec<(u64, u64)> {
    let surfaces = u64::from(geometry.surfaces);
    let per_track = u64::from(zone.sectors_per_track);
    let tracks = u64::from(zone.cylinders()) * surfaces;
    let places = tracks * per_track;
    let slipped = |unit: u64| zone.slips.contains(&unit);
    let unit = match geometry.sparing {
        Sparing::SectorsPerTrack => per_track,
        Sparing::SectorsPerCylinder
        | Sparing::SectorsPerCylinderSlipToEnd
        | Sparing::SectorsAtCylinderFront
        | Sparing::SectorsAtCylinderFrontSlipToEnd => per_track * surfaces,
        Sparing::SectorsPerRange => {
            per_track * surfaces * u64::from(geometry.spare_range_cylinders)
        }
        _ => places,
    };
    let spares = zone.spares;
    let mut order: Vec<u64> = Vec::new();
    match geometry.sparing {
        Sparing::None => order.extend(0..places),
        Sparing::Tracks => {
            let good = (0..tracks).filter(|track| !slipped(*track));
            order.extend(good.flat_map(|track| track * per_track..(track + 1) * per_track));
            order.truncate((places - spares * per_track) as usize);
        }
        Sparing::SectorsAtDiskEnd => order.extend((0..places).filter(|place| !slipped(*place))),
        Sparing::SectorsPerCylinderSlipToEnd => order
            .extend((0..places).filter(|place| place % unit < unit - spares && !slipped(*place))),
        Sparing::SectorsAtCylinderFrontSlipToEnd => {
            order.extend((0..places).filter(|place| place % unit >= spares && !slipped(*place)));
        }
        _ => {
            for start in (0..places).step_by(unit as usize) {
                let end = (start + unit).min(places);
                let mut good: Vec<u64> = (start..end).filter(|place| !slipped(*place)).collect();
                // A last range that is cut short has no spares of its own.
                if end - start == unit {
                    let keep = (unit - spares) as usize;
                    if geometry.sparing == Sparing::SectorsAtCylinderFront {
                        good.drain(..good.len() - keep);
                    } else {
                        good.truncate(keep);
                    }
                }
                order.extend(good);
            }
            if geometry.sparing == Sparing::SectorsPerZoneSlipToEnd {
                order.truncate((places - spares) as usize - zone.slips.len());
            }
        }
    }
    let grain = if geometry.sparing == Sparing::Tracks { per_track } else { 1 };
    order
        .into_iter()
        .skip(zone.reserved_sectors as usize)
        .map(|place| {
            let moved = zone.defects.iter().find(|(from, _)| *from == place / grain);
            moved.map_or(place, |(_, to)| to * grain + place % grain)
        })
        .map(|place| (place / per_track, place % per_track))
        .collect()
}

#[derive(Debug, Clone)]
struct Recipe {
    sparing: usize,
    order: usize,
    surfaces: u32,
    range: u32,
    zones: Vec<(u32, u32, u64, u64, Vec<u64>)>,
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let zone =
        (1_u32..9, 4_u32..24, 0_u64..3, 0_u64..40, prop::collection::vec(0_u64..100_000, 0..4));
    (0_usize..11, 0_usize..7, 1_u32..5, 1_u32..4, prop::collection::vec(zone, 1..4)).prop_map(
        |(sparing, order, surfaces, range, zones)| Recipe {
            sparing,
            order,
            surfaces,
            range,
            zones,
        },
    )
}

fn build(recipe: &Recipe) -> GeometryParameters {
    let sparing = Sparing::ALL[recipe.sparing].0;
    let mut next_cylinder = 0;
    let mut zones = Vec::new();
    for (cylinders, per_track, spares, reserved, raw_slips) in &recipe.zones {
        let tracks = u64::from(cylinders * recipe.surfaces);
        let places = tracks * u64::from(*per_track);
        let units = if sparing == Sparing::Tracks { tracks } else { places };
        let mut slips: Vec<u64> = raw_slips.iter().map(|slip| slip % units).collect();
        slips.sort_unstable();
        slips.dedup();
        zones.push(ZoneParameters {
            first_cylinder: next_cylinder,
            last_cylinder: next_cylinder + cylinders - 1,
            sectors_per_track: *per_track,
            first_sector_offset: 1.0,
            track_skew: 2.0,
            cylinder_skew: 3.0,
            reserved_sectors: *reserved,
            spares: *spares,
            slips,
            defects: Vec::new(),
        });
        // Every other zone leaves a cylinder unused, as real ones do.
        next_cylinder += cylinders + cylinders % 2;
    }
    GeometryParameters {
        surfaces: recipe.surfaces,
        cylinders: next_cylinder + 1,
        track_order: TrackOrder::ALL[recipe.order].0,
        sparing,
        group_cylinders: recipe.range,
        spare_range_cylinders: recipe.range,
        zones,
    }
}

/// The tracks of `zone` as they follow one another: (cylinder from the zone's first, head).
fn tracks_in_order(parameters: &GeometryParameters, zone: &ZoneParameters) -> Vec<(u64, u64)> {
    let turned = |numbers: std::ops::Range<u64>, is_turned: bool| -> Vec<u64> {
        if is_turned { numbers.rev().collect() } else { numbers.collect() }
    };
    let surfaces = u64::from(parameters.surfaces);
    let cylinders = u64::from(zone.cylinders());
    let mut tracks = Vec::new();
    let (seeks_turn, surfaces_turn) = match parameters.track_order {
        TrackOrder::SeekForwardSurfacesForward => (false, false),
        TrackOrder::SeekForwardSurfacesAlternating => (false, true),
        TrackOrder::SeekAlternatingSurfacesForward => (true, false),
        TrackOrder::SeekAlternatingSurfacesAlternating => (true, true),
        head_first => {
            for cylinder in 0..cylinders {
                let is_turned = match head_first {
                    TrackOrder::Serpentine => cylinder % 2 == 1,
                    TrackOrder::SerpentineByCylinder => {
                        (cylinder + u64::from(zone.first_cylinder)) % 2 == 1
                    }
                    _ => false,
                };
                tracks.extend(turned(0..surfaces, is_turned).iter().map(|head| (cylinder, *head)));
            }
            return tracks;
        }
    };
    let group_cylinders = u64::from(parameters.group_cylinders);
    for (group, first) in (0..cylinders).step_by(group_cylinders as usize).enumerate() {
        let end = (first + group_cylinders).min(cylinders);
        let heads = turned(0..surfaces, surfaces_turn && group % 2 == 1);
        for (place, head) in heads.into_iter().enumerate() {
            let of_group = turned(first..end, seeks_turn && place % 2 == 1);
            tracks.extend(of_group.into_iter().map(|cylinder| (cylinder, head)));
        }
    }
    tracks
}

fn agree(parameters: &GeometryParameters) {
    let geometry = Geometry::new(parameters);
    let mut block = 0;
    for zone in &parameters.zones {
        let mut expected = walk(parameters, zone);
        let held = geometry.zone_sectors(
            parameters.zones.iter().position(|other| other == zone).expect("its own zone"),
        );
        assert!(expected.len() as u64 >= held, "{} places for {held} blocks", expected.len());
        expected.truncate(held as usize);
        let tracks = tracks_in_order(parameters, zone);
        for (index, (track, sector)) in expected.iter().enumerate() {
            let location = geometry.locate(block);
            let (cylinder, head) = tracks[*track as usize];
            assert_eq!(
                (
                    u64::from(location.cylinder),
                    u64::from(location.head),
                    u64::from(location.sector)
                ),
                (u64::from(zone.first_cylinder) + cylinder, head, *sector),
                "block {block}"
            );
            assert_eq!(
                geometry.block_at(location.cylinder, location.head, location.sector),
                Some(block)
            );
            for ahead in 1..location.run as usize {
                assert_eq!(expected.get(index + ahead), Some(&(*track, sector + ahead as u64)));
            }
            block += 1;
        }
    }
    assert_eq!(block, geometry.blocks());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_closed_form_agrees_with_a_walk_over_every_sector(recipe in recipe()) {
        let parameters = build(&recipe);
        // Slips that overflow their spares are refused, and only those geometries are skipped.
        if Geometry::check(&parameters).is_ok() {
            agree(&parameters);
        }
    }
}

fn one_zone(
    sparing: Sparing,
    spares: u64,
    slips: Vec<u64>,
    defects: Vec<(u64, u64)>,
) -> GeometryParameters {
    GeometryParameters {
        surfaces: 2,
        cylinders: 4,
        track_order: TrackOrder::Ascending,
        sparing,
        group_cylinders: 2,
        spare_range_cylinders: 2,
        zones: vec![ZoneParameters {
            first_cylinder: 0,
            last_cylinder: 3,
            sectors_per_track: 10,
            first_sector_offset: 0.0,
            track_skew: 2.0,
            cylinder_skew: 3.0,
            reserved_sectors: 0,
            spares,
            slips,
            defects,
        }],
    }
}

#[test]
fn remapped_sectors_and_tracks_lie_at_their_replacements() {
    let sectors = one_zone(Sparing::SectorsPerRange, 2, vec![], vec![(5, 39)]);
    agree(&sectors);
    let moved = Geometry::new(&sectors).locate(5);
    assert_eq!((moved.cylinder, moved.head, moved.sector, moved.run), (1, 1, 9, 1));
    let tracks = one_zone(Sparing::Tracks, 2, vec![], vec![(1, 7)]);
    agree(&tracks);
    assert_eq!(Geometry::new(&tracks).locate(13).cylinder, 3);
}

#[test]
fn slips_stay_within_their_unit_or_push_everything_behind_them_on() {
    let within = Geometry::new(&one_zone(Sparing::SectorsPerCylinder, 2, vec![3], vec![]));
    assert_eq!((within.locate(3).sector, within.locate(18).cylinder), (4, 1));
    let to_end = Geometry::new(&one_zone(Sparing::SectorsAtDiskEnd, 0, vec![3], vec![]));
    assert_eq!((to_end.locate(3).sector, to_end.locate(19).cylinder), (4, 1));
}

#[test]
fn slips_among_the_spares_in_front_are_stepped_over_too() {
    let mut front = one_zone(Sparing::SectorsAtCylinderFront, 3, vec![21, 23], vec![]);
    agree(&front);
    assert_eq!(Geometry::new(&front).locate(17).sector, 2, "21 is slipped, 22 takes a block");
    front.zones[0].slips = vec![20, 21];
    agree(&front);
    assert_eq!(Geometry::new(&front).locate(17).sector, 3, "nothing to pull forward");
}

#[test]
fn angles_follow_the_skews() {
    let geometry = Geometry::new(&one_zone(Sparing::None, 0, vec![], vec![]));
    let width = geometry.locate(0).width;
    let turn = |sectors: u64| width.wrapping_mul(sectors);
    assert_eq!(geometry.locate(0).angle, 0);
    assert_eq!(geometry.locate(10).angle, turn(2), "one track switch");
    assert_eq!(geometry.locate(20).angle, turn(5), "one track and one cylinder switch");
}

#[test]
fn slips_beyond_the_spares_of_their_unit_are_refused() {
    let error = Geometry::check(&one_zone(Sparing::SectorsPerCylinder, 1, vec![3, 4], vec![]));
    let (key, message) = error.expect_err("two slips and one spare");
    assert_eq!(key, "[[zone]] number 1: slips");
    assert!(message.contains("2 of them share a unit with 1 spares"), "{message}");
}

#[test]
fn seek_first_orders_skew_a_little_where_the_arm_moves_and_more_where_the_head_changes() {
    let mut parameters = one_zone(Sparing::None, 0, vec![], vec![]);
    parameters.track_order = TrackOrder::SeekAlternatingSurfacesAlternating;
    parameters.zones[0].track_skew = 4.0;
    parameters.zones[0].cylinder_skew = 1.0;
    let geometry = Geometry::new(&parameters);
    let width = geometry.locate(0).width;
    // Two tracks under each of two heads, then the next group, which begins under the second.
    let places: Vec<(u32, u32, u64)> = (0..8)
        .map(|track| geometry.locate(track * 10))
        .map(|at| (at.cylinder, at.head, at.angle.wrapping_add(width / 2) / width % 10))
        .collect();
    let expected =
        [(0, 0, 0), (1, 0, 1), (1, 1, 5), (0, 1, 6), (2, 1, 0), (3, 1, 1), (3, 0, 5), (2, 0, 6)];
    assert_eq!(places, expected);
    assert_eq!(geometry.cylinder_of(35), 0);
}
