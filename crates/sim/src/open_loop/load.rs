//! The offered load of a disk, and the warning when it exceeds 1.
//!
//! The offered load is the time that requests keep the disk busy over the time in which they arrive
//! (utilization, in queueing theory). An open replay issues requests at the times of the trace,
//! however fast the disk serves them. Under overload they wait behind one another, and response
//! times measure the length of the overload and not the disk.

use agewell_core::{SimDuration, SimTime};

use crate::metrics::Metrics;

/// From this share of the requests on, arriving in overloaded intervals is reported. Chosen by us:
/// the mean and the 99th percentile of response times can be theirs.
const WORTH_A_WORD: f64 = 0.01;

/// The load that a slower trace is advised to have. Chosen by us: below it a queue stays short.
const LOAD_ADVISED: f64 = 0.8;

/// The load of one disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OfferedLoad {
    /// From the first request to the last, ns, without times of the day that are left out.
    arriving_ns: u64,
    /// Time that they kept the disk busy, ns.
    busy_ns: u64,
    /// The last of them, if it counted.
    last: Option<SimTime>,
}

impl OfferedLoad {
    /// A request arrives at `now`.
    pub(crate) fn arrives(&mut self, now: SimTime, counts: bool) {
        if let (Some(last), true) = (self.last, counts) {
            self.arriving_ns += now.saturating_since(last).0;
        }
        self.last = counts.then_some(now);
    }

    /// A request that counts has been served.
    pub(crate) fn served(&mut self, service: SimDuration) {
        self.busy_ns += service.0;
    }

    /// The share of the time asked for; above 1 the disk cannot keep up. `None` where requests arrive in no time.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        (self.arriving_ns > 0).then(|| self.busy_ns as f64 / self.arriving_ns as f64)
    }
}

/// Advice to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// A lower rate of what is generated.
    LowerRate,
    /// A trace that lies further apart, or a host that waits if completion times are known.
    SlowerTrace { has_completions: bool },
}

/// The warning for an open replay of `disks` disks under overload; `load` is that of the busiest.
pub(crate) fn overload(
    load: Option<f64>,
    metrics: &Metrics,
    disks: usize,
    remedy: Remedy,
) -> Option<String> {
    let load = load?;
    let interval_ns = u128::from(metrics.series.interval().0) * disks.max(1) as u128;
    let (mut over, mut requests, mut highest) = (0_u64, 0_u64, load);
    for row in metrics.series.rows() {
        if row.service_ns > interval_ns {
            over += 1;
            requests += row.requests;
            highest = highest.max(row.service_ns as f64 / interval_ns as f64);
        }
    }
    let share = requests as f64 / metrics.series.requests().max(1) as f64;
    if load <= 1.0 && share < WORTH_A_WORD {
        return None;
    }
    let all = metrics.series.rows().len();
    let when = if over > 0 {
        format!(
            ", and for more than there is in {over} of {all} intervals, with {:.0} % of the requests",
            100.0 * share
        )
    } else {
        String::new()
    };
    let slower = (highest / LOAD_ADVISED * 10.0).ceil() / 10.0;
    let what_to_do = match remedy {
        Remedy::LowerRate => format!("divide rate_per_s by {slower}"),
        Remedy::SlowerTrace { has_completions: true } => {
            format!("set replay = \"closed\" or filters = [\"scale-time={slower}\"]")
        }
        Remedy::SlowerTrace { has_completions: false } => {
            format!("set filters = [\"scale-time={slower}\"]")
        }
    };
    Some(format!(
        "the disk is overloaded: requests ask for {:.0} % of its time{when}; response times then say how long \
         requests queue up, not how good the disk is: compare service times, or in [workload] {what_to_do}, or choose \
         a faster [device]",
        100.0 * load
    ))
}

#[cfg(test)]
mod tests {
    use agewell_core::Operation;

    use super::*;
    use crate::metrics::Completed;

    /// One disk, whose requests arrive `gap_ns` apart and take 100 ns each, in intervals of 1000 ns.
    fn offered(gaps_ns: &[u64]) -> (OfferedLoad, Metrics) {
        let (mut load, mut metrics) = (OfferedLoad::default(), Metrics::new(1, SimDuration(1000)));
        let (mut now, mut free) = (0, 0);
        for gap in gaps_ns {
            now += gap;
            free = now.max(free) + 100;
            load.arrives(SimTime(now), true);
            load.served(SimDuration(100));
            metrics.complete(&Completed {
                enqueue: SimTime(now),
                finish: SimTime(free),
                operation: Operation::Read,
                sectors: 1,
                service: SimDuration(100),
            });
        }
        (load, metrics)
    }

    const TRACE: Remedy = Remedy::SlowerTrace { has_completions: true };

    #[test]
    fn a_disk_that_keeps_up_is_not_remarked_upon() {
        let (load, metrics) = offered(&[125; 1000]);
        assert!((load.share().unwrap() - 0.8).abs() < 0.01);
        assert_eq!(overload(load.share(), &metrics, 1, TRACE), None);
        assert_eq!(overload(None, &metrics, 1, TRACE), None);
    }

    #[test]
    fn twice_the_load_is_named_with_the_remedy() {
        let (load, metrics) = offered(&[50; 1000]);
        let warning = overload(load.share(), &metrics, 1, TRACE).unwrap();
        assert!(warning.contains("200 % of its time"), "{warning}");
        assert!(warning.contains("in 50 of 51 intervals, with 100 % of the requests"), "{warning}");
        assert!(warning.contains("replay = \"closed\""), "{warning}");
        let scale: f64 = warning.split("scale-time=").nth(1).unwrap()[..3].parse().unwrap();
        // What it advises is enough.
        let (load, metrics) = offered(&[(50.0 * scale) as u64; 1000]);
        assert_eq!(overload(load.share(), &metrics, 1, TRACE), None);
    }

    #[test]
    fn a_burst_that_the_mean_hides_is_found() {
        let gaps: Vec<u64> = (0..1000).map(|number| if number < 100 { 20 } else { 2000 }).collect();
        let (load, metrics) = offered(&gaps);
        assert!(load.share().unwrap() < 0.1);
        let warning = overload(load.share(), &metrics, 1, Remedy::LowerRate).unwrap();
        assert!(warning.contains("10 % of the requests"), "{warning}");
        // The same on five disks is no overload.
        assert_eq!(overload(load.share(), &metrics, 5, Remedy::LowerRate), None);
    }

    #[test]
    fn times_left_out_are_no_time_to_arrive_in() {
        let mut load = OfferedLoad::default();
        for (now, counts) in
            [(0, true), (10, true), (20, false), (1000, false), (1010, true), (1020, true)]
        {
            load.arrives(SimTime(now), counts);
        }
        load.served(SimDuration(10));
        assert_eq!(load.share(), Some(0.5));
    }
}
