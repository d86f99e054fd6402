//! A file laid out in one piece lies as if its blocks had been laid out one by one, whatever the
//! placement makes of how many blocks there are by then.

use agewell_core::{RandomStreams, uniform_below};
use agewell_log::policy::cost::CostModel;
use agewell_log::policy::placement::{LifeTable, NoSeparation, Placement, SepBit};
use agewell_log::{
    AdaptiveLog, Ages, BlockDevice, Call, CollectedOrder, LogSetting, LogShape, SegmentAge,
    Transfer, Unpriced,
};

#[derive(Default)]
struct Taken(Vec<(Transfer, Vec<u32>)>);

impl BlockDevice for Taken {
    fn transfer(&mut self, transfer: &Transfer, contents: &[u32]) {
        self.0.push((*transfer, contents.to_vec()));
    }
}

const BLOCKS: u32 = 700;

/// Transfers of a log under uniform writes after two files have been laid out; it is made for fewer
/// blocks than they have.
fn transfers<P: Placement + Clone>(
    ages: Ages,
    placement: P,
    in_one_piece: bool,
) -> Vec<(Transfer, Vec<u32>)> {
    let disk = CostModel {
        access_ns: 15_000_000,
        further_ns: 15_000_000,
        bandwidth_bytes_per_s: 5_000_000,
        block_bytes: 4096,
    };
    let shape = LogShape::uniform(BLOCKS / 10 + 30, 13).expect("there are segments");
    let reserve_segments = placement.logs() as u32;
    let setting = LogSetting { ages, reserve_segments, ..LogSetting::plain(shape, 100, disk) };
    let mut log = AdaptiveLog::fixed(setting, placement).expect("it has room to work with");
    for (first, blocks) in [(0, 5), (5, BLOCKS - 5)] {
        if in_one_piece {
            log.preload_run(first, blocks).expect("there is room");
            continue;
        }
        for block in 0..blocks {
            log.carry_out(Call::EnsureBlocks(first + block + 1), &mut Unpriced).unwrap();
            log.carry_out(Call::Preload(first + block), &mut Unpriced).expect("there is room");
        }
    }
    let (mut taken, mut stream) = (Taken::default(), RandomStreams::new(3).stream("writes"));
    for _ in 0..6_000 {
        let block = uniform_below(&mut stream, u64::from(BLOCKS)) as u32;
        log.carry_out(Call::Write { block, client: 0 }, &mut taken).expect("there is room");
    }
    log.verify();
    taken.0
}

#[test]
fn a_file_laid_out_in_one_piece_lies_as_if_laid_out_block_by_block() {
    let by_block = Ages { segment: SegmentAge::Block, order: CollectedOrder::Found };
    for ages in [Ages::default(), by_block] {
        macro_rules! same {
            ($placement:expr) => {
                let whole = transfers(ages, $placement, true);
                assert!(whole == transfers(ages, $placement, false), stringify!($placement));
            };
        }
        same!(NoSeparation);
        same!(SepBit::new(100, 6));
        same!(LifeTable::new(100, 12));
    }
}
