//! A placement that looks at nothing need not be asked, and it makes no difference whether it is.

use agewell_core::{RandomStreams, uniform_below};
use agewell_layout::block_device::{BlockDevice, Transfer};
use agewell_layout::lfs::policy::cost::CostModel;
use agewell_layout::lfs::policy::mechanism::{Collect, Mechanism};
use agewell_layout::lfs::policy::placement::{CollectedSegment, NoSeparation, Placement};
use agewell_layout::lfs::{Ages, CollectedOrder, Log, LogSetting, LogShape, SegmentAge};

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

/// What a log does under uniform writes of 300 blocks, deletions and syncs among them.
fn transfers(setting: &LogSetting, placement: impl Placement) -> Vec<(Transfer, Vec<u32>)> {
    let mut log = Log::new(setting.clone(), placement).unwrap();
    let (mut taken, mut stream) = (Taken::default(), RandomStreams::new(3).stream("writes"));
    for number in 0..6_000 {
        let block = uniform_below(&mut stream, 300) as u32;
        match number % 17 {
            5 if number > 600 => log.delete(block, &mut taken),
            11 => log.sync(0, &mut taken).unwrap(),
            _ => log.write(block, 0, &mut taken).unwrap(),
        }
    }
    log.sync_all(&mut taken).unwrap();
    log.verify();
    taken.0
}

#[test]
fn who_is_indifferent_need_not_be_asked() {
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
                    let ours = transfers(&setting, NoSeparation);
                    let asked = transfers(&setting, Asked);
                    assert!(
                        ours == asked,
                        "{segment_blocks} {ages:?} {mechanism:?} {buffer_blocks}"
                    );
                }
            }
        }
    }
}
