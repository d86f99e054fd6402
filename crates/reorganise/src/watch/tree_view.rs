//! Where the files of a snapshot lie, as the rule of reorganisation sees them.

use agewell_regrouping::{MemberKey, MemberPlaces, MemberView, ReadHistory, Run};
use agewell_snapshot::{ExtentFlags, FileKind, Snapshot, SnapshotFile};

use super::SLOT_BYTES;

/// Who a file of a snapshot is.
pub(crate) fn key_of(file: &SnapshotFile) -> MemberKey {
    MemberKey { number: file.inode, birth_ns: file.birth_ns }
}

/// Where the data of `file` lie, up to its end.
pub(crate) fn runs_of(snapshot: &Snapshot, file: &SnapshotFile) -> Vec<Run> {
    let nowhere = ExtentFlags::INLINE.with(ExtentFlags::UNKNOWN);
    let end_bytes = file.size_bytes.next_multiple_of(SLOT_BYTES);
    let mut runs: Vec<Run> = Vec::new();
    for extent in snapshot.extents_of(file) {
        if extent.logical_bytes >= end_bytes || extent.flags.any(nowhere) {
            continue;
        }
        let bytes = extent.length_bytes.min(end_bytes - extent.logical_bytes);
        let first = extent.physical_bytes / SLOT_BYTES;
        let slots = (extent.physical_bytes + bytes.max(1) - 1) / SLOT_BYTES - first + 1;
        let offset = extent.logical_bytes / SLOT_BYTES;
        match runs.last_mut() {
            Some(last) if last.offset + last.slots == offset && last.slot + last.slots == first => {
                last.slots += slots;
            }
            _ => runs.push(Run { offset, slot: first, slots }),
        }
    }
    runs
}

/// The files of a snapshot by the numbers of a history. Files that it does not know have numbers above
/// all that it does.
pub(crate) struct TreeView<'a> {
    snapshot: &'a Snapshot,
    /// Where in the snapshot each known file is.
    places: Vec<Option<u32>>,
    lying: MemberPlaces,
}

impl<'a> TreeView<'a> {
    /// Of `snapshot`.
    pub(crate) fn new(snapshot: &'a Snapshot, history: &ReadHistory) -> Self {
        let nodes = history.related().partitions().nodes();
        let mut view =
            Self { snapshot, places: vec![None; nodes as usize], lying: MemberPlaces::new(nodes) };
        for (place, file) in snapshot.files.iter().enumerate() {
            if file.kind != FileKind::Regular || file.size_bytes == 0 {
                continue;
            }
            let runs = runs_of(snapshot, file);
            if runs.is_empty() {
                continue;
            }
            let known = history.number(key_of(file)).filter(|number| *number < nodes);
            let number = known.unwrap_or(nodes + place as u32);
            if let Some(known) = known {
                view.places[known as usize] = Some(place as u32);
            }
            view.lying.set(number, runs);
        }
        view
    }

    /// Where in the snapshot a file is; none where it is not, or holds nothing.
    pub(crate) fn place(&self, number: u32) -> Option<u32> {
        match self.places.get(number as usize) {
            Some(place) => *place,
            None => Some(number - self.places.len() as u32),
        }
    }

    /// The file of the snapshot.
    pub(crate) fn file(&self, number: u32) -> Option<&'a SnapshotFile> {
        self.snapshot.files.get(self.place(number)? as usize)
    }
}

impl MemberView for TreeView<'_> {
    fn places(&self) -> &MemberPlaces {
        &self.lying
    }

    /// Files of a directory that lie side by side are likely to be read so; chosen by us.
    fn are_in_sequence(&self, from: u32, to: u32) -> bool {
        let directory = |number: u32| self.file(number).map(|file| file.directory);
        directory(from).is_some() && directory(from) == directory(to)
    }
}
