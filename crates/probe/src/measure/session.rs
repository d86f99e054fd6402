//! One probe's dealings with its disk: reads, counted and timed, random numbers, and the time that is left.

use agewell_core::{RandomStreams, SimDuration, SimTime, Stream, uniform_below};

use crate::disk::{Answer, DiskFacts, Extent, ProbeError, ProbedDisk};

/// Sectors of a small read: 4 KiB, which every disk in use reads at once.
pub(crate) const SMALL: u64 = 8;

/// Called with the share that is done and what is being done; whether to go on.
pub(crate) type Progress<'a> = &'a mut dyn FnMut(f64, &str) -> bool;

pub(crate) struct Session<'a> {
    pub(crate) disk: &'a mut dyn ProbedDisk,
    random: Stream,
    began: SimTime,
    budget_ns: u64,
    reads: u64,
    progress: Progress<'a>,
    step: &'static str,
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        disk: &'a mut dyn ProbedDisk,
        budget: SimDuration,
        seed: u64,
        progress: Progress<'a>,
    ) -> Self {
        let began = disk.now();
        let random = RandomStreams::new(seed).stream("probe");
        let budget_ns = budget.0.max(1);
        Self { disk, random, began, budget_ns, reads: 0, progress, step: "" }
    }

    pub(crate) fn facts(&self) -> &DiskFacts {
        self.disk.facts()
    }

    /// Sectors of the disk, whole small reads only.
    pub(crate) fn sectors(&self) -> u64 {
        self.disk.facts().sectors / SMALL * SMALL
    }

    /// Requests so far.
    pub(crate) fn reads(&self) -> u64 {
        self.reads
    }

    /// Time since it began.
    pub(crate) fn spent(&self) -> SimDuration {
        self.disk.now().saturating_since(self.began)
    }

    /// The share of its time that it has used.
    pub(crate) fn share_spent(&self) -> f64 {
        self.spent().0 as f64 / self.budget_ns as f64
    }

    /// Says what is being done from now on.
    pub(crate) fn step(&mut self, step: &'static str) -> Result<(), ProbeError> {
        self.step = step;
        self.show()
    }

    fn show(&mut self) -> Result<(), ProbeError> {
        let share = self.share_spent().min(1.0);
        if (self.progress)(share, self.step) { Ok(()) } else { Err(ProbeError::Interrupted) }
    }

    fn counted(&mut self) -> Result<(), ProbeError> {
        self.reads += 1;
        // Interrupts are heeded often enough for a person, and progress costs nothing.
        if self.reads.is_multiple_of(16) { self.show() } else { Ok(()) }
    }

    /// Reads `sectors` from `first` on, both brought into the disk.
    pub(crate) fn read(&mut self, first: u64, sectors: u64) -> Result<Answer, ProbeError> {
        self.counted()?;
        let extent = self.within(first, sectors);
        self.disk.read(extent)
    }

    /// A small read.
    pub(crate) fn read_small(&mut self, first: u64) -> Result<Answer, ProbeError> {
        self.read(first, SMALL)
    }

    pub(crate) fn read_together(
        &mut self,
        extents: &[Extent],
        depth: usize,
    ) -> Result<Vec<Answer>, ProbeError> {
        let mut answers = Vec::with_capacity(extents.len());
        self.reads += extents.len() as u64;
        self.show()?;
        self.disk.read_together(extents, depth, &mut answers)?;
        Ok(answers)
    }

    pub(crate) fn idle_ns(&mut self, ns: f64) {
        self.disk.idle(SimDuration(ns.clamp(0.0, 60e9) as u64));
    }

    /// `sectors` from `first` on, aligned and brought into the disk.
    pub(crate) fn within(&self, first: u64, sectors: u64) -> Extent {
        let all = self.sectors();
        let sectors = (sectors / SMALL * SMALL).clamp(SMALL, all.max(SMALL));
        let first = (first / SMALL * SMALL).min(all.saturating_sub(sectors));
        Extent { first, sectors }
    }

    /// A number below `bound`; 0 if that is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        uniform_below(&mut self.random, bound.max(1))
    }

    /// A random place for a small read.
    pub(crate) fn place(&mut self) -> u64 {
        let places = (self.sectors() / SMALL).max(1);
        self.below(places) * SMALL
    }

    /// Small reads at random places.
    pub(crate) fn small_extents(&mut self, count: usize) -> Vec<Extent> {
        let places: Vec<u64> = (0..count).map(|_| self.place()).collect();
        places.into_iter().map(|place| self.within(place, SMALL)).collect()
    }

    /// A number in [0, 1).
    pub(crate) fn share(&mut self) -> f64 {
        self.below(1 << 40) as f64 / (1_u64 << 40) as f64
    }

    /// Puts `items` into a random order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}
