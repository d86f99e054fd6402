//! Numbers and names, one behind another, out of bytes that may be too few.

/// What is left of a message. Each call gives `None` where there is too little, and takes nothing then.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u16::from_ne_bytes(*number))
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_ne_bytes(*number))
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*number))
    }

    /// A size or offset that counts from zero up to what a file may have.
    pub(super) fn offset(&mut self) -> Option<u64> {
        let mut ahead = *self;
        let offset = ahead.u64()?;
        i64::try_from(offset).ok()?;
        *self = ahead;
        Some(offset)
    }

    pub(super) fn skip(&mut self, size: usize) -> Option<()> {
        self.bytes(size).map(|_| ())
    }

    pub(super) fn bytes(&mut self, size: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(size)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Bytes up to a NUL, which is taken as well: not none.
    pub(super) fn text(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|&byte| byte == 0)?;
        if end == 0 {
            return None;
        }
        let text = &self.0[..end];
        self.0 = &self.0[end + 1..];
        Some(text)
    }

    /// The name of a file: a text without a slash.
    pub(super) fn name(&mut self) -> Option<&'a [u8]> {
        let mut ahead = *self;
        let name = ahead.text()?;
        if name.contains(&b'/') {
            return None;
        }
        *self = ahead;
        Some(name)
    }

    pub(super) fn size(&self) -> usize {
        self.0.len()
    }
}
