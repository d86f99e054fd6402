//! Time that a new order of a group's blocks would have saved the reads on record.
//!
//! Every edge of the graph is a step of the arm that was made as often as the edge weighs. Laid out
//! again, a step to the next block of the order costs nothing, and a step that leaves the group an
//! access. So a group that lies in sequence with others loses by being moved, although its own
//! members come together. Steps to a block of the group come from all over, but only from one place
//! at no cost now: from the block right before it on the disk, whose edge is looked up.
//!
//! Neighbours on the disk that came into being one after the other are taken to have been read so
//! once, even if they were not yet.
//!
//! A step costs the mean of what steps took lately ([`ReadTimes`]), forward over a short gap no more
//! than streaming over it; one that leaves the group no less than the model's access.

use super::groups::Groups;
use super::place_view::PlaceView;
use super::read_times::ReadTimes;

/// Disk time that the steps on record would save if `order` were laid out in one row, ns; negative
/// if they would take more.
pub(super) fn savings_ns(
    groups: &Groups,
    order: &[u32],
    reads: &ReadTimes,
    view: &impl PlaceView,
) -> f64 {
    let mut places: Vec<(u32, u32)> =
        order.iter().zip(0..).map(|(block, place)| (*block, place)).collect();
    places.sort_unstable();
    let place_of = |block: u32| {
        let found = places.binary_search_by_key(&block, |member| member.0);
        found.ok().map(|found| places[found].1)
    };
    let access_ns = reads.elsewhere_ns();
    let mut saved_ns = 0.0;
    for (block, place) in order.iter().zip(0_u32..) {
        let Some(slot) = view.slot_of(*block) else { continue };
        for (target, weight) in groups.steps_from(*block) {
            let Some(other) = view.slot_of(target) else { continue };
            let now_ns = reads.mean_step_ns(view.step_blocks(slot, other));
            let then_ns = place_of(target).map_or(access_ns, |next| {
                reads.mean_step_ns(i64::from(next) - i64::from(place) - 1)
            });
            saved_ns += f64::from(weight) * (now_ns - then_ns);
        }
        let is_at = |other: u32, wanted: Option<u32>| wanted.is_some() && place_of(other) == wanted;
        if let Some(before) = view.block_before(slot)
            && !is_at(before, place.checked_sub(1))
        {
            let weight = times(groups, before, *block).max(unread_times(before, *block));
            // Within the group what is on record has been counted from where it begins.
            let counted =
                if place_of(before).is_some() { times(groups, before, *block) } else { 0 };
            saved_ns -= f64::from(weight - counted) * access_ns;
        }
        if let Some(after) = view.block_after(slot).filter(|after| place_of(*after).is_none()) {
            let known = times(groups, *block, after);
            let unread = unread_times(*block, after).saturating_sub(known);
            saved_ns -= f64::from(unread) * access_ns;
        }
    }
    saved_ns
}

/// How often the step from `from` to `to` is on record.
fn times(groups: &Groups, from: u32, to: u32) -> u16 {
    groups.steps_from(from).find(|step| step.0 == to).map_or(0, |step| step.1)
}

/// How often a step between neighbours on the disk is taken to be made though it never was: once, if
/// they came into being one after the other, as blocks of a file do; chosen by us. What was written
/// in sequence is likely to be read so, and moving part of it would make that dear.
fn unread_times(from: u32, to: u32) -> u16 {
    u16::from(from + 1 == to)
}
