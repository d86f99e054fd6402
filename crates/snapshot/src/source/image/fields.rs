//! Numbers at fixed places of a structure on disk, in either byte order.

/// Which byte of a number comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteOrder {
    /// The lowest.
    Little,
    /// The highest.
    Big,
}

/// The bytes of a structure and their order.
///
/// Offsets are constants of a format, so that one beyond the structure is our bug and panics;
/// offsets that come from the image are checked before they get here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
    order: ByteOrder,
}

impl<'a> Fields<'a> {
    /// The numbers in `bytes`, which are in `order`.
    pub(super) fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        Self { bytes, order }
    }

    /// The numbers in `bytes`, lowest byte first.
    pub(super) fn little(bytes: &'a [u8]) -> Self {
        Self::new(bytes, ByteOrder::Little)
    }

    /// Which byte of a number comes first.
    pub(super) fn order(self) -> ByteOrder {
        self.order
    }

    fn array<const N: usize>(self, offset: usize) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.bytes[offset..offset + N]);
        if self.order == ByteOrder::Big {
            bytes.reverse();
        }
        bytes
    }

    /// The byte at `offset`.
    pub(super) fn u8(self, offset: usize) -> u8 {
        self.bytes[offset]
    }

    /// The 16-bit number at `offset`.
    pub(super) fn u16(self, offset: usize) -> u16 {
        u16::from_le_bytes(self.array(offset))
    }

    /// The 32-bit number at `offset`.
    pub(super) fn u32(self, offset: usize) -> u32 {
        u32::from_le_bytes(self.array(offset))
    }

    /// The signed 32-bit number at `offset`.
    pub(super) fn i32(self, offset: usize) -> i32 {
        i32::from_le_bytes(self.array(offset))
    }

    /// The 64-bit number at `offset`.
    pub(super) fn u64(self, offset: usize) -> u64 {
        u64::from_le_bytes(self.array(offset))
    }

    /// The 64-bit number whose low half stands at `low` and whose high half at `high`.
    pub(super) fn halves(self, low: usize, high: usize) -> u64 {
        u64::from(self.u32(low)) | u64::from(self.u32(high)) << 32
    }

    /// The bytes at `offset`.
    pub(super) fn slice(self, offset: usize, length: usize) -> &'a [u8] {
        &self.bytes[offset..offset + length]
    }
}
