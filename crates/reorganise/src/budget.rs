//! Which files are worth a budget of bytes: those whose moves save most of the time of a cold read for
//! each byte. A function of values.
//!
//! Files are read in a given order. One that is moved comes to lie behind the one before it, if that
//! is moved too; else it, and the one that stays behind it, are still gone to. So what a move saves
//! depends on the neighbours alone, and the best choice at a given price of a byte is the cheapest way
//! along a chain of two states, found in one pass. The price is then searched at which the choice
//! comes to the budget: at that price nothing that is left out would save more than what is taken.
//! What is left of the budget, where many are worth the same, goes to files that the next lower price
//! would take.
//!
//! Not considered: a file that is moved right behind one that stays. It saves one break for its
//! bytes, and so does a file in a stretch, where room need not be found for each file alone.

/// What a file takes to read, and what moving it costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Candidate {
    /// Bytes that it has on the device.
    pub bytes: u64,
    /// Time to read it where it lies, with the way to it, s.
    pub seconds: f64,
    /// Whether it lies right behind the file before.
    pub follows: bool,
    /// Whether it can be moved.
    pub movable: bool,
}

/// What reading costs wherever files come to lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Costs {
    /// Of a place that does not follow the read before, s.
    pub break_seconds: f64,
    /// Of each byte that follows, s.
    pub byte_seconds: f64,
    /// Bytes that come to lie in one piece, since free space is in runs of about this length.
    pub stretch_bytes: u64,
}

impl Costs {
    /// Time to read `file` behind the one before it, where both are moved, s.
    fn together(&self, file: &Candidate) -> f64 {
        let bytes = file.bytes as f64;
        bytes * (self.byte_seconds + self.break_seconds / self.stretch_bytes.max(1) as f64)
    }
}

/// Which of `files`, in the order in which they are read, are moved, so that the time saved is about
/// the most that can be had for `budget_bytes`.
pub(crate) fn choose(files: &[Candidate], costs: &Costs, budget_bytes: u64) -> Vec<bool> {
    let (chosen, more) = around(files, costs, budget_bytes);
    let mut left = budget_bytes - bytes_of(files, &chosen);
    let mut filled = chosen.clone();
    for (number, file) in files.iter().enumerate() {
        if more[number] && !chosen[number] {
            if file.bytes > left {
                break;
            }
            left -= file.bytes;
            filled[number] = true;
        }
    }
    let better = read_seconds(files, costs, &filled) < read_seconds(files, costs, &chosen);
    if better { filled } else { chosen }
}

/// The best choices at two prices next to each other: the first within `budget_bytes`, the second
/// beyond, or the same if nothing more pays.
fn around(files: &[Candidate], costs: &Costs, budget_bytes: u64) -> (Vec<bool>, Vec<bool>) {
    let all = at_price(files, costs, 0.0);
    if bytes_of(files, &all) <= budget_bytes {
        return (all.clone(), all);
    }
    // No file saves more than it takes to read it.
    let worth = |file: &Candidate| file.seconds / file.bytes.max(1) as f64;
    let dearest = files.iter().map(worth).fold(0.0, f64::max);
    let (mut low, mut high) = (0.0, 2.0 * dearest);
    let (mut more, mut chosen) = (all, vec![false; files.len()]);
    for _ in 0..PRICE_STEPS {
        let price = f64::midpoint(low, high);
        let found = at_price(files, costs, price);
        if bytes_of(files, &found) <= budget_bytes {
            (high, chosen) = (price, found);
        } else {
            (low, more) = (price, found);
        }
    }
    (chosen, more)
}

fn bytes_of(files: &[Candidate], chosen: &[bool]) -> u64 {
    files.iter().zip(chosen).filter(|(_, chosen)| **chosen).map(|(file, _)| file.bytes).sum()
}

/// Time to read `files` of which `chosen` are moved, s.
fn read_seconds(files: &[Candidate], costs: &Costs, chosen: &[bool]) -> f64 {
    let mut before = false;
    let mut seconds = 0.0;
    for (file, chosen) in files.iter().zip(chosen) {
        let apart = if *chosen { !before } else { before && file.follows };
        seconds += if *chosen { costs.together(file) } else { file.seconds };
        seconds += if apart { costs.break_seconds } else { 0.0 };
        before = *chosen;
    }
    seconds
}

/// Halvings of the range of prices: the last differ by a billionth of the dearest.
const PRICE_STEPS: u32 = 30;

/// Which of `files` are moved if each byte costs `price`, s: the choice for which the time of reading
/// with that of moving is least; of equal ones that which moves less.
fn at_price(files: &[Candidate], costs: &Costs, price: f64) -> Vec<bool> {
    // Least sums up to the file at hand, if it stays and if it is moved.
    let (mut stays, mut moves) = (0.0, f64::INFINITY);
    // Whether the file before is moved, if this one stays and if it is moved.
    let mut before: Vec<(bool, bool)> = Vec::with_capacity(files.len());
    for file in files {
        let torn = if file.follows { costs.break_seconds } else { 0.0 };
        let (stay_stay, move_stay) = (stays + file.seconds, moves + file.seconds + torn);
        let own = if file.movable {
            costs.together(file) + price * file.bytes as f64
        } else {
            f64::INFINITY
        };
        let (stay_move, move_move) = (stays + own + costs.break_seconds, moves + own);
        before.push((move_stay < stay_stay, move_move <= stay_move));
        (stays, moves) = (stay_stay.min(move_stay), stay_move.min(move_move));
    }
    let mut chosen = vec![false; files.len()];
    let mut moved = moves < stays;
    for (number, (if_stays, if_moved)) in before.into_iter().enumerate().rev() {
        chosen[number] = moved;
        moved = if moved { if_moved } else { if_stays };
    }
    chosen
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Candidate, Costs, around, at_price, choose};

    const COSTS: Costs = Costs { break_seconds: 8.0, byte_seconds: 0.25, stretch_bytes: 64 };

    /// Time of reading all, and bytes moved, plainly.
    fn told(files: &[Candidate], chosen: &[bool]) -> (f64, u64) {
        let (mut seconds, mut bytes) = (0.0, 0);
        for (number, file) in files.iter().enumerate() {
            let before = number > 0 && chosen[number - 1];
            if chosen[number] {
                let apart = if before { 0.0 } else { COSTS.break_seconds };
                let stretches = file.bytes as f64 / COSTS.stretch_bytes as f64;
                seconds += apart + file.bytes as f64 * COSTS.byte_seconds;
                seconds += stretches * COSTS.break_seconds;
                bytes += file.bytes;
            } else {
                let torn = if before && file.follows { COSTS.break_seconds } else { 0.0 };
                seconds += file.seconds + torn;
            }
        }
        (seconds, bytes)
    }

    /// Every choice of files that can be moved.
    fn choices(files: &[Candidate]) -> impl Iterator<Item = Vec<bool>> + '_ {
        (0_u32..1 << files.len())
            .map(|bits| (0..files.len()).map(|file| bits >> file & 1 == 1).collect::<Vec<_>>())
            .filter(move |chosen| {
                chosen.iter().zip(files).all(|(chosen, file)| !chosen || file.movable)
            })
    }

    fn candidates() -> impl Strategy<Value = Vec<Candidate>> {
        let one = (1_u64..20, 0_u32..30, any::<bool>(), prop::bool::weighted(0.8));
        let file = one.prop_map(|(bytes, way, follows, movable)| Candidate {
            bytes,
            seconds: bytes as f64 * COSTS.byte_seconds + if follows { 0.0 } else { f64::from(way) },
            follows,
            movable,
        });
        prop::collection::vec(file, 0..10)
    }

    proptest! {
        /// At a price no choice is cheaper than the one that is found.
        #[test]
        fn at_a_price_the_cheapest_of_all_choices_is_found(
            files in candidates(), price in 0.0..2.0_f64,
        ) {
            let cost = |chosen: &[bool]| {
                let (seconds, bytes) = told(&files, chosen);
                seconds + price * bytes as f64
            };
            let best = choices(&files).map(|chosen| cost(&chosen)).fold(f64::INFINITY, f64::min);
            let found = cost(&at_price(&files, &COSTS, price));
            prop_assert!((found - best).abs() < 1e-9, "{found} and {best}");
        }

        /// The budget is kept, and of all choices that move no more than the one found none reads
        /// faster; what is left of the budget makes it no worse.
        #[test]
        fn within_a_budget_none_that_moves_as_little_is_faster(
            files in candidates(), budget in 0_u64..120,
        ) {
            let (seconds, bytes) = told(&files, &around(&files, &COSTS, budget).0);
            prop_assert!(bytes <= budget);
            let within = choices(&files).map(|chosen| told(&files, &chosen));
            let best = within.filter(|told| told.1 <= bytes).map(|told| told.0);
            prop_assert!(seconds <= best.fold(f64::INFINITY, f64::min) + 1e-6);
            let chosen = choose(&files, &COSTS, budget);
            prop_assert!(chosen.iter().zip(&files).all(|(chosen, file)| !chosen || file.movable));
            let filled = told(&files, &chosen);
            prop_assert!(filled.1 <= budget && filled.0 <= seconds + 1e-9);
            prop_assert!((filled.0 - super::read_seconds(&files, &COSTS, &chosen)).abs() < 1e-9);
        }
    }

    /// Many files that are worth the same: the budget is spent all the same, on neighbours.
    #[test]
    fn of_equals_as_many_are_taken_as_the_budget_holds() {
        let file = Candidate { bytes: 4, seconds: 9.0, follows: false, movable: true };
        let chosen = choose(&vec![file; 1000], &COSTS, 2000);
        assert_eq!(chosen.iter().filter(|chosen| **chosen).count(), 500);
        assert_eq!(chosen.windows(2).filter(|pair| pair[0] != pair[1]).count(), 1);
    }

    /// Small files that lie apart come before large ones, whatever their order.
    #[test]
    fn small_files_come_before_large_ones() {
        let file = |bytes: u64| Candidate {
            bytes,
            seconds: 8.0 + bytes as f64 * COSTS.byte_seconds,
            follows: false,
            movable: true,
        };
        let files: Vec<Candidate> =
            (0..40).map(|number| file(if number < 20 { 40 } else { 2 })).collect();
        let chosen = choose(&files, &COSTS, 41);
        assert!(chosen[..20].iter().all(|chosen| !chosen));
        assert!(chosen[20..].iter().all(|chosen| *chosen));
    }
}
