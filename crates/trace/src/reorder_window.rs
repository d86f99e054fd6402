//! Where readers put their rows: checks each one, orders them by enqueue time and moves the clock
//! to the trace's start.
//!
//! Two policies. *Strict*: the format promises rising times, so a step back is an error. *Window*:
//! the format logs at completion or merges several clocks, so rows are sorted within a window of
//! [`WINDOW_ROWS`]; a row later than the window can repair is an error. Invariant: rows leave in
//! order of enqueue time, with ties in file order.

use crate::error::Problem;
use crate::metadata::{DeviceTable, TraceMetadata};
use crate::record::{BATCH_ROWS, BlockBatch, BlockRow, DEVICE_SECTORS_MAX, PlainRow, TIME_MISSING};

/// Rows held back to restore the order of formats that log out of order; chosen by us: about 6 MB.
pub(crate) const WINDOW_ROWS: usize = 65_536;

/// A step back further than this is no late completion but a broken clock; chosen by us, an order
/// of magnitude above the longest command time-outs.
const STEP_BACK_NS_MAX: u64 = 600_000_000_000;

/// What becomes time zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The first request's enqueue time.
    FirstRecord,
    /// The zero of the format's own clock: its header dates it.
    ClockZero,
}

/// Whether the format promises rising times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Strict,
    Window,
}

/// The state shared by every reader.
pub(crate) struct ReorderWindow {
    pub(crate) metadata: TraceMetadata,
    pub(crate) devices: DeviceTable,
    pub(crate) skip_bad: bool,
    /// Civil time of the format's clock zero, ns since 1970 in the metadata's zone.
    pub(crate) wall_of_clock_zero_ns: Option<i128>,
    /// Rows are pushed as they complete, so sorting them is no news.
    pub(crate) disorder_is_normal: bool,
    order: Order,
    origin_rule: Origin,
    origin_ns: Option<u64>,
    /// Latest enqueue time pushed; in the window only since it last was sorted.
    latest_ns: u64,
    /// Nothing before this may come any more.
    released_ns: u64,
    sorted: bool,
    window: BlockBatch,
    ready: BlockBatch,
    ready_head: usize,
    rows: u64,
    /// A warning given again and again, and how often since the metadata was given.
    repeated: Option<(&'static str, u64)>,
}

impl ReorderWindow {
    pub(crate) fn new(
        metadata: TraceMetadata,
        order: Order,
        origin: Origin,
        skip_bad: bool,
    ) -> Self {
        Self {
            metadata,
            devices: DeviceTable::default(),
            skip_bad,
            wall_of_clock_zero_ns: None,
            disorder_is_normal: false,
            order,
            origin_rule: origin,
            origin_ns: None,
            latest_ns: 0,
            released_ns: 0,
            sorted: true,
            window: BlockBatch::default(),
            ready: BlockBatch::default(),
            ready_head: 0,
            rows: 0,
            repeated: None,
        }
    }

    /// Counts `times` occurrences of something the user should know, of a format that says so with
    /// every record; the metadata is given with every batch.
    #[inline]
    pub(crate) fn warn_again(&mut self, text: &'static str, times: u64) {
        match &mut self.repeated {
            Some((known, count)) if std::ptr::eq(*known, text) => *count += times,
            _ => {
                self.tell_repeated();
                self.repeated = Some((text, times));
            }
        }
    }

    fn tell_repeated(&mut self) {
        if let Some((text, count)) = self.repeated.take() {
            self.metadata.warn_many(text, count);
        }
    }

    /// Whether anything is ready to be taken.
    pub(crate) fn has_ready(&self) -> bool {
        self.ready_head < self.ready.len()
    }

    /// Whether a batch is ready to be taken.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.ready.len() - self.ready_head >= BATCH_ROWS
    }

    /// Rows accepted so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Overrides the format's rule for time zero, before the first row.
    pub(crate) fn set_origin_rule(&mut self, origin: Origin) {
        assert!(self.rows == 0, "the origin is settled before the first row");
        self.origin_rule = origin;
    }

    /// Declares this time of the format's clock to be the trace's start: nothing before it comes any more.
    pub(crate) fn start_at(&mut self, clock_ns: u64) {
        if self.origin_ns.is_none() {
            self.set_origin(clock_ns);
            self.latest_ns = self.latest_ns.max(clock_ns);
            self.released_ns = self.released_ns.max(clock_ns);
        }
    }

    /// Accepts one request; times on the format's own clock in ns.
    #[inline]
    pub(crate) fn push(&mut self, mut row: BlockRow) -> Result<(), Problem> {
        let is_flush = row.operation == agewell_core::Operation::Flush as u8;
        if row.sectors == 0 && !is_flush {
            return Err(Problem::new("a request of no length"));
        }
        if row.sector > DEVICE_SECTORS_MAX - u64::from(row.sectors) {
            if !is_flush {
                return Err(Problem::new(format!("sector {} is beyond any device", row.sector)));
            }
            // A flush has no address; Linux shows that by one that no device has.
            (row.sector, row.sectors) = (0, 0);
        }
        if row.start_ns < row.enqueue_ns
            || row.finish_ns < row.enqueue_ns
            || (row.start_ns != TIME_MISSING && row.finish_ns < row.start_ns)
        {
            return Err(Problem::new(format!(
                "times out of order: enqueued {}, started {}, finished {} ns",
                row.enqueue_ns,
                time_text(row.start_ns),
                time_text(row.finish_ns)
            )));
        }
        match self.order {
            Order::Strict => self.push_strict(row),
            Order::Window => self.push_window(row),
        }
    }

    /// [`Self::push`] of a row that says nothing of its start, its end, its flags and its client: what
    /// stands for that is put beside many such rows at once.
    #[inline]
    pub(crate) fn push_bare(&mut self, row: BlockRow) -> Result<(), Problem> {
        let is_plain = self.order == Order::Strict
            && row.operation != agewell_core::Operation::Flush as u8
            && row.sectors > 0
            && row.sector <= DEVICE_SECTORS_MAX - u64::from(row.sectors)
            && row.enqueue_ns >= self.latest_ns;
        let Some(origin) = self.origin_ns.filter(|_| is_plain) else { return self.push(row) };
        self.latest_ns = row.enqueue_ns;
        self.rows += 1;
        self.ready.push_bare(
            row.enqueue_ns - origin,
            row.device,
            row.sector,
            row.sectors,
            row.operation,
        );
        Ok(())
    }

    /// [`Self::push_bare`] of the first of `rows`, all of one device and one operation that moves data:
    /// as many as fit the batch, up to one that is not plain or that there is something to say about,
    /// which `rows` shows by ending there. How many.
    pub(crate) fn push_plain(
        &mut self,
        device: u32,
        operation: agewell_core::Operation,
        rows: impl Iterator<Item = PlainRow>,
    ) -> usize {
        let Some(origin) = self.origin_ns.filter(|_| self.order == Order::Strict) else { return 0 };
        let room = BATCH_ROWS.saturating_sub(self.ready.len() - self.ready_head);
        let mut latest_ns = self.latest_ns;
        let plain = rows.take(room).map_while(|row| {
            let is_plain = row.sectors > 0
                && row.sector <= DEVICE_SECTORS_MAX - u64::from(row.sectors)
                && row.enqueue_ns >= latest_ns;
            if is_plain {
                latest_ns = row.enqueue_ns;
            }
            is_plain.then(|| PlainRow { enqueue_ns: row.enqueue_ns - origin, ..row })
        });
        let pushed = self.ready.push_plain(device, operation as u8, room, plain);
        self.latest_ns = latest_ns;
        self.rows += pushed as u64;
        pushed
    }

    #[inline]
    fn push_strict(&mut self, row: BlockRow) -> Result<(), Problem> {
        if row.enqueue_ns < self.latest_ns {
            return Err(Problem::new(format!(
                "the clock goes back by {} ns, to {} ns; sort the trace by time",
                self.latest_ns - row.enqueue_ns,
                row.enqueue_ns
            )));
        }
        self.latest_ns = row.enqueue_ns;
        let origin = match self.origin_ns {
            Some(origin) => origin,
            None => self.first_origin(row.enqueue_ns),
        };
        self.rows += 1;
        self.ready.complete();
        self.ready.push(rebased(row, origin));
        Ok(())
    }

    #[inline]
    fn push_window(&mut self, row: BlockRow) -> Result<(), Problem> {
        if row.enqueue_ns < self.released_ns {
            return Err(Problem::new(format!(
                "the clock goes back by {} ns, further than the {WINDOW_ROWS} requests that are held \
                 back to mend the order; sort the trace by time",
                self.released_ns - row.enqueue_ns,
            )));
        }
        if row.enqueue_ns < self.latest_ns {
            let back_ns = self.latest_ns - row.enqueue_ns;
            if back_ns > STEP_BACK_NS_MAX {
                return Err(Problem::new(format!(
                    "the clock goes back by {} s; sort the trace by time",
                    back_ns / 1_000_000_000
                )));
            }
            self.sorted = false;
        }
        self.latest_ns = self.latest_ns.max(row.enqueue_ns);
        self.rows += 1;
        self.window.push(row);
        if self.window.len() >= 2 * WINDOW_ROWS {
            self.release(WINDOW_ROWS);
        }
        Ok(())
    }

    /// Ends the trace: everything still held back becomes ready.
    pub(crate) fn finish(&mut self) {
        self.release(self.window.len());
    }

    /// Makes ready what was enqueued before `time_ns`: nothing earlier comes any more.
    pub(crate) fn release_before(&mut self, time_ns: u64) {
        self.sort();
        self.release(self.window.enqueue_ns.partition_point(|&enqueue| enqueue < time_ns));
    }

    fn release(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        self.sort();
        let origin = match self.origin_ns {
            Some(origin) => origin,
            None => self.first_origin(self.window.enqueue_ns[0]),
        };
        if self.ready_head == self.ready.len() {
            self.ready.clear();
            self.ready_head = 0;
        }
        let first = self.ready.len();
        self.ready.extend_from(&self.window, 0..count);
        if origin != 0 {
            for time in &mut self.ready.enqueue_ns[first..] {
                *time -= origin;
            }
            rebase_optional(&mut self.ready.start_ns[first..], origin);
            rebase_optional(&mut self.ready.finish_ns[first..], origin);
        }
        self.released_ns = self.window.enqueue_ns[count - 1];
        self.window.drop_front(count);
    }

    fn sort(&mut self) {
        if !self.sorted {
            let mut order: Vec<u32> = (0..self.window.len() as u32).collect();
            order.sort_by_key(|&index| self.window.enqueue_ns[index as usize]);
            if !self.disorder_is_normal {
                let moved = order.windows(2).filter(|pair| pair[1] < pair[0]).count();
                self.metadata.warn_many(OUT_OF_ORDER, moved as u64);
            }
            let mut sorted = BlockBatch::default();
            sorted.reserve(2 * WINDOW_ROWS);
            for &index in &order {
                sorted.push(self.window.row(index as usize));
            }
            self.window = sorted;
            self.sorted = true;
        }
    }

    fn first_origin(&mut self, first_ns: u64) -> u64 {
        let origin = match self.origin_rule {
            Origin::FirstRecord => first_ns,
            Origin::ClockZero => 0,
        };
        self.set_origin(origin);
        origin
    }

    fn set_origin(&mut self, origin: u64) {
        self.origin_ns = Some(origin);
        self.metadata.clock_start_ns = origin;
        if let Some(zero) = self.wall_of_clock_zero_ns {
            self.metadata.start_wall_ns = i64::try_from(zero + i128::from(origin)).ok();
        }
    }

    /// Moves up to [`BATCH_ROWS`] ready rows into `batch`.
    pub(crate) fn take(&mut self, batch: &mut BlockBatch) {
        self.ready.complete();
        self.tell_repeated();
        batch.clear();
        let left = self.ready.len() - self.ready_head;
        if self.ready_head == 0 && left <= BATCH_ROWS {
            std::mem::swap(batch, &mut self.ready);
            return;
        }
        let end = self.ready_head + left.min(BATCH_ROWS);
        batch.extend_from(&self.ready, self.ready_head..end);
        self.ready_head = end;
        if self.ready_head == self.ready.len() {
            self.ready.clear();
            self.ready_head = 0;
        }
    }
}

/// Warning of a window that had to sort.
pub(crate) const OUT_OF_ORDER: &str = "requests were out of order in time and have been sorted";

fn rebased(mut row: BlockRow, origin: u64) -> BlockRow {
    if origin != 0 {
        row.enqueue_ns -= origin;
        if row.start_ns != TIME_MISSING {
            row.start_ns -= origin;
        }
        if row.finish_ns != TIME_MISSING {
            row.finish_ns -= origin;
        }
    }
    row
}

fn rebase_optional(times: &mut [u64], origin: u64) {
    for time in times {
        // A select, not a branch: the loop stays without one.
        *time -= if *time == TIME_MISSING { 0 } else { origin };
    }
}

fn time_text(time_ns: u64) -> String {
    if time_ns == TIME_MISSING { "unknown".to_owned() } else { time_ns.to_string() }
}
