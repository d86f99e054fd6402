//! The directories of the ten months.

use agewell_core::{Stream, chance, uniform_below};

use super::{Kind, Smith1996Parameters};
use crate::workload::draws::{pick, zipf};

/// The directories and which of them are active when.
pub(super) struct Directories {
    kinds: Vec<Kind>,
    /// Kind and cylinder group of each.
    rows: Vec<(u8, u32)>,
    /// Those active on each day.
    active: Vec<Vec<u32>>,
}

impl Directories {
    pub(super) fn plan(parameters: &Smith1996Parameters, stream: &mut Stream) -> Self {
        let rows = (0..parameters.directories)
            .map(|_| {
                let drawn = uniform_below(stream, 100) as u32;
                let mut reach = 0;
                let kind = parameters.kinds.iter().position(|kind| {
                    reach += kind.share_pct;
                    drawn < reach
                });
                let kind = kind.expect("the shares make 100") as u8;
                (kind, uniform_below(stream, parameters.groups.into()) as u32)
            })
            .collect();
        // An order of use of its own: the first are taken most often.
        let mut order: Vec<u32> = (0..parameters.directories).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, uniform_below(stream, last as u64 + 1) as usize);
        }
        let leave = 1.0 / parameters.active_days;
        let mut now: Vec<u32> = order[..parameters.active_directories as usize].to_vec();
        let active = (0..parameters.days)
            .map(|_| {
                for place in &mut now {
                    if chance(stream, leave) {
                        *place = order[zipf(stream, parameters.directories) as usize];
                    }
                }
                now.clone()
            })
            .collect();
        Self { kinds: parameters.kinds.clone(), rows, active }
    }

    /// One of those active on `day`.
    pub(super) fn active_on(&self, day: u32, stream: &mut Stream) -> u32 {
        pick(stream, &self.active[day as usize])
    }

    pub(super) fn kind(&self, directory: u32) -> &Kind {
        &self.kinds[usize::from(self.rows[directory as usize].0)]
    }

    pub(super) fn group(&self, directory: u32) -> u32 {
        self.rows[directory as usize].1
    }
}
