//! How large the kernel's buffer of a processor should be.
//!
//! Large from the beginning, because it cannot grow with the load: while it resizes a buffer the kernel
//! (`__tracing_resize_ring_buffer`) stops tracing, and what happens then is lost without being counted.
//! On Linux 6.18 four doublings at 50,000 requests a second lost 2 % of the events of four seconds.

/// Size of one processor's buffer unless memory is small; chosen by us: some 250,000 events, so what
/// comes in a second if one processor serves 80,000 requests a second.
const USUAL_BYTES: u64 = 16 << 20;
/// All buffers together take this part of the memory at most; chosen by us.
const MEMORY_PART: u64 = 16;
/// The least that is of use; chosen by us: 0.1 s of 50,000 requests a second.
const LEAST_BYTES: u64 = 1 << 20;
/// Bytes of an event in the buffer, about: of those of Linux 6.18 two take 68 and one 56.
const EVENT_BYTES: u64 = 64;
/// Events of a request: it is queued, issued, completed.
const REQUEST_EVENTS: u64 = 3;

/// The buffer of each of `processors` on a machine with `memory_bytes`.
#[must_use]
pub fn usual_bytes(memory_bytes: u64, processors: usize) -> u64 {
    let share = memory_bytes / MEMORY_PART / processors.max(1) as u64;
    share.clamp(LEAST_BYTES, USUAL_BYTES)
}

/// The buffer that would have held `requests_per_second` of one processor for a second.
#[must_use]
pub fn bytes_for(requests_per_second: f64) -> u64 {
    let bytes = requests_per_second * (REQUEST_EVENTS * EVENT_BYTES) as f64;
    (bytes as u64).next_multiple_of(LEAST_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_take_a_small_part_of_the_memory() {
        assert_eq!(usual_bytes(16 << 30, 2), USUAL_BYTES);
        assert_eq!(usual_bytes(16 << 30, 128), 8 << 20);
        assert_eq!(usual_bytes(1 << 30, 128), LEAST_BYTES);
        assert_eq!(usual_bytes(0, 0), LEAST_BYTES);
    }

    #[test]
    fn a_second_of_the_highest_load_fits() {
        assert_eq!(bytes_for(0.0), 0);
        assert_eq!(bytes_for(1.0), LEAST_BYTES);
        assert_eq!(bytes_for(80_000.0), 15 << 20);
    }
}
