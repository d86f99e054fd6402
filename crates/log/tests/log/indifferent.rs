//! A placement that looks at nothing need not be asked, and it makes no difference whether it is;
//! nor does it whether writes that only wait are handed over one by one.

use agewell_core::{RandomStreams, uniform_below};
use agewell_log::policy::cost::CostModel;
use agewell_log::policy::mechanism::{Collect, Mechanism};
use agewell_log::policy::placement::{CollectedSegment, NoSeparation, Placement};
use agewell_log::{Ages, CollectedOrder, Counts, Log, LogSetting, LogShape, SegmentAge};
use agewell_log::{BlockDevice, Transfer};

/// One log for everything, asked each time.
struct Asked;

impl Placement for Asked {
    fn logs(&self) -> usize {
        1
    }

    fn place_new(&mut self, _block: u32, _overwrites: bool, _clock: u64) -> u8 {
        0
    }

    fn place_collected(&mut self, _block: u32, _segment: &CollectedSegment, _clock: u64) -> u8 {
        0
    }
}

#[derive(Default)]
struct Taken(Vec<(Transfer, Vec<u32>)>);

impl BlockDevice for Taken {
    fn transfer(&mut self, transfer: &Transfer, contents: &[u32]) {
        self.0.push((*transfer, contents.to_vec()));
    }
}

/// Transfers of a log under uniform writes of 300 blocks, deletions and syncs among them; writes
/// are handed over `at_once` at most, where they only have to wait.
fn transfers(
    setting: &LogSetting,
    placement: impl Placement,
    at_once: usize,
) -> (Vec<(Transfer, Vec<u32>)>, Counts) {
    let mut log = Log::new(setting.clone(), placement).unwrap();
    let (mut taken, mut stream) = (Taken::default(), RandomStreams::new(3).stream("writes"));
    let at_once = if log.takes_many_writes() { at_once } else { 0 };
    let mut written = Vec::new();
    for number in 0..6_000 {
        let block = uniform_below(&mut stream, 300) as u32;
        let other = number % 17 == 11 || (number % 17 == 5 && number > 600);
        if !other {
            written.push(block);
            continue;
        }
        let mut rest = &written[..];
        while let Some((first, later)) = rest.split_first() {
            let waiting = match at_once {
                0 => 0,
                most => log.write_to_buffer(&rest[..rest.len().min(most)], 0),
            };
            rest = &rest[waiting..];
            if waiting == 0 {
                log.write(*first, 0, &mut taken).unwrap();
                rest = later;
            }
        }
        written.clear();
        match number % 17 {
            5 => log.delete(block, &mut taken),
            _ => log.sync(0, &mut taken).unwrap(),
        }
    }
    log.sync_all(&mut taken).unwrap();
    log.verify();
    (taken.0, *log.counts())
}

#[test]
fn who_is_indifferent_need_not_be_asked_nor_write_one_by_one() {
    let disk = CostModel {
        access_ns: 15_000_000,
        further_ns: 15_000_000,
        bandwidth_bytes_per_s: 5_000_000,
        block_bytes: 4096,
    };
    // Segments that share words of bits, and others that have several.
    let shapes = [(3, 30), (24, 16), (70, 8), (200, 6)];
    let ages = [
        Ages::default(),
        Ages { segment: SegmentAge::Block, order: CollectedOrder::Found },
        Ages { segment: SegmentAge::Segment, order: CollectedOrder::Age },
    ];
    for (segment_blocks, spare) in shapes {
        let segments = 300_u32.div_ceil(segment_blocks) + spare;
        let shape = LogShape::uniform(segments, segment_blocks).unwrap();
        for ages in ages {
            for mechanism in Mechanism::ALL {
                for buffer_blocks in [1, 7, segment_blocks.max(2)] {
                    let setting = LogSetting {
                        buffer_blocks,
                        collect: Collect::Always(mechanism),
                        ages,
                        batch_segments: if ages.order == CollectedOrder::Age { 3 } else { 0 },
                        ..LogSetting::plain(shape.clone(), 300, disk)
                    };
                    let asked = transfers(&setting, Asked, 0);
                    for at_once in [0, 1, 5, 100] {
                        let ours = transfers(&setting, NoSeparation, at_once);
                        assert!(
                            ours == asked,
                            "{segment_blocks} {ages:?} {mechanism:?} {buffer_blocks} {at_once}"
                        );
                    }
                }
            }
        }
    }
}
