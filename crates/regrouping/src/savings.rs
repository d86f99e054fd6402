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

use crate::place_view::StepView;
use crate::read_times::ReadTimes;

/// Steps of the arm on record.
pub trait Steps {
    /// The steps from `block`, each with how often it was made.
    fn steps_from(&self, block: u32) -> impl Iterator<Item = (u32, u16)>;

    /// How often the step from `from` to `to` is on record.
    fn times(&self, from: u32, to: u32) -> u16 {
        self.steps_from(from).find(|step| step.0 == to).map_or(0, |step| step.1)
    }
}

/// Disk time that the steps on record would save if `order` were laid out in one row, ns; negative
/// if they would take more.
pub fn savings_ns(
    steps: &impl Steps,
    order: &[u32],
    reads: &ReadTimes,
    view: &impl StepView,
) -> f64 {
    // Each with where in the row it would begin.
    let mut places: Vec<(u32, u32)> = Vec::with_capacity(order.len());
    let mut end = 0;
    for block in order {
        places.push((*block, end));
        end += view.slots(*block);
    }
    let in_order = places.clone();
    places.sort_unstable();
    let place_of = |block: u32| {
        let found = places.binary_search_by_key(&block, |member| member.0);
        found.ok().map(|found| places[found].1)
    };
    let access_ns = reads.elsewhere_ns();
    let mut saved_ns = 0.0;
    for (block, place) in in_order {
        let slots = view.slot_of(block).zip(view.last_slot_of(block));
        let Some((slot, last_slot)) = slots else { continue };
        let end = place + view.slots(block);
        for (target, weight) in steps.steps_from(block) {
            let Some(other) = view.slot_of(target) else { continue };
            let now_ns = reads.mean_step_ns(view.step_blocks(last_slot, other));
            let then_ns = place_of(target)
                .map_or(access_ns, |next| reads.mean_step_ns(i64::from(next) - i64::from(end)));
            saved_ns += f64::from(weight) * (now_ns - then_ns);
        }
        if let Some(before) = view.block_before(slot)
            && place_of(before).is_none_or(|other| other + view.slots(before) != place)
        {
            let weight = steps.times(before, block).max(unread_times(view, before, block));
            // Within the group what is on record has been counted from where it begins.
            let counted = if place_of(before).is_some() { steps.times(before, block) } else { 0 };
            saved_ns -= f64::from(weight - counted) * access_ns;
        }
        if let Some(after) = view.block_after(last_slot).filter(|after| place_of(*after).is_none())
        {
            let known = steps.times(block, after);
            let unread = unread_times(view, block, after).saturating_sub(known);
            saved_ns -= f64::from(unread) * access_ns;
        }
    }
    saved_ns
}

/// How often a step between neighbours on the disk is taken to be made though it never was.
fn unread_times(view: &impl StepView, from: u32, to: u32) -> u16 {
    u16::from(view.came_in_sequence(from, to))
}
