//! A drive that holds several commands at once and serves next the one that it can begin first.
//!
//! "Rotational position ordering": of the commands that it holds, the drive takes the one whose data
//! its heads reach first ([`Device::positioning`]), and then the next of those left and those that have
//! come for the place (Intel & Seagate, Serial ATA Native Command Queuing, 2003). The order is the
//! drive's own; of two that it can begin at the same time the one sent first is served first.
//!
//! Invariants: every request is served once; never more than `depth` are held; a request that is no
//! data transfer, or one that may not overtake, waits for all before it and is waited for by all
//! behind it.
//!
//! Differences from real drives: what is held is known to the drive at no cost, and commands arrive
//! as fast as it takes them; none is held back for long because a call has an end.
//!
//! Cost: an estimate of positioning a held request a choice; nothing is allocated once the list of
//! the held has grown.

use agewell_core::{BlockRequest, Operation, SimTime};

use crate::{Device, Service};

/// Numbers of the requests that are held; kept by the drive for its memory alone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Held(Vec<u32>);

/// Has `device` serve `requests`, all issued at `issue`, `depth` of them held at a time, and pushes
/// what each cost in their order; only operations that `may_overtake` are reordered among
/// themselves.
pub(crate) fn serve_nearest_first<D: Device>(
    device: &mut D,
    (held, depth): (&mut Held, u32),
    issue: SimTime,
    requests: &[BlockRequest],
    services: &mut Vec<Service>,
    may_overtake: impl Fn(Operation) -> bool,
) {
    let mut now = issue;
    let may = |request: &BlockRequest| {
        request.operation.transfers_data() && may_overtake(request.operation)
    };
    for group in requests.chunk_by(|one, next| may(one) && may(next)) {
        let first = services.len();
        services.resize(first + group.len(), Service::default());
        held.0.clear();
        let mut sent = 0;
        for _ in 0..group.len() {
            while sent < group.len() && held.0.len() < depth as usize {
                held.0.push(sent as u32);
                sent += 1;
            }
            let number = held.take_nearest(device, now, group);
            let service = device.serve(now, &group[number]);
            now = service.finish;
            services[first + number] = service;
        }
    }
}

impl Held {
    /// Takes the held request that `device` can begin first at `now`.
    fn take_nearest(
        &mut self,
        device: &impl Device,
        now: SimTime,
        requests: &[BlockRequest],
    ) -> usize {
        if let [only] = self.0[..] {
            self.0.clear();
            return only as usize;
        }
        let moment = device.moment(now);
        let claim = |number: u32| (device.positioning(&moment, &requests[number as usize]), number);
        let claims = self.0.iter().map(|number| claim(*number)).enumerate();
        let nearest = claims.min_by_key(|(_, claim)| *claim).expect("a request is held");
        self.0.swap_remove(nearest.0) as usize
    }
}

#[cfg(test)]
mod tests {
    use agewell_core::{RandomStreams, Sector, SectorCount, uniform_below};
    use proptest::prelude::*;

    use super::*;
    use crate::{DeviceKind, DeviceParameters, Mechanical, Simple};

    fn large_drive(queue_depth: u32) -> Mechanical {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../devices/hgst-hus728t8tale6l4.toml");
        let DeviceKind::Mechanical(mut parameters) = DeviceParameters::load(path).unwrap().kind
        else {
            panic!("a mechanical drive")
        };
        parameters.queue_depth = queue_depth;
        Mechanical::new(&parameters)
    }

    fn request(operation: Operation, sector: u64) -> BlockRequest {
        BlockRequest {
            enqueue: SimTime::ZERO,
            sector: Sector(sector * 8),
            sectors: SectorCount(8),
            operation,
            synchronous: true,
        }
    }

    fn random_reads(count: u64) -> Vec<BlockRequest> {
        let mut stream = RandomStreams::new(7).stream("command queue");
        let places = large_drive(1).capacity().0 / 8;
        let mut place = || uniform_below(&mut stream, places);
        (0..count).map(|_| request(Operation::Read, place())).collect()
    }

    fn last_finish(services: &[Service]) -> SimTime {
        services.iter().map(|service| service.finish).max().unwrap()
    }

    fn together(drive: &mut impl Device, requests: &[BlockRequest]) -> Vec<Service> {
        let mut services = Vec::new();
        drive.serve_together(SimTime::ZERO, requests, &mut services);
        services
    }

    #[test]
    fn a_drive_without_a_queue_serves_in_the_order_of_calls() {
        let requests = random_reads(40);
        let mut now = SimTime::ZERO;
        let mut drive = large_drive(1);
        let one_by_one: Vec<Service> = requests
            .iter()
            .map(|request| {
                let service = drive.serve(now, request);
                now = service.finish;
                service
            })
            .collect();
        assert_eq!(together(&mut large_drive(1), &requests), one_by_one);
    }

    #[test]
    fn a_queue_shortens_scattered_reads_and_the_drive_is_never_idle() {
        let requests = random_reads(64);
        let in_order = last_finish(&together(&mut large_drive(1), &requests));
        let services = together(&mut large_drive(32), &requests);
        let queued = last_finish(&services);
        // The drive's specification promises 200 reads a second where one by one there are 82.
        assert!(queued.0 * 10 < in_order.0 * 6, "{queued:?} with a queue, {in_order:?} without");
        let mut finished: Vec<u64> = services.iter().map(|service| service.finish.0).collect();
        finished.sort_unstable();
        let parts = services.iter().map(|service| {
            service.overhead.0 + service.seek.0 + service.rotation.0 + service.transfer.0
        });
        assert_eq!(parts.sum::<u64>(), queued.0, "one request after another, without a gap");
        assert!(finished.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn a_flush_stays_where_it_is() {
        let mut requests = random_reads(9);
        requests[4].operation = Operation::Flush;
        let services = together(&mut large_drive(32), &requests);
        let flushed = services[4].finish;
        assert!(services[..4].iter().all(|service| service.finish <= flushed));
        assert!(services[5..].iter().all(|service| service.finish > flushed));
    }

    proptest! {
        /// A request is overtaken by those alone that were held with it.
        #[test]
        fn no_request_is_served_before_the_queue_has_room_for_it(
            places in prop::collection::vec(0_u64..1000, 1..60),
            depth in 1_u32..9,
        ) {
            let requests: Vec<BlockRequest> =
                places.iter().map(|place| request(Operation::Read, place * 1000)).collect();
            let services = together(&mut large_drive(depth), &requests);
            for (number, service) in services.iter().enumerate() {
                let before = services.iter().filter(|other| other.finish < service.finish).count();
                prop_assert!(number < before + depth as usize, "request {number}, {before} before");
            }
        }

        /// Where nothing is nearer than anything else the order is that of the call.
        #[test]
        fn equals_are_served_as_they_were_sent(depth in 1_u32..9, count in 1_u64..20) {
            let simple = crate::parameters::SimpleParameters {
                access_time_ns: 1_000_000,
                bandwidth_bytes_per_s: 1_000_000,
            };
            let mut device = Simple::new(&simple, SectorCount(1 << 20));
            let requests: Vec<BlockRequest> =
                (0..count).map(|place| request(Operation::Write, (place * 7) % 100)).collect();
            let mut services = Vec::new();
            let held = (&mut Held::default(), depth);
            serve_nearest_first(&mut device, held, SimTime::ZERO, &requests, &mut services, |_| true);
            // `swap_remove` shuffles the held requests; the sequence number decides.
            prop_assert!(services.windows(2).all(|pair| pair[0].finish < pair[1].finish));
        }
    }
}
