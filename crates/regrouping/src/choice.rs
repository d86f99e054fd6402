//! Which files pay to be moved: the rule of the simulator on a history of files. A function of values.

use agewell_log::policy::cost::CostModel;
use serde::Serialize;

use crate::member_places::MemberView;
use crate::read_history::ReadHistory;
use crate::{Proposal, RelatedBlocks, StepView, Steps, VALUE_MIN, is_moved, savings_ns};

/// Most times that a file is moved before it is written again; that of the simulated reorganisation by
/// gain.
const MOVES_MAX: u8 = 4;

/// Visits since it was last written below which a file is not moved with others; chosen by us, as the
/// partitions shift no boundary for what was seen once.
const VISITS_MIN: u32 = 2;

/// Pieces of files that make room are taken to be of so many slots; chosen by us: 64 KiB.
const ROOM_PIECE_SLOTS: f64 = 16.0;

/// Steps between files, of which some may be unknown to the graph.
struct FileSteps<'a>(&'a RelatedBlocks);

impl Steps for FileSteps<'_> {
    fn steps_from(&self, file: u32) -> impl Iterator<Item = (u32, u16)> {
        let known = Some(file).filter(|file| *file < self.0.partitions().nodes());
        known.into_iter().flat_map(|file| self.0.steps_from(file))
    }
}

/// Files that are laid side by side, in this order.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Their numbers in the history.
    pub files: Vec<u32>,
    /// Bytes that they take.
    pub bytes: u64,
    /// Time that reads would have saved, ns.
    pub saved_ns: f64,
    /// And are likely to save, ns.
    pub likely_ns: f64,
    /// Disk time of the move, ns.
    pub cost_ns: f64,
    /// Reads that are expected of them, each right behind another.
    pub expected: f64,
    /// Files that lie in rows with others of their directory that stay.
    pub torn: u64,
}

/// What was looked at, and what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Considered {
    /// Groups of files that were read together more than twice, or single ones.
    pub groups: u64,
    /// Of those, groups that lie well.
    pub well: u64,
    /// Groups with a file that has been moved as often as it may be.
    pub bounded: u64,
    /// Groups that would not save more than they cost.
    pub declined: u64,
    /// Groups beyond the budget.
    pub beyond_budget: u64,
    /// What the best of those declined is likely to save, s.
    pub best_saved_seconds: f64,
    /// And what it would cost, s.
    pub best_cost_seconds: f64,
}

/// What pays.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Choice {
    /// The groups that pay, those that save most for their bytes first.
    pub groups: Vec<Group>,
    /// What was looked at.
    pub considered: Considered,
}

/// The groups of files of `history` that pay to be moved, of no more than `allowance_bytes` together,
/// those that save most for their bytes first.
pub fn choose(history: &mut ReadHistory, view: &impl MemberView, allowance_bytes: u64) -> Choice {
    let mut choice = Choice::default();
    let disk = history.times.observed();
    let room_ns = room_ns(history, &disk);
    let mut candidates: Vec<(Group, Proposal, f64)> = Vec::new();
    for number in history.related().partitions().numbers() {
        let Some((group, proposal, share)) = propose(history, view, number, &disk, room_ns) else {
            continue;
        };
        choice.considered.groups += 1;
        let moves = group.files.iter().filter_map(|file| history.file(*file));
        let most = moves.map(|file| file.moves).max().unwrap_or(0);
        if proposal.saved_ns <= 0.0 {
            choice.considered.well += 1;
        } else if most >= MOVES_MAX {
            choice.considered.bounded += 1;
        } else {
            candidates.push((group, proposal, share));
        }
    }
    let for_bytes = |group: &Group| group.likely_ns / group.bytes.max(1) as f64;
    candidates.sort_by(|(one, ..), (other, ..)| {
        for_bytes(other).total_cmp(&for_bytes(one)).then(one.files.cmp(&other.files))
    });
    let mut left_bytes = allowance_bytes;
    let mut moving_ns = history.totals.moving_ns as f64;
    let mut best = f64::NEG_INFINITY;
    for (group, proposal, share) in candidates {
        if group.bytes > left_bytes {
            choice.considered.beyond_budget += 1;
        } else if is_moved(&proposal, &disk, share, moving_ns, &mut history.trust) {
            left_bytes -= group.bytes;
            moving_ns += group.cost_ns;
            choice.groups.push(group);
        } else {
            choice.considered.declined += 1;
            if group.likely_ns - group.cost_ns > best {
                best = group.likely_ns - group.cost_ns;
                choice.considered.best_saved_seconds = group.likely_ns / 1e9;
                choice.considered.best_cost_seconds = group.cost_ns / 1e9;
            }
        }
    }
    choice
}

/// What moving the files of a partition would bring; none where they were not read together, or alone,
/// more than twice.
fn propose(
    history: &ReadHistory,
    view: &impl MemberView,
    partition: u32,
    disk: &CostModel,
    room_ns: f64,
) -> Option<(Group, Proposal, f64)> {
    let related = history.related();
    let partitions = related.partitions();
    let (ties, len) = (partitions.ties_within(partition), u64::from(partitions.len(partition)));
    let mut files = Vec::new();
    related.lay_out(partition, &mut files);
    let known = |file: &u32| history.file(*file);
    // A file by itself: two for each time that it was read, as in a chain.
    let alone = files.first().and_then(known).filter(|_| len == 1);
    let weight = alone.map_or(ties, |file| 2 * u64::from(file.visits));
    if weight <= VALUE_MIN * len {
        return None;
    }
    // A file that was read once has come in after another by chance, as far as anyone knows.
    let is_read = |file: &u32| known(file).is_some_and(|known| known.visits >= VISITS_MIN);
    files.retain(|file| view.slot_of(*file).is_some() && (alone.is_some() || is_read(file)));
    if files.is_empty() || (alone.is_some() && view.places().runs(files[0]).len() < 2) {
        return None;
    }
    let slots: u32 = files.iter().map(|file| view.slots(*file)).sum();
    let runs = files.iter().flat_map(|file| view.places().runs(*file));
    let mut pieces = 0;
    let mut end = None;
    for run in runs {
        pieces += u32::from(end != Some(run.slot));
        end = Some(run.slot + run.slots);
    }
    let breaks: u64 = files.iter().filter_map(known).map(|file| u64::from(file.breaks)).sum();
    let within_ns = breaks as f64 * disk.access_ns as f64;
    let proposal = Proposal {
        blocks: slots,
        pieces,
        pieces_moved: slots.div_ceil(history.row_slots()).max(1),
        // What has to be read from the disk again and again does not stay in memory.
        uncached_blocks: slots,
        uncached_pieces: pieces,
        saved_ns: savings_ns(&FileSteps(related), &files, &history.times, view) + within_ns,
        room_ns,
    };
    let share = if alone.is_some() {
        history.trust.share()
    } else {
        // Each step counts at both of its ends.
        history.trust.share_after((ties as f64 / len.max(1) as f64 / 2.0).round())
    };
    let visits: u64 = files.iter().filter_map(known).map(|file| u64::from(file.visits)).sum();
    let members = files.len() as f64;
    let group = Group {
        bytes: u64::from(slots) * disk.block_bytes,
        saved_ns: proposal.saved_ns,
        likely_ns: proposal.saved_ns * share,
        cost_ns: proposal.cost_ns(disk),
        expected: visits as f64 * (members - 1.0) / members,
        torn: torn(&files, view),
        files,
    };
    Some((group, proposal, share))
}

/// Files that lie beside others of their directory which are not moved with them.
fn torn(files: &[u32], view: &impl MemberView) -> u64 {
    let mut moving = files.to_vec();
    moving.sort_unstable();
    let stays = |file: u32| moving.binary_search(&file).is_err();
    let is_torn = |file: &&u32| {
        let before = view.slot_of(**file).and_then(|slot| view.block_before(slot));
        let after = view.last_slot_of(**file).and_then(|slot| view.block_after(slot));
        before.is_some_and(|before| stays(before) && view.came_in_sequence(before, **file))
            || after.is_some_and(|after| stays(after) && view.came_in_sequence(**file, after))
    };
    files.iter().filter(is_torn).count() as u64
}

/// Cost of making room for a slot, ns, by what had to be moved beside the files so far.
fn room_ns(history: &ReadHistory, disk: &CostModel) -> f64 {
    let totals = &history.totals;
    let laid_bytes = totals.moved_bytes.saturating_sub(totals.room_bytes);
    if laid_bytes == 0 {
        return 0.0;
    }
    let share = totals.room_bytes as f64 / laid_bytes as f64;
    // Read and written, a piece at a time.
    2.0 * share
        * (disk.streaming_ns(disk.block_bytes) as f64 + disk.access_ns as f64 / ROOM_PIECE_SLOTS)
}
