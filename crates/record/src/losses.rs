//! Events that the kernel overwrote before they were read: how many, and when.
//!
//! A page says how many were lost before it, if it has room for the number. What it does not say is
//! left over from the kernel's own count at the end.

use crate::page::Missed;

/// Losses closer to each other are told as one; chosen by us.
const JOIN_NS: u64 = 100_000_000;
/// Stretches that are told; chosen by us: what a person reads. All are counted.
const STRETCHES_TOLD: usize = 50;
/// Losses that are kept apart until the end; chosen by us.
const KEPT_MAX: usize = 1 << 14;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Loss {
    from_ns: u64,
    to_ns: u64,
    /// Known numbers of events.
    events: u64,
    /// Pages that did not say theirs.
    unknown: u64,
}

/// What was lost so far.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    losses: Vec<Loss>,
    events: u64,
}

impl Losses {
    /// A page that begins at `to_ns` says that it `missed` events since `from_ns`.
    pub(crate) fn add(&mut self, from_ns: u64, to_ns: u64, missed: Missed) {
        let (events, unknown) = match missed {
            Missed::None => return,
            Missed::Count(events) => (events, 0),
            Missed::Unknown => (0, 1),
        };
        self.events += events;
        self.losses.push(Loss { from_ns: from_ns.min(to_ns), to_ns, events, unknown });
        if self.losses.len() >= KEPT_MAX {
            self.losses = self.joined();
        }
    }

    /// The sum of what pages said.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// Spreads what the kernel counted (`overrun`) beyond what pages said over those that did not say;
    /// returns how many events were lost that no page speaks of.
    pub(crate) fn settle(&mut self, overrun: u64) -> u64 {
        let mut rest = overrun.saturating_sub(self.events);
        let mut silent: u64 = self.losses.iter().map(|loss| loss.unknown).sum();
        for loss in &mut self.losses {
            if loss.unknown > 0 {
                let share = rest * loss.unknown / silent;
                loss.events += share;
                self.events += share;
                rest -= share;
                silent -= loss.unknown;
                loss.unknown = 0;
            }
        }
        rest
    }

    fn joined(&self) -> Vec<Loss> {
        let mut losses = self.losses.clone();
        losses.sort_by_key(|loss| loss.from_ns);
        let mut joined: Vec<Loss> = Vec::new();
        for loss in losses {
            match joined.last_mut() {
                Some(last) if loss.from_ns <= last.to_ns.saturating_add(JOIN_NS) => {
                    last.to_ns = last.to_ns.max(loss.to_ns);
                    last.events += loss.events;
                    last.unknown += loss.unknown;
                }
                _ => joined.push(loss),
            }
        }
        joined
    }

    /// When events were lost, in seconds from `start_ns`: `1.204-1.310 s: 512`.
    pub(crate) fn text(&self, start_ns: u64) -> String {
        let seconds = |time_ns: u64| time_ns.saturating_sub(start_ns) as f64 / 1e9;
        let joined = self.joined();
        let mut told: Vec<String> = joined
            .iter()
            .take(STRETCHES_TOLD)
            .map(|loss| {
                let (from, to) = (seconds(loss.from_ns), seconds(loss.to_ns));
                format!("{from:.3}-{to:.3} s: {}", loss.events)
            })
            .collect();
        if joined.len() > STRETCHES_TOLD {
            told.push(format!("and {} more stretches", joined.len() - STRETCHES_TOLD));
        }
        told.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_close_to_each_other_are_one_stretch() {
        let mut losses = Losses::default();
        losses.add(1_000_000_000, 1_010_000_000, Missed::Count(5));
        losses.add(1_050_000_000, 1_060_000_000, Missed::Count(7));
        losses.add(3_000_000_000, 3_001_000_000, Missed::Count(1));
        losses.add(9, 10, Missed::None);
        assert_eq!(losses.events(), 13);
        assert_eq!(losses.settle(13), 0);
        assert_eq!(losses.text(0), "1.000-1.060 s: 12, 3.000-3.001 s: 1");
    }

    #[test]
    fn what_pages_did_not_say_is_what_the_kernel_counted_beyond() {
        let mut losses = Losses::default();
        losses.add(0, 1, Missed::Count(100));
        losses.add(2_000_000_000, 2_000_000_001, Missed::Unknown);
        losses.add(4_000_000_000, 4_000_000_001, Missed::Unknown);
        assert_eq!(losses.settle(111), 0);
        assert_eq!(losses.events(), 111);
        assert!(losses.text(0).ends_with("2.000-2.000 s: 5, 4.000-4.000 s: 6"));
        assert_eq!(losses.settle(115), 4, "no page speaks of these");
    }
}
