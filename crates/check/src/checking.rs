//! Reads a store as a reader does, and says all that is wrong with it.

use crate::data::{self, Lying};
use crate::findings::{Blocks, Finding, Severity, Structure};
use crate::geometry::Geometry;
use crate::groups::{self, Replayed};
use crate::image::Image;
use crate::map::{self, Map};
use crate::root::{self, Root};
use crate::superblock;

/// Blocks whose data is damaged and that are named one by one; chosen by us: more are read by nobody.
const DAMAGED_NAMED_MAX: usize = 1000;

/// Why a store cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// There is nothing like a superblock.
    #[error("is not a store: no superblock at its beginning or at its end")]
    NotAStore,
    /// The store is of a later format.
    #[error("{0}")]
    Unsupported(String),
    /// All superblocks are damaged, so that nothing says where anything lies.
    #[error("no superblock is whole: nothing says where anything lies")]
    NoSuperblock(Vec<Finding>),
    /// The caller has said so.
    #[error("stopped")]
    Stopped,
}

/// What a check looks at.
#[derive(Debug, Clone, Copy, Default)]
pub struct CheckOptions {
    /// The data of every block as well, and segments that nothing names.
    pub data: bool,
}

/// How far a check has come: blocks of data that were read, of how many. Whether to go on.
pub type Progress<'a> = dyn FnMut(u64, u64) -> bool + 'a;

/// What was read of a store, and what is wrong with it.
#[derive(Debug)]
pub struct Checked {
    /// Where its parts lie.
    pub geometry: Geometry,
    /// Where its blocks lie, as far as that is known; without what [`Checked::findings`] says is lost.
    pub map: Map,
    /// The last group that counts.
    pub sequence: u64,
    /// Every group up to this one was on the medium.
    pub flushed: u64,
    /// It was closed in order, and not opened since.
    pub closed_in_order: bool,
    /// There is a root to go by.
    pub has_root: bool,
    /// The generation of that.
    pub root_generation: u64,
    /// How often the store has been opened, as its records say.
    pub incarnation: u32,
    /// Records of the ring that were read, and the blocks that they take.
    pub ring_records: u64,
    /// See [`Checked::ring_records`].
    pub ring_blocks: u64,
    /// Segments that are written to, and those that are kept ready for it.
    pub open_segments: Vec<u32>,
    /// Groups that were not acknowledged, and are left out.
    pub dropped_groups: u64,
    /// Live blocks of each segment.
    pub live_of_segments: Vec<u32>,
    /// All that is wrong.
    pub findings: Vec<Finding>,
}

impl Checked {
    /// Nothing is damaged.
    pub fn is_clean(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity == Severity::Note)
    }

    /// Blocks whose data is lost or not certain, in order.
    pub fn affected(&self) -> Blocks {
        let mut all = Blocks::default();
        for finding in &self.findings {
            all.extend(&finding.blocks);
        }
        all.settle();
        all
    }

    /// What the map has at places of its own, in order of slots; those known to be damaged are left out.
    pub(crate) fn lying(&self) -> Vec<Lying> {
        let slots = self.geometry.slots();
        let blocks = self.map.iter().filter(|(_, entry)| !entry.damaged && entry.slot < slots);
        let mut sorted: Vec<Lying> = blocks
            .map(|(block, entry)| Lying { slot: entry.slot, block, short_sum: entry.short_sum })
            .collect();
        sorted.sort_unstable();
        sorted
    }
}

/// Reads a store and names all that is wrong with it.
///
/// # Errors
///
/// It is none, or of a format that is not known here, or nothing says where anything lies, or
/// `progress` says to stop.
pub fn check<I: Image + ?Sized>(
    image: &I,
    options: CheckOptions,
    progress: &mut Progress<'_>,
) -> Result<Checked, CheckError> {
    let mut findings = Vec::new();
    let copies = superblock::read_copies(image);
    let geometry = superblock::choose(&copies, &mut findings)?;
    check_from(image, geometry, findings, options, progress)
}

/// The same from the superblock on.
pub(crate) fn check_from<I: Image + ?Sized>(
    image: &I,
    geometry: Geometry,
    mut findings: Vec<Finding>,
    options: CheckOptions,
    progress: &mut Progress<'_>,
) -> Result<Checked, CheckError> {
    let device_blocks = image.size_bytes() / u64::from(geometry.block_bytes);
    if device_blocks < geometry.used_blocks {
        let used = geometry.used_blocks;
        let problem = format!("it uses {used} blocks, where the device has {device_blocks}");
        findings.push(Finding::damage(Structure::Store, None, problem));
    }
    let root = root::choose(image, &geometry, &mut findings);
    let mut map = Map::empty(&geometry);
    let mut replayed = Replayed::default();
    if let Some(root) = &root {
        map = map::read_map(image, &geometry, root, &mut findings);
        replayed = groups::replay(image, &geometry, root, &mut map, options.data, &mut findings);
    } else {
        let all = Blocks::range(0, geometry.blocks - 1);
        let problem = "no root is valid: nothing says which map pages are current";
        findings.push(Finding::damage(Structure::Store, None, problem).affecting(all));
    }
    let (closed, root_generation) =
        root.as_ref().map_or((false, 0), |root: &Root| (root.closed, root.generation));
    let mut checked = Checked {
        map,
        sequence: replayed.sequence,
        flushed: replayed.flushed,
        closed_in_order: closed && replayed.ring_records == 0,
        has_root: root.is_some(),
        root_generation,
        incarnation: replayed.incarnation,
        ring_records: replayed.ring_records,
        ring_blocks: replayed.ring_blocks,
        open_segments: replayed.open_segments,
        dropped_groups: replayed.dropped_groups,
        live_of_segments: Vec::new(),
        findings,
        geometry,
    };
    let there = device_blocks.saturating_sub(checked.geometry.segments_start);
    check_map(&mut checked, u32::try_from(there).unwrap_or(u32::MAX));
    if options.data {
        check_data(image, &mut checked, progress)?;
    }
    Ok(checked)
}

/// Whether the map makes sense: numbers and slots that there are, and one block in a slot. `there`
/// slots lie before the end of the device.
fn check_map(checked: &mut Checked, there: u32) {
    let Checked { geometry, map, findings, .. } = checked;
    let slots = geometry.slots().min(there);
    let mut taken = SlotSet::new(slots);
    let mut live = vec![0_u32; slots.div_ceil(geometry.segment_blocks) as usize];
    let mut twice = Vec::new();
    for (block, entry) in map.iter() {
        if block >= geometry.blocks {
            let structure = Structure::MapPage(block / geometry.page_entries());
            let problem = format!("it has block {block}, where there are {}", geometry.blocks);
            findings.push(Finding::damage(structure, None, problem));
        }
        if entry.slot >= slots {
            let problem = format!("it is said to lie in slot {} of {slots}", entry.slot);
            let finding = Finding::damage(Structure::Block(block), None, problem);
            findings.push(finding.affecting(Blocks::range(block, block)));
            continue;
        }
        live[(entry.slot / geometry.segment_blocks) as usize] += 1;
        if !taken.insert(entry.slot) {
            twice.push(entry.slot);
        }
        if entry.damaged {
            let problem = format!("its data was lost before it came to slot {}", entry.slot);
            let address = geometry.slot_address(entry.slot);
            let finding = Finding::damage(Structure::Block(block), address, problem);
            findings.push(finding.affecting(Blocks::range(block, block)));
        }
    }
    twice.sort_unstable();
    twice.dedup();
    if !twice.is_empty() {
        // Only now, so that memory is taken for what is wrong and not for what is right.
        let mut owners: Vec<(u32, u32)> = map
            .iter()
            .filter(|(_, entry)| twice.binary_search(&entry.slot).is_ok())
            .map(|(block, entry)| (entry.slot, block))
            .collect();
        owners.sort_unstable();
        for same in owners.chunk_by(|one, next| one.0 == next.0) {
            let slot = same[0].0;
            let structure = Structure::Segment(slot / geometry.segment_blocks);
            let problem = format!("{} blocks lie in slot {slot}", same.len());
            let blocks = Blocks::of(same.iter().map(|&(_, block)| block));
            let address = geometry.slot_address(slot);
            findings.push(Finding::damage(structure, address, problem).affecting(blocks));
        }
    }
    checked.live_of_segments = live;
}

/// Whether the data of every block matches its short sum.
fn check_data<I: Image + ?Sized>(
    image: &I,
    checked: &mut Checked,
    progress: &mut Progress<'_>,
) -> Result<(), CheckError> {
    let sorted = checked.lying();
    let of = sorted.len() as u64;
    let found = data::verify(image, &checked.geometry, &sorted, &mut |done| progress(done, of))
        .ok_or(CheckError::Stopped)?;
    for (lying, problem) in found.iter().take(DAMAGED_NAMED_MAX) {
        let address = checked.geometry.slot_address(lying.slot);
        let structure = Structure::Block(lying.block);
        let finding = Finding::damage(structure, address, problem.clone());
        checked.findings.push(finding.affecting(Blocks::range(lying.block, lying.block)));
    }
    let others = found.get(DAMAGED_NAMED_MAX..).unwrap_or(&[]);
    if !others.is_empty() {
        let problem = format!("the data of {} blocks more is damaged", others.len());
        let blocks = Blocks::of(others.iter().map(|(lying, _)| lying.block));
        checked.findings.push(Finding::damage(Structure::Store, None, problem).affecting(blocks));
    }
    Ok(())
}

/// Slots, a bit each.
struct SlotSet {
    words: Vec<u64>,
}

impl SlotSet {
    fn new(slots: u32) -> Self {
        Self { words: vec![0; slots.div_ceil(u64::BITS) as usize] }
    }

    /// Whether it was not there yet.
    fn insert(&mut self, slot: u32) -> bool {
        let (word, bit) = ((slot / u64::BITS) as usize, 1 << (slot % u64::BITS));
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        is_new
    }
}
