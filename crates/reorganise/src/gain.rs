//! Which files would be moved for nothing. A plain function of values.
//!
//! What lies in short stretches is not laid better where free space is scattered: it would only be
//! moved from one short stretch to another, on every run again. So a second run ends with nothing to
//! do.

use crate::arranger::Piece;

/// Of files in their order, those that are better left where they are: neighbours that move, and with
/// those around them lie in as many stretches as before. `after` is where they would lie; those of
/// `stays` do not move. Files for which there was no room are not among them.
///
/// # Panics
/// If the three differ in length.
#[must_use]
pub(crate) fn moved_for_nothing(
    before: &[&[Piece]],
    after: &[Vec<Piece>],
    stays: &[bool],
) -> Vec<bool> {
    assert!(before.len() == after.len() && before.len() == stays.len(), "one of each for a file");
    let mut nothing = vec![false; stays.len()];
    let mut first = 0;
    while first < stays.len() {
        if stays[first] {
            first += 1;
            continue;
        }
        let length = stays[first..].iter().take_while(|stays| !**stays).count();
        let end = first + length;
        // With the neighbours on both sides, which stay.
        let (from, to) = (first.saturating_sub(1), (end + 1).min(stays.len()));
        let moves = (first..end).any(|file| before[file] != after[file]);
        let is = stretches(before[from..to].iter().copied());
        if moves && stretches(after[from..to].iter().map(Vec::as_slice)) >= is {
            nothing[first..end].fill(true);
        }
        first = end;
    }
    nothing
}

/// Pieces in which files lie in their order.
pub(crate) fn stretches<'a>(files: impl Iterator<Item = &'a [Piece]>) -> u64 {
    let mut end = None;
    let mut count = 0;
    for piece in files.flatten() {
        count += u64::from(end != Some(piece.physical_bytes));
        end = Some(piece.physical_bytes + piece.length_bytes);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::moved_for_nothing;
    use crate::arranger::Piece;

    /// Files of one block each, by the blocks that they lie in.
    fn files(blocks: &[u64]) -> Vec<Vec<Piece>> {
        let piece = |block: &u64| Piece {
            logical_bytes: 0,
            physical_bytes: block * 4096,
            length_bytes: 4096,
        };
        blocks.iter().map(|block| vec![piece(block)]).collect()
    }

    fn nothing(before: &[u64], after: &[u64], stays: &[bool]) -> Vec<bool> {
        let before = files(before);
        let before: Vec<&[Piece]> = before.iter().map(Vec::as_slice).collect();
        moved_for_nothing(&before, &files(after), stays)
    }

    #[test]
    fn what_lies_in_as_many_stretches_afterwards_stays() {
        let middle = [true, false, false, true];
        // Two neighbours from one place to another, apart from those around them: nothing is gained.
        assert_eq!(
            nothing(&[0, 50, 51, 90], &[0, 70, 71, 90], &middle),
            [false, true, true, false]
        );
        // They were apart, or come to lie behind the one before them.
        assert_eq!(nothing(&[0, 50, 60, 90], &[0, 70, 71, 90], &middle), [false; 4]);
        assert_eq!(nothing(&[0, 50, 51, 90], &[0, 1, 2, 90], &middle), [false; 4]);
        // They would come to lie worse than they do.
        assert_eq!(nothing(&[0, 1, 2, 3], &[0, 70, 71, 3], &middle), [false, true, true, false]);
    }

    /// What has no room is told as such, and does not pass for what lies well.
    #[test]
    fn what_has_no_room_is_not_among_them() {
        assert_eq!(nothing(&[10, 30, 20], &[10, 30, 20], &[false; 3]), [false; 3]);
    }

    /// Each group for itself.
    #[test]
    fn groups_are_told_apart() {
        let stays = [false, true, false, false];
        let told = nothing(&[9, 20, 40, 60], &[5, 20, 70, 71], &stays);
        assert_eq!(told, [true, false, false, false]);
    }
}
