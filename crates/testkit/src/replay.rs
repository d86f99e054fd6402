//! Open replay of requests through a queue and one server, one event at a time.

use agewell_core::BlockRequest;

/// When a request was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    /// Which request, by its place in the input.
    pub index: usize,
    /// Service began, ns.
    pub start_ns: u64,
    /// Service ended, ns.
    pub finish_ns: u64,
}

/// Replays `requests` (in order of enqueue time) and returns them in order of service.
///
/// `pick` chooses, from the indices that wait (in order of arrival), the position of the next one;
/// `serve` says when a request given to the server at a time is finished. A completion at the
/// instant of an arrival comes first.
pub fn reference_replay(
    requests: &[BlockRequest],
    mut pick: impl FnMut(&[usize]) -> usize,
    mut serve: impl FnMut(u64, &BlockRequest) -> u64,
) -> Vec<Served> {
    let mut served = Vec::new();
    let mut waiting: Vec<usize> = Vec::new();
    let mut arrived = 0;
    let mut free_at_ns = 0;
    while served.len() < requests.len() {
        if waiting.is_empty() {
            // Nothing waits: the next event is an arrival.
            free_at_ns = free_at_ns.max(requests[arrived].enqueue.0);
            waiting.push(arrived);
            arrived += 1;
        }
        // Everything that arrived strictly before the server became free waits too.
        while arrived < requests.len() && requests[arrived].enqueue.0 < free_at_ns {
            waiting.push(arrived);
            arrived += 1;
        }
        let index = waiting.remove(pick(&waiting));
        let finish_ns = serve(free_at_ns, &requests[index]);
        served.push(Served { index, start_ns: free_at_ns, finish_ns });
        free_at_ns = finish_ns;
    }
    served
}

#[cfg(test)]
mod tests {
    use agewell_core::{Operation, Sector, SectorCount, SimTime};

    use super::*;

    #[test]
    fn a_request_that_finds_the_server_busy_waits() {
        let request = |enqueue| BlockRequest {
            enqueue: SimTime(enqueue),
            sector: Sector(0),
            sectors: SectorCount(1),
            operation: Operation::Read,
            synchronous: true,
        };
        let served =
            reference_replay(&[request(0), request(3), request(30)], |_| 0, |now, _| now + 10);
        let times: Vec<_> = served.iter().map(|one| (one.start_ns, one.finish_ns)).collect();
        assert_eq!(times, [(0, 10), (10, 20), (30, 40)]);
    }
}
