//! Memory that begins at a page's start, or a little in front of one.

/// Bytes of a page of the processor, at least: what direct I/O wants data to begin at.
pub(super) const PAGE: usize = 4096;

/// Bytes, reused from request to request.
#[derive(Debug)]
pub(super) struct Pages {
    bytes: Vec<u8>,
    start: usize,
    size: usize,
}

impl Pages {
    /// `size` bytes of which the one at `aligned` lies at a page's start; `aligned` is at most a page.
    pub(super) fn new(size: usize, aligned: usize) -> Self {
        let bytes = vec![0; size + 2 * PAGE];
        let behind_page = bytes.as_ptr().addr() % PAGE;
        let start = (2 * PAGE - behind_page - aligned) % PAGE;
        Self { bytes, start, size }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.size]
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.size]
    }
}

#[cfg(test)]
mod tests {
    use super::{PAGE, Pages};

    #[test]
    fn the_byte_asked_for_lies_at_a_page() {
        for aligned in [0, 1, 80, 4095, 4096] {
            let mut pages = Pages::new(10 * PAGE, aligned);
            assert_eq!(pages.bytes()[aligned..].as_ptr().addr() % PAGE, 0);
            assert_eq!(pages.bytes().len(), 10 * PAGE);
            assert_eq!(pages.bytes_mut().len(), 10 * PAGE);
        }
    }
}
