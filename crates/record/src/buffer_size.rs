//! How large the kernel's buffer of a processor should be.
//!
//! It grows with the load: a buffer of which one round of reading took a quarter or more is doubled.
//! The reader is woken when a quarter is full and otherwise every tenth of a second, so that buffers
//! come to hold at least 0.4 s of the highest load seen. They never shrink: that would lose events.

/// Size to begin with; chosen by us: some 16,000 events, so 0.4 s of 13,000 requests a second of one
/// processor.
pub const FIRST_BYTES: u64 = 1 << 20;
/// Most for one processor unless memory is small; chosen by us: 0.4 s of 800,000 requests a second.
const MOST_BYTES: u64 = 64 << 20;
/// All buffers together take this part of the memory at most; chosen by us.
const MEMORY_PART: u64 = 16;

/// The most that the buffer of one of `processors` may take of `memory_bytes`.
#[must_use]
pub fn most_bytes(memory_bytes: u64, processors: usize) -> u64 {
    let share = memory_bytes / MEMORY_PART / processors.max(1) as u64;
    share.clamp(FIRST_BYTES, MOST_BYTES)
}

/// The next size of a buffer of `bytes` out of which one round of reading took `taken_bytes`; `None`
/// to leave it.
#[must_use]
pub fn next_bytes(bytes: u64, taken_bytes: u64, most_bytes: u64) -> Option<u64> {
    (taken_bytes >= bytes / 4 && bytes < most_bytes).then(|| (2 * bytes).min(most_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_grows_until_a_round_takes_less_than_a_quarter() {
        let most = most_bytes(16 << 30, 2);
        assert_eq!(most, 64 << 20);
        let mut bytes = FIRST_BYTES;
        // 0.1 s of 150,000 events of 64 bytes a second.
        while let Some(next) = next_bytes(bytes, 960_000, most) {
            bytes = next;
        }
        assert_eq!(bytes, 4 << 20);
        assert_eq!(next_bytes(most, most, most), None);
        assert_eq!(most_bytes(1 << 30, 128), FIRST_BYTES);
    }
}
