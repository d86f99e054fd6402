//! A log that chooses its mechanism by watching what every mechanism costs.
//!
//! The estimate of Matthews 1999 (eqs. 7 and 8) prices the next collection alone. But a collection
//! changes what the later ones will find: plugging leaves the log full of full segments, threading
//! leaves holes where they are, cleaning gathers them. So the cheapest step is not the cheapest way
//! to go on, and the estimate picks the dearer mechanism where their costs are close.
//!
//! This log keeps a shadow for every mechanism: a log of the same shape, metadata only, that sees
//! the same writes and never uses another mechanism. What each shadow spends on a new block is
//! measured, not estimated, and the real log uses the mechanism whose shadow spends least. It is
//! wrong only for as long as the shadows' recent past does not show what comes next.
//!
//! A large log is shadowed at a smaller scale: of every `scale` neighbouring groups of blocks one is
//! shadowed, on as many times fewer segments, so that the shadows' memory and time do not grow with
//! the disk. Groups keep neighbours together; one sync in `scale` is passed on, so that partial
//! segments are as large as the real ones.

use agewell_core::mix;

use super::policy::mechanism::{Collect, Mechanism, Standing, choose_measured};
use super::policy::placement::Placement;
use super::{CostMeter, Trigger};
use super::{Counts, Log, LogDevice, LogError, LogSetting, LogShape, ShapeError, Zone};

/// Blocks shadowed at most; chosen by us: shadows of some thousand segments show the cost of a
/// mechanism to within a percent, and take a few MB.
const SHADOW_BLOCKS_MAX: u32 = 1 << 17;

/// Neighbouring blocks that are shadowed together or not at all; chosen by us: of the order of a
/// small file.
const GROUP_BLOCKS: u32 = 16;

/// How much longer than the horizon the longer past is. Chosen among 2 to 6 on uniform and
/// hot-and-cold updates and on Zipf's of exponent 1, each on three disks, where 6 stayed nearest to
/// the best single mechanism.
const LONGER: u64 = 6;

/// Parts of the horizon after which the past counts for less.
const HORIZON_PARTS: u64 = 16;

/// A log, and the shadows it learns from.
#[derive(Debug, Clone)]
pub struct AdaptiveLog<P> {
    log: Log<P>,
    shadows: Vec<Shadow<P>>,
    sample: Sample,
    /// Whether the shadows have ever spent different times.
    parted: bool,
    /// Syncs of each client that were not passed on to the shadows yet.
    held_syncs: Vec<u32>,
}

impl<P: Placement> AdaptiveLog<P> {
    /// A log that uses what its setting says, without shadows.
    ///
    /// # Errors
    /// If the setting leaves the log nothing to work with.
    pub fn fixed(setting: LogSetting, placement: P) -> Result<Self, ShapeError> {
        let held_syncs = Vec::new();
        let sample = Sample { scale: 1 };
        Ok(Self {
            log: Log::new(setting, placement)?,
            shadows: Vec::new(),
            sample,
            parted: false,
            held_syncs,
        })
    }

    /// A log that chooses among `mechanisms`; `placement` makes one for so many blocks.
    ///
    /// # Errors
    /// If the setting leaves the log nothing to work with.
    pub fn among(
        mechanisms: &[Mechanism],
        mut setting: LogSetting,
        placement: impl Fn(u32) -> P,
    ) -> Result<Self, ShapeError> {
        let sample = Sample { scale: setting.blocks.div_ceil(SHADOW_BLOCKS_MAX).max(1) };
        let shadow = |mechanism: &Mechanism| Shadow::new(*mechanism, &setting, sample, &placement);
        let shadows = mechanisms.iter().map(shadow).collect::<Result<Vec<_>, _>>()?;
        let held_syncs = vec![0; setting.clients as usize];
        setting.collect = Collect::Always(mechanisms[0]);
        let blocks = setting.blocks;
        Ok(Self {
            log: Log::new(setting, placement(blocks))?,
            shadows,
            sample,
            parted: false,
            held_syncs,
        })
    }

    /// The log itself.
    #[must_use]
    pub fn log(&self) -> &Log<P> {
        &self.log
    }

    /// What it has done so far.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        self.log.counts()
    }

    /// What each mechanism costs by its shadow, in the recent past.
    pub fn standings(&self) -> impl Iterator<Item = Standing> + '_ {
        self.shadows.iter().map(Shadow::standing)
    }

    /// Lets blocks be numbered up to `blocks`.
    pub fn ensure_blocks(&mut self, blocks: u32) {
        self.log.ensure_blocks(blocks);
        for shadow in &mut self.shadows {
            shadow.log.ensure_blocks(self.sample.blocks(blocks));
        }
    }

    /// The user writes `block`.
    ///
    /// # Errors
    /// If no room can be made for it.
    #[inline]
    pub fn write(
        &mut self,
        block: u32,
        client: u32,
        device: &mut impl LogDevice,
    ) -> Result<(), LogError> {
        if !self.shadows.is_empty() {
            self.shadow_write(block, client);
        }
        self.log.write(block, client, device)
    }

    fn shadow_write(&mut self, block: u32, client: u32) {
        let Some(shadowed) = self.sample.of(block) else { return };
        let mut spent = false;
        for shadow in &mut self.shadows {
            spent |= shadow.write(shadowed, client);
        }
        // Most writes only go to a buffer: then nothing has changed that could be judged anew.
        if spent {
            self.choose();
        }
    }

    fn choose(&mut self) {
        let Collect::Always(current) = self.log.collect_rule() else { return };
        if !self.parted {
            // Until the first collection all mechanisms cost the same; that past says nothing.
            let mut spent = self.shadows.iter().map(|shadow| shadow.meter.total_ns());
            let first = spent.next();
            self.parted = spent.any(|other| Some(other) != first);
            if self.parted {
                self.shadows.iter_mut().for_each(Shadow::forget);
            }
            return;
        }
        let chosen = choose_measured(current, self.shadows.iter().map(Shadow::standing));
        self.log.set_collect(Collect::Always(chosen));
    }

    /// Lays out `block` as it was before the first request: see [`Log::preload`].
    ///
    /// # Errors
    /// If there is no room left beyond the reserve.
    pub fn preload(&mut self, block: u32, device: &mut impl LogDevice) -> Result<(), LogError> {
        if let Some(shadowed) = self.sample.of(block) {
            for shadow in &mut self.shadows {
                shadow.preload(shadowed);
            }
        }
        self.log.preload(block, device)
    }

    /// `block` is deleted.
    pub fn delete(&mut self, block: u32, device: &mut impl LogDevice) {
        if let Some(shadowed) = self.sample.of(block) {
            for shadow in &mut self.shadows {
                shadow.log.delete(shadowed, &mut shadow.meter);
            }
        }
        self.log.delete(block, device);
    }

    /// Sends what `client` has written to the disk.
    ///
    /// # Errors
    /// If no room can be made for it.
    pub fn sync(&mut self, client: u32, device: &mut impl LogDevice) -> Result<(), LogError> {
        if !self.shadows.is_empty() {
            let held = &mut self.held_syncs[client as usize];
            *held += 1;
            if *held >= self.sample.scale {
                *held = 0;
                let utilization = self.utilization();
                for shadow in &mut self.shadows {
                    shadow.sync(client);
                    shadow.keep_utilization(utilization);
                }
                self.choose();
            }
        }
        self.log.sync(client, device)
    }

    /// Sends everything to the disk.
    ///
    /// # Errors
    /// If no room can be made for it.
    pub fn sync_all(&mut self, device: &mut impl LogDevice) -> Result<(), LogError> {
        for client in 0..self.log.setting.clients {
            self.sync(client, device)?;
        }
        Ok(())
    }

    /// The host has `block` in its cache, or has dropped it.
    pub fn set_resident(&mut self, block: u32, resident: bool) {
        if let Some(shadowed) = self.sample.of(block) {
            for shadow in &mut self.shadows {
                shadow.log.set_resident(shadowed, resident);
            }
        }
        self.log.set_resident(block, resident);
    }

    /// Collects in the background: see [`Log::collect_ahead`].
    ///
    /// # Errors
    /// If collected blocks find no place.
    pub fn collect_ahead(
        &mut self,
        free_wanted: u32,
        device: &mut impl LogDevice,
    ) -> Result<bool, LogError> {
        self.log.collect_ahead(free_wanted, device)
    }

    fn utilization(&self) -> f64 {
        self.log.live_blocks() as f64 / self.log.shape().capacity_blocks() as f64
    }

    /// Checks the invariants of the log and its shadows.
    ///
    /// # Panics
    /// If one does not hold, which is a bug.
    pub fn verify(&self) {
        self.log.verify();
        self.shadows.iter().filter(|shadow| !shadow.failed).for_each(|shadow| shadow.log.verify());
    }
}

/// Which blocks are shadowed: of every `scale` neighbouring groups the one that a hash picks, so
/// that exactly the same share of any dense range is.
#[derive(Debug, Clone, Copy)]
struct Sample {
    scale: u32,
}

impl Sample {
    /// The shadows' number of `block`, if it is shadowed.
    #[inline]
    fn of(self, block: u32) -> Option<u32> {
        if self.scale == 1 {
            return Some(block);
        }
        let group = block / GROUP_BLOCKS;
        let (window, place) = (group / self.scale, group % self.scale);
        let picked = (mix(u64::from(window)) % u64::from(self.scale)) as u32;
        (picked == place).then_some(window * GROUP_BLOCKS + block % GROUP_BLOCKS)
    }

    /// Numbers the shadows need for `blocks`.
    fn blocks(self, blocks: u32) -> u32 {
        if self.scale == 1 {
            return blocks;
        }
        blocks.div_ceil(GROUP_BLOCKS).div_ceil(self.scale) * GROUP_BLOCKS
    }
}

/// A log that only ever uses one mechanism, and what that costs.
#[derive(Debug, Clone)]
struct Shadow<P> {
    log: Log<P>,
    mechanism: Mechanism,
    meter: CostMeter,
    scale: u32,
    failed: bool,
    /// New blocks after which the past begins to count for less.
    part_blocks: u64,
    /// What was spent, ns, and written, blocks, with older parts counting less: over the horizon,
    /// and over a longer one.
    past: [(f64, f64); 2],
    /// Meter and count when the current part began.
    part_began: (u64, u64),
}

impl<P: Placement> Shadow<P> {
    fn new(
        mechanism: Mechanism,
        setting: &LogSetting,
        sample: Sample,
        placement: &impl Fn(u32) -> P,
    ) -> Result<Self, ShapeError> {
        let mut setting = setting.clone();
        setting.collect = Collect::Always(mechanism);
        setting.blocks = sample.blocks(setting.blocks);
        if sample.scale > 1 {
            setting.shape = Self::scaled(&setting, sample.scale)?;
        }
        let meter = CostMeter::new(setting.disk);
        let placement = placement(setting.blocks);
        // The shadows forget over as many writes as there are blocks: by then every segment has
        // been written anew on average.
        let part_blocks = (u64::from(setting.blocks) / HORIZON_PARTS).max(1);
        Ok(Self {
            log: Log::new(setting, placement)?,
            mechanism,
            meter,
            scale: sample.scale,
            failed: false,
            part_blocks,
            past: [(0.0, 0.0); 2],
            part_began: (0, 0),
        })
    }

    /// A shape of fewer segments, with a fifth more than the scale says: how many of them are used
    /// follows the utilization of the log itself, because the sample's own share of live blocks is
    /// only about right.
    fn scaled(setting: &LogSetting, scale: u32) -> Result<LogShape, ShapeError> {
        let zones = (0..setting.shape.zones()).map(|zone| {
            let Zone { segments, segment_blocks } = setting.shape.zone(zone);
            let segments = (segments / scale).max(8) * 6 / 5 + setting.reserve_segments;
            Zone { segments, segment_blocks }
        });
        LogShape::zoned(&zones.collect::<Vec<_>>())
    }

    fn preload(&mut self, block: u32) {
        if !self.failed {
            self.failed = self.log.preload(block, &mut self.meter).is_err();
        }
    }

    /// Writes `block`; whether that took any disk time, or failed.
    fn write(&mut self, block: u32, client: u32) -> bool {
        if self.failed {
            return false;
        }
        let before_ns = self.meter.total_ns();
        self.failed = self.log.write(block, client, &mut self.meter).is_err();
        let spent = self.failed || self.meter.total_ns() != before_ns;
        if spent {
            self.remember();
        }
        spent
    }

    fn sync(&mut self, client: u32) {
        if !self.failed {
            self.failed = self.log.sync(client, &mut self.meter).is_err();
            self.remember();
        }
    }

    /// Leaves as much of a scaled shadow unused as gives it this utilization.
    fn keep_utilization(&mut self, utilization: f64) {
        if self.scale == 1 || self.failed || self.log.setting.trigger != Trigger::NoFreeSegment {
            return;
        }
        let shape = self.log.shape();
        let blocks = shape.segment_blocks_max();
        let used = (self.log.live_blocks() as f64 / utilization / f64::from(blocks)).ceil() as u32;
        let least = self.log.placement().logs() as u32;
        let unused = shape.segments().saturating_sub(used);
        self.log.setting.reserve_segments = unused.clamp(least, shape.segments() / 2);
    }

    fn remember(&mut self) {
        let (ns, blocks) = (self.meter.total_ns(), self.log.counts().new_blocks);
        if blocks - self.part_began.1 >= self.part_blocks {
            for (past, longer) in self.past.iter_mut().zip([1, LONGER]) {
                let kept = 1.0 - 1.0 / (HORIZON_PARTS * longer) as f64;
                past.0 = past.0 * kept + (ns - self.part_began.0) as f64;
                past.1 = past.1 * kept + (blocks - self.part_began.1) as f64;
            }
            self.part_began = (ns, blocks);
        }
    }

    fn forget(&mut self) {
        self.past = [(0.0, 0.0); 2];
        self.part_began = (self.meter.total_ns(), self.log.counts().new_blocks);
    }

    fn standing(&self) -> Standing {
        let (ns, blocks) = (self.meter.total_ns(), self.log.counts().new_blocks);
        let (ns, blocks) = ((ns - self.part_began.0) as f64, (blocks - self.part_began.1) as f64);
        let mean = |past: (f64, f64)| {
            if self.failed {
                f64::INFINITY
            } else if past.1 + blocks > 0.0 {
                (past.0 + ns) / (past.1 + blocks)
            } else {
                0.0
            }
        };
        let [recent, longer] = self.past.map(mean);
        Standing {
            mechanism: self.mechanism,
            recent_ns_per_block: recent,
            longer_ns_per_block: longer,
        }
    }
}
