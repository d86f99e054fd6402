//! Slow reference models of the caches: queues searched from end to end, written from the papers'
//! own pseudo-code, sharing nothing with the caches they check.
//!
//! In every queue the front is the newest block. Where the papers leave removal open the models do
//! what the caches document: a removed block leaves no history, and nothing leaves a cache with
//! room.

use std::collections::VecDeque;

use agewell_sim::cache::Eviction;

/// The interface of a cache, written without regard to speed.
pub(crate) trait SlowCache {
    /// References `key`: whether it was resident, and everything that left.
    fn reference(&mut self, key: u32) -> (bool, Vec<u32>);
    /// Forgets `key`: whether it was resident.
    fn remove(&mut self, key: u32) -> bool;
    /// The resident blocks, in any order.
    fn resident(&self) -> Vec<u32>;
}

/// The model of `eviction`; the capacity is at least one.
pub(crate) fn slow_cache(eviction: Eviction, capacity: usize) -> Box<dyn SlowCache> {
    match eviction {
        Eviction::Fifo => Box::new(SlowFifo { queue: VecDeque::new(), capacity }),
        Eviction::Lru => Box::new(SlowLru { queue: VecDeque::new(), capacity }),
        Eviction::Arc => Box::new(SlowArc::new(capacity)),
        Eviction::Sieve => Box::new(SlowSieve { queue: Vec::new(), hand: None, capacity }),
        Eviction::S3Fifo => Box::new(SlowS3Fifo::new(capacity)),
    }
}

/// Takes `key` out of `queue` and returns whether it was there.
fn take(queue: &mut VecDeque<u32>, key: u32) -> bool {
    match queue.iter().position(|held| *held == key) {
        Some(place) => queue.remove(place).is_some(),
        None => false,
    }
}

struct SlowFifo {
    queue: VecDeque<u32>,
    capacity: usize,
}

impl SlowCache for SlowFifo {
    fn reference(&mut self, key: u32) -> (bool, Vec<u32>) {
        if self.queue.contains(&key) {
            return (true, vec![]);
        }
        self.queue.push_front(key);
        let excess = self.queue.len().saturating_sub(self.capacity);
        (false, (0..excess).filter_map(|_| self.queue.pop_back()).collect())
    }

    fn remove(&mut self, key: u32) -> bool {
        take(&mut self.queue, key)
    }

    fn resident(&self) -> Vec<u32> {
        self.queue.iter().copied().collect()
    }
}

struct SlowLru {
    queue: VecDeque<u32>,
    capacity: usize,
}

impl SlowCache for SlowLru {
    fn reference(&mut self, key: u32) -> (bool, Vec<u32>) {
        let hit = take(&mut self.queue, key);
        self.queue.push_front(key);
        let excess = self.queue.len().saturating_sub(self.capacity);
        (hit, (0..excess).filter_map(|_| self.queue.pop_back()).collect())
    }

    fn remove(&mut self, key: u32) -> bool {
        take(&mut self.queue, key)
    }

    fn resident(&self) -> Vec<u32> {
        self.queue.iter().copied().collect()
    }
}

/// Zhang et al. 2024, algorithm 1. The vector's first block is the tail, its last one the head.
struct SlowSieve {
    queue: Vec<(u32, bool)>,
    hand: Option<usize>,
    capacity: usize,
}

impl SlowSieve {
    /// Discards the block at `place`; its neighbour towards the head takes over that number.
    fn discard(&mut self, place: usize) -> (u32, Option<usize>) {
        let (key, _) = self.queue.remove(place);
        (key, (place < self.queue.len()).then_some(place))
    }
}

impl SlowCache for SlowSieve {
    fn reference(&mut self, key: u32) -> (bool, Vec<u32>) {
        if let Some(held) = self.queue.iter_mut().find(|held| held.0 == key) {
            held.1 = true;
            return (true, vec![]);
        }
        let mut evicted = vec![];
        if self.queue.len() == self.capacity {
            let mut place = self.hand.unwrap_or(0);
            while self.queue[place].1 {
                self.queue[place].1 = false;
                place = (place + 1) % self.queue.len();
            }
            let (discarded, hand) = self.discard(place);
            evicted.push(discarded);
            self.hand = hand;
        }
        self.queue.push((key, false));
        (false, evicted)
    }

    fn remove(&mut self, key: u32) -> bool {
        let Some(place) = self.queue.iter().position(|held| held.0 == key) else { return false };
        let (_, next) = self.discard(place);
        self.hand = match self.hand {
            Some(hand) if hand == place => next,
            Some(hand) if hand > place => Some(hand - 1),
            hand => hand,
        };
        true
    }

    fn resident(&self) -> Vec<u32> {
        self.queue.iter().map(|held| held.0).collect()
    }
}

/// Steps of the adaptive target in one block.
const STEPS: u128 = 1 << 32;

/// Megiddo & Modha 2003, figure 4, with the target in steps of 2^-32.
struct SlowArc {
    t1: VecDeque<u32>,
    t2: VecDeque<u32>,
    b1: VecDeque<u32>,
    b2: VecDeque<u32>,
    target: u128,
    capacity: usize,
}

impl SlowArc {
    fn new(capacity: usize) -> Self {
        let empty = VecDeque::new;
        Self { t1: empty(), t2: empty(), b1: empty(), b2: empty(), target: 0, capacity }
    }

    fn replace(&mut self, in_b2: bool) -> Vec<u32> {
        if self.t1.len() + self.t2.len() < self.capacity {
            return vec![];
        }
        let seen_once = self.t1.len() as u128 * STEPS;
        let from_t1 =
            !self.t1.is_empty() && ((in_b2 && seen_once == self.target) || seen_once > self.target);
        let (list, ghosts) =
            if from_t1 { (&mut self.t1, &mut self.b1) } else { (&mut self.t2, &mut self.b2) };
        let evicted = list.pop_back().expect("REPLACE takes from a list that is not empty");
        ghosts.push_front(evicted);
        vec![evicted]
    }

    fn miss(&mut self, key: u32) -> Vec<u32> {
        let evicted;
        let l1 = self.t1.len() + self.b1.len();
        let l2 = self.t2.len() + self.b2.len();
        if l1 == self.capacity {
            if self.t1.len() < self.capacity {
                self.b1.pop_back();
                evicted = self.replace(false);
            } else {
                evicted = self.t1.pop_back().into_iter().collect();
            }
        } else if l1 + l2 >= self.capacity {
            if l1 + l2 == 2 * self.capacity {
                self.b2.pop_back();
            }
            evicted = self.replace(false);
        } else {
            evicted = vec![];
        }
        self.t1.push_front(key);
        evicted
    }
}

impl SlowCache for SlowArc {
    fn reference(&mut self, key: u32) -> (bool, Vec<u32>) {
        if take(&mut self.t1, key) || take(&mut self.t2, key) {
            self.t2.push_front(key);
            return (true, vec![]);
        }
        let (ghosts_1, ghosts_2) = (self.b1.len() as u128, self.b2.len() as u128);
        if self.b1.contains(&key) {
            let step = if ghosts_1 >= ghosts_2 { STEPS } else { ghosts_2 * STEPS / ghosts_1 };
            self.target = (self.target + step).min(self.capacity as u128 * STEPS);
            let evicted = self.replace(false);
            take(&mut self.b1, key);
            self.t2.push_front(key);
            return (false, evicted);
        }
        if self.b2.contains(&key) {
            let step = if ghosts_2 >= ghosts_1 { STEPS } else { ghosts_1 * STEPS / ghosts_2 };
            self.target = self.target.saturating_sub(step);
            let evicted = self.replace(true);
            take(&mut self.b2, key);
            self.t2.push_front(key);
            return (false, evicted);
        }
        (false, self.miss(key))
    }

    fn remove(&mut self, key: u32) -> bool {
        let resident = take(&mut self.t1, key) || take(&mut self.t2, key);
        take(&mut self.b1, key);
        take(&mut self.b2, key);
        resident
    }

    fn resident(&self) -> Vec<u32> {
        self.t1.iter().chain(&self.t2).copied().collect()
    }
}

/// Yang et al. 2023, algorithm 1, with one eviction an insertion.
struct SlowS3Fifo {
    small: VecDeque<(u32, u8)>,
    main: VecDeque<(u32, u8)>,
    ghost: VecDeque<u32>,
    capacity: usize,
    small_share: usize,
}

impl SlowS3Fifo {
    fn new(capacity: usize) -> Self {
        Self {
            small: VecDeque::new(),
            main: VecDeque::new(),
            ghost: VecDeque::new(),
            capacity,
            small_share: (capacity / 10).max(1),
        }
    }

    /// One step of algorithm 1's EVICT: a block moves on, or leaves.
    fn step(&mut self) -> Option<u32> {
        if self.small.len() >= self.small_share {
            let (key, hits) = self.small.pop_back().expect("the share is one at least");
            if hits > 1 {
                self.main.push_front((key, 0));
                return None;
            }
            self.ghost.push_front(key);
            self.ghost.truncate(self.capacity - self.small_share);
            return Some(key);
        }
        let (key, hits) = self.main.pop_back().expect("a full cache with little in small");
        if hits > 0 {
            self.main.push_front((key, hits - 1));
            return None;
        }
        Some(key)
    }
}

impl SlowCache for SlowS3Fifo {
    fn reference(&mut self, key: u32) -> (bool, Vec<u32>) {
        if let Some(held) = self.small.iter_mut().chain(&mut self.main).find(|held| held.0 == key) {
            held.1 = (held.1 + 1).min(3);
            return (true, vec![]);
        }
        let remembered = take(&mut self.ghost, key);
        let mut evicted = vec![];
        while self.small.len() + self.main.len() == self.capacity {
            evicted.extend(self.step());
        }
        let queue = if remembered { &mut self.main } else { &mut self.small };
        queue.push_front((key, 0));
        (false, evicted)
    }

    fn remove(&mut self, key: u32) -> bool {
        let before = self.small.len() + self.main.len();
        self.small.retain(|held| held.0 != key);
        self.main.retain(|held| held.0 != key);
        take(&mut self.ghost, key);
        self.small.len() + self.main.len() < before
    }

    fn resident(&self) -> Vec<u32> {
        self.small.iter().chain(&self.main).map(|held| held.0).collect()
    }
}
