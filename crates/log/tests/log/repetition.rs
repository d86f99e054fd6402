//! The same operations give the same log, and a copy goes on as the original.

use agewell_core::{RandomStreams, Stream, uniform_below};
use agewell_log::policy::mechanism::{Collect, Mechanism, PlugCandidate};
use agewell_log::policy::placement::SepBit;
use agewell_log::{
    AdaptiveLog, BlockDevice, Call, Counts, Header, LogSetting, LogShape, Transfer, Unpriced,
    Victim,
};

use crate::case::DISK;

const BLOCKS: u32 = 20_000;

/// A hash of all transfers, in their order, and of what they carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Digest(u64);

impl BlockDevice for Digest {
    fn transfer(&mut self, transfer: &Transfer, contents: &[u32]) {
        let head = [transfer.purpose as u32, transfer.slot, transfer.blocks, transfer.header_bytes];
        for word in head.iter().chain(contents) {
            self.0 = agewell_core::mix(self.0 ^ u64::from(*word));
        }
    }
}

fn log(victim: Victim, collect: Option<Collect>) -> AdaptiveLog<SepBit> {
    let setting = LogSetting {
        clients: 3,
        buffer_blocks: 32,
        victim,
        collect: collect.unwrap_or(Collect::Always(Mechanism::Clean)),
        reserve_segments: 6,
        header: Header::Segment,
        tracks_cache: true,
        ..LogSetting::plain(LogShape::uniform(BLOCKS / 32 * 10 / 9 + 12, 32).unwrap(), BLOCKS, DISK)
    };
    let placement = |blocks| SepBit::new(blocks as usize, 6);
    match collect {
        Some(_) => AdaptiveLog::fixed(setting, placement(BLOCKS)),
        None => AdaptiveLog::among(&Mechanism::ALL, setting, placement),
    }
    .unwrap()
}

fn work(log: &mut AdaptiveLog<SepBit>, stream: &mut Stream, digest: &mut Digest) -> Counts {
    for turn in 0..4 * BLOCKS {
        let block = uniform_below(stream, u64::from(BLOCKS)) as u32;
        let client = turn % 3;
        match turn % 16 {
            5 => log.carry_out(Call::Delete(block), digest).unwrap(),
            7 => log
                .carry_out(Call::SetResident { block, resident: turn % 3 > 0 }, &mut Unpriced)
                .unwrap(),
            11 => log.carry_out(Call::Sync { client }, digest).unwrap(),
            _ => log.carry_out(Call::Write { block, client }, digest).unwrap(),
        }
    }
    *log.log().counts()
}

#[test]
fn the_same_operations_give_the_same_transfers() {
    let victims =
        [Victim::Greedy, Victim::CostAgeCache, Victim::Fifo, Victim::RandomGreedy { choices: 3 }];
    let rules = [
        Some(Collect::Always(Mechanism::Plug)),
        Some(Collect::Always(Mechanism::Thread)),
        Some(Collect::Matthews1999(PlugCandidate::LeastUtilized)),
        None,
    ];
    for (victim, collect) in victims.into_iter().flat_map(|victim| rules.map(|rule| (victim, rule)))
    {
        let run = || {
            let (mut log, mut digest) = (log(victim, collect), Digest(0));
            let mut stream = RandomStreams::new(3).stream("operations");
            let counts = work(&mut log, &mut stream, &mut digest);
            (log, stream, digest, counts)
        };
        let (mut first, mut stream, mut digest, counts) = run();
        let (mut second, mut same_stream, mut same_digest, same_counts) = run();
        assert_eq!((digest, counts), (same_digest, same_counts), "{victim:?} {collect:?}");
        assert!(counts.read_blocks > 0 || counts.threaded_blocks > 0, "nothing was collected");

        let mut copy = first.clone();
        let (mut copied_stream, mut copied_digest) = (stream.clone(), digest);
        let counts = work(&mut first, &mut stream, &mut digest);
        let copied_counts = work(&mut copy, &mut copied_stream, &mut copied_digest);
        let same_counts = work(&mut second, &mut same_stream, &mut same_digest);
        assert_eq!((digest, counts), (copied_digest, copied_counts), "a copy goes on otherwise");
        assert_eq!((digest, counts), (same_digest, same_counts), "{victim:?} {collect:?}");
        copy.verify();
    }
}
