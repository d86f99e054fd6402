//! A victim policy: the emptiest segment of those that have had time to empty.
//!
//! After Menon and Stockmeyer, "An age-threshold algorithm for garbage collection in log-structured arrays
//! and file systems" (1998): a young segment is still losing blocks, and collecting it copies what would
//! have died.

use agewell_log::policy::victim_policy::{CollectableSegments, VictimPolicy};

/// The emptiest segment whose data is `least_age` user block writes old; if none is, the oldest.
#[derive(Debug, Clone)]
pub struct AgeThreshold {
    /// In user block writes.
    pub least_age: i64,
}

impl VictimPolicy for AgeThreshold {
    fn name(&self) -> String {
        // Whatever changes what it decides belongs to its name, which results keep.
        format!("age-threshold {}", self.least_age)
    }

    fn choose(&mut self, segments: &mut CollectableSegments) -> Option<usize> {
        let settled = (0..segments.len()).filter(|place| segments.age[*place] >= self.least_age);
        let emptiest = settled.min_by_key(|place| (segments.live[*place], segments.number[*place]));
        emptiest.or_else(|| (0..segments.len()).max_by_key(|place| segments.age[*place]))
    }

    fn copied(&self) -> Box<dyn VictimPolicy> {
        Box::new(self.clone())
    }
}
