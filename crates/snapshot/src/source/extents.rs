//! The extents of one file, however they are reported in pieces.

use crate::{Extent, ExtentFlags};

/// Appends `next` to the extents of one file, which begin at `first`; it joins the last one where
/// it goes on in the file and on the device alike, with the same flags.
pub(super) fn push_extent(extents: &mut Vec<Extent>, first: usize, next: Extent) {
    // Of compressed data, lengths in the file and on the device differ.
    let whole = !next.flags.any(ExtentFlags::ENCODED.with(ExtentFlags::INLINE));
    if let Some(last) = extents[first..].last_mut() {
        debug_assert!(last.logical_bytes + last.length_bytes <= next.logical_bytes);
        if whole
            && last.flags == next.flags
            && last.logical_bytes + last.length_bytes == next.logical_bytes
            && (next.flags.any(ExtentFlags::UNKNOWN)
                || last.physical_bytes + last.length_bytes == next.physical_bytes)
        {
            last.length_bytes += next.length_bytes;
            return;
        }
    }
    extents.push(next);
}

#[cfg(test)]
mod tests {
    use super::push_extent;
    use crate::{Extent, ExtentFlags};

    /// However a file is reported in pieces, its extents are the same; those of another file, of
    /// another place and of other flags stay apart.
    #[test]
    fn pieces_that_go_on_are_joined() {
        let piece = |logical_bytes, physical_bytes, flags| Extent {
            logical_bytes,
            physical_bytes,
            length_bytes: 4096,
            flags,
        };
        let none = ExtentFlags::default();
        let other_file = piece(0, 1 << 20, none);
        let mut extents = vec![other_file];
        for extent in [
            piece(0, (1 << 20) + 4096, none),
            piece(4096, (1 << 20) + 8192, none),
            piece(8192, (1 << 20) + 12_288, ExtentFlags::UNWRITTEN),
            piece(12_288, 1 << 30, ExtentFlags::UNWRITTEN),
            piece(20_480, (1 << 30) + 4096, ExtentFlags::UNWRITTEN),
            piece(24_576, 0, ExtentFlags::UNKNOWN),
            piece(28_672, 0, ExtentFlags::UNKNOWN),
            piece(32_768, 1 << 30, ExtentFlags::ENCODED),
            piece(36_864, (1 << 30) + 4096, ExtentFlags::ENCODED),
        ] {
            push_extent(&mut extents, 1, extent);
        }
        let lengths: Vec<u64> = extents.iter().map(|extent| extent.length_bytes / 4096).collect();
        assert_eq!(lengths, [1, 2, 1, 1, 1, 2, 1, 1]);
        assert_eq!(extents[0], other_file);
    }
}
