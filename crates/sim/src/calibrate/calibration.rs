//! Transfer times of each mechanism on a drive, calibrated before the first request.
//!
//! A log that has never filled holes cannot know the time that takes. So before a run whose log
//! chooses its mechanism, small logs are written on fresh copies of the drive, one for each
//! mechanism. They have the same segments and utilization, are spread over as much of the drive,
//! and are written at random and in pieces of every length. Their transfer times are recorded,
//! mechanism by mechanism ([`TransferTimes`]): a drive that is written in whole segments only, and
//! one whose holes are filled, take different times for the same transfer (because of data in a
//! shingled drive's cache, in its buffer, in half-written units of flash). For that reason every
//! write of a trial reaches the drive: times between writes that it does not see are those of a
//! drive at rest.
//!
//! A disk without mechanics is not calibrated: its cost model is exact.
//!
//! Cost: one or two tenths of a second, however large the log.

use agewell_core::{RandomStreams, Stream, uniform_below};
use agewell_log::policy::mechanism::{Collect, Mechanism};
use agewell_log::policy::placement::NoSeparation;
use agewell_log::{BlockDevice, Transfer, Unpriced};
use agewell_log::{Log, LogError, LogSetting, LogShape, TransferTimes};

use crate::drive::TimedDisk;

/// Least blocks of a trial log, if the log itself has as many; chosen by us.
const TRIAL_BLOCKS: u64 = 1 << 16;

/// Segments of it likewise; chosen by us: as many as leave a few spare ones at 0.99.
const TRIAL_SEGMENTS: u32 = 512;

/// Passes over its data that are written; chosen by us: two and four lead to the same choices on
/// drawn and recorded loads.
const PASSES: u64 = 1;

/// Neighbouring blocks that are written together at most; chosen by us: of the order of a small file.
const RUN_BLOCKS_MAX: u64 = 16;

/// Transfer times of logs with `setting` and `live` live blocks on `disk`, which is fresh, with
/// each of `mechanisms` by itself.
pub(crate) fn calibrate(
    disk: &TimedDisk,
    setting: &LogSetting,
    live: u64,
    mechanisms: &[Mechanism],
    seed: u64,
) -> Vec<TransferTimes> {
    let (setting, scale) = small(setting, live);
    let live = (live / u64::from(scale)).max(1) as u32;
    let buffer_blocks = setting.buffer_blocks;
    let tried = mechanisms.iter().map(|mechanism| {
        let times = TransferTimes::new(setting.disk);
        let setting =
            LogSetting { collect: Collect::Always(*mechanism), blocks: live, ..setting.clone() };
        let Ok(log) = Log::new(setting, NoSeparation) else { return times };
        let stream = RandomStreams::new(seed).stream("disk.trial");
        let mut disk = disk.clone();
        disk.begin_learning(times);
        // A mechanism that finds no room keeps the times recorded until then.
        let _ = Trial { log, live, buffer_blocks, stream }.run(scale, &mut disk);
        disk.end_learning().expect("it was told to learn")
    });
    tried.collect()
}

/// The setting of a log with few of the segments of `setting`, and of how many each stands for one.
fn small(setting: &LogSetting, live: u64) -> (LogSetting, u32) {
    let shape = &setting.shape;
    let by_blocks = (shape.capacity_blocks() / TRIAL_BLOCKS) as u32;
    let scale = by_blocks.min(shape.segments() / TRIAL_SEGMENTS).max(1);
    let small = LogShape::uniform(shape.segments() / scale, shape.segment_blocks_max());
    match small {
        Ok(small) if shape.zones() == 1 && scale > 1 => {
            let small = LogSetting { shape: small, ..setting.clone() };
            if small.check_fits(live / u64::from(scale), 1).is_ok() {
                return (small, scale);
            }
            (setting.clone(), 1)
        }
        _ => (setting.clone(), 1),
    }
}

/// A log under trial.
struct Trial {
    log: Log<NoSeparation>,
    live: u32,
    buffer_blocks: u32,
    stream: Stream,
}

impl Trial {
    /// Writes the log over on `disk`, where segments lie `scale` times as far apart.
    fn run(&mut self, scale: u32, disk: &mut TimedDisk) -> Result<(), LogError> {
        for block in 0..self.live {
            self.log.preload(block, &mut Unpriced)?;
        }
        let shape = self.log.shape().clone();
        let block_bytes = disk.meter().model().block_bytes;
        // Room is short, and mechanisms differ, only when every segment has been written once; flash
        // that holds something where part of a unit is written must read it first.
        for segment in 0..shape.segments() {
            let first = shape.first_slot(segment);
            for slot in first..first + shape.segment_blocks(segment) {
                disk.prefill(spread(&shape, scale, slot), block_bytes);
            }
        }
        let mut device = Spread { disk, shape: &shape, scale };
        self.write(u64::from(self.live) * PASSES, &mut device)?;
        Ok(())
    }

    /// Writes `blocks` blocks or a few more, in pieces of every length, each of runs of one length.
    fn write(&mut self, blocks: u64, device: &mut impl BlockDevice) -> Result<(), LogError> {
        let buffer_blocks = u64::from(self.buffer_blocks.min(self.live));
        let mut written = 0;
        while written < blocks {
            let piece = self.draw_length(buffer_blocks);
            let run = self.draw_length(piece.min(RUN_BLOCKS_MAX));
            for _ in 0..piece / run {
                let first = uniform_below(&mut self.stream, u64::from(self.live) - run + 1);
                for block in first..first + run {
                    self.log.write(block as u32, 0, device)?;
                }
            }
            self.log.sync(0, device)?;
            written += piece;
        }
        Ok(())
    }

    /// A power of two that is no more than `most`.
    fn draw_length(&mut self, most: u64) -> u64 {
        1 << uniform_below(&mut self.stream, u64::from(most.max(1).ilog2()) + 1)
    }
}

/// Where `slot` of a small log lies on a drive of `scale` times as many segments.
fn spread(shape: &LogShape, scale: u32, slot: u32) -> u32 {
    let segment = shape.segment_of(slot);
    let first = shape.first_slot(segment);
    // Slots of a segment are numbered from a multiple of the same on.
    first * scale + (slot - first)
}

/// A drive on which the segments of a small log lie far apart.
struct Spread<'a> {
    disk: &'a mut TimedDisk,
    shape: &'a LogShape,
    scale: u32,
}

impl BlockDevice for Spread<'_> {
    fn transfer(&mut self, transfer: &Transfer, contents: &[u32]) {
        let slot = spread(self.shape, self.scale, transfer.slot);
        self.disk.transfer(&Transfer { slot, ..*transfer }, contents);
    }

    fn commit(&mut self) {
        self.disk.commit();
    }

    fn begin_batch(&mut self) {
        self.disk.begin_batch();
    }

    fn end_batch(&mut self) {
        self.disk.end_batch();
    }

    fn wait(&mut self) {
        self.disk.wait();
    }
}
