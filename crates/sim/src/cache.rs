//! Block caches of a fixed number of blocks: which block leaves when another one enters.
//!
//! | eviction | leaves first | source |
//! |---|---|---|
//! | FIFO | the one that entered first | |
//! | LRU | the one not referenced for longest | |
//! | ARC | seen once or seen again, by a balance that ghosts adjust | Megiddo & Modha 2003 |
//! | SIEVE | the first unvisited one a hand meets on its way from old to new | Zhang et al. 2024 |
//! | S3-FIFO | seen once: soon; seen again: by a clock | Yang et al. 2023 |
//!
//! A block is a dense `u32` below a bound that may grow. A cache knows block numbers only: its
//! owner knows what a block holds, whether it is dirty and what its eviction costs, so every
//! eviction is reported, and none happens but inside [`Cache::reference`] and [`Cache::insert`].
//! Reads and writes count alike, because none of the sources distinguishes them. A removed block
//! takes its history with it: the number may come back for other data.
//!
//! Invariants, which [`Cache::verify`] checks: never more resident blocks than the capacity; every
//! block the index knows is on exactly one list of its policy and every listed block is in the
//! index; plus those in the header of the policy. A call evicts at most one block, and only when
//! the cache is full: the loops that choose a victim return it as soon as they have one.
//!
//! Cost: a reference is one look-up of the block's slot and a few links of an intrusive list
//! (`block_table`), O(1) (amortised for SIEVE and S3-FIFO, whose hands give second chances). A
//! block that is held or remembered takes 13 bytes, plus 4 bytes a key of the whole bound or, where
//! few blocks of many are held, up to 32 bytes a block ([`IndexKind`]). Memory grows to the most
//! blocks ever known; after that nothing allocates.

mod arc;
mod block_table;
mod key_index;
mod one_list;
mod s3_fifo;
mod sieve;

use arc::Arc;
pub use key_index::IndexKind;
use one_list::{Fifo, Lru};
use s3_fifo::S3Fifo;
use sieve::Sieve;

/// Which rule picks the block that leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Eviction {
    /// First in, first out.
    Fifo,
    /// Least recently used.
    Lru,
    /// Adaptive replacement cache (Megiddo & Modha 2003).
    Arc,
    /// SIEVE (Zhang et al. 2024).
    Sieve,
    /// S3-FIFO (Yang et al. 2023).
    S3Fifo,
}

impl Eviction {
    /// Every eviction policy.
    pub const ALL: [Eviction; 5] =
        [Eviction::Fifo, Eviction::Lru, Eviction::Arc, Eviction::Sieve, Eviction::S3Fifo];

    /// The name in configuration files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Eviction::Fifo => "fifo",
            Eviction::Lru => "lru",
            Eviction::Arc => "arc",
            Eviction::Sieve => "sieve",
            Eviction::S3Fifo => "s3-fifo",
        }
    }

    /// The policy called `name`, if there is one.
    pub fn from_name(name: &str) -> Option<Eviction> {
        Self::ALL.into_iter().find(|eviction| eviction.name() == name)
    }
}

/// The outcome of a reference: a hit, or a miss and its eviction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The block was resident; nothing left.
    Hit,
    /// The block was not resident. It is now, unless the capacity is zero.
    Miss {
        /// The block that was evicted.
        evicted: Option<u32>,
    },
}

impl Access {
    /// Whether the block was resident.
    pub fn is_hit(self) -> bool {
        self == Access::Hit
    }

    /// The block that left, if one did.
    pub fn evicted(self) -> Option<u32> {
        match self {
            Access::Hit => None,
            Access::Miss { evicted } => evicted,
        }
    }
}

/// The interface of every policy; its public form is [`Cache`]. The capacity is at least one block.
trait Policy {
    fn contains(&self, key: u32) -> bool;
    /// Looks where `reference` to `keys` will and notes for each in `found` whether it is known, 0 if
    /// not; keys above the bound are not. What it gives means nothing.
    fn look_up(&self, keys: &[u32], found: &mut [u32]) -> u32;
    fn reference(&mut self, key: u32) -> Access;
    /// [`Self::reference`] to one key after another, where the policy is dispatched once.
    fn reference_all(&mut self, keys: &[u32], accesses: &mut [Access]) {
        for (key, access) in keys.iter().zip(accesses) {
            *access = self.reference(*key);
        }
    }
    fn remove(&mut self, key: u32) -> bool;
    fn len(&self) -> usize;
    fn ensure_keys(&mut self, keys: usize);
    fn index_kind(&self) -> IndexKind;
    fn verify(&self);
}

#[derive(Debug, Clone)]
enum Contents {
    /// A cache of no blocks.
    Nothing,
    Fifo(Fifo),
    Lru(Lru),
    Arc(Arc),
    Sieve(Sieve),
    S3Fifo(S3Fifo),
}

/// Runs an expression on the policy inside, whichever it is, or another where there is none.
macro_rules! dispatch {
    ($contents:expr, $policy:ident => $result:expr, nothing => $nothing:expr) => {
        match $contents {
            Contents::Nothing => $nothing,
            Contents::Fifo($policy) => $result,
            Contents::Lru($policy) => $result,
            Contents::Arc($policy) => $result,
            Contents::Sieve($policy) => $result,
            Contents::S3Fifo($policy) => $result,
        }
    };
}

/// A cache of at most `capacity_blocks` blocks.
///
/// ```
/// use agewell_sim::cache::{Access, Cache, Eviction};
///
/// let mut cache = Cache::new(Eviction::Lru, 2, 10);
/// assert_eq!(cache.insert(3), None);
/// assert_eq!(cache.reference(4), Access::Miss { evicted: None });
/// assert_eq!(cache.reference(3), Access::Hit);
/// assert_eq!(cache.reference(5), Access::Miss { evicted: Some(4) });
/// assert!(cache.remove(3));
/// assert_eq!(cache.len(), 1);
/// ```
///
/// Every method that takes a key panics when the key is not below the bound.
#[derive(Debug, Clone)]
pub struct Cache {
    eviction: Eviction,
    capacity_blocks: usize,
    keys: usize,
    contents: Contents,
}

impl Cache {
    /// An empty cache for blocks numbered below `keys`, with the index that [`IndexKind::suited`]
    /// names. A capacity of zero keeps nothing, ever; one beyond `keys` never evicts.
    ///
    /// # Panics
    ///
    /// If `keys` is above `u32::MAX`.
    #[must_use]
    pub fn new(eviction: Eviction, capacity_blocks: usize, keys: usize) -> Self {
        Self::build(eviction, capacity_blocks, keys, None)
    }

    /// The same with an index of the caller's choice, kept however far the bound grows.
    ///
    /// # Panics
    ///
    /// If `keys` is above `u32::MAX`.
    #[must_use]
    pub fn with_index(
        eviction: Eviction,
        capacity_blocks: usize,
        keys: usize,
        index: IndexKind,
    ) -> Self {
        Self::build(eviction, capacity_blocks, keys, Some(index))
    }

    fn build(
        eviction: Eviction,
        capacity_blocks: usize,
        keys: usize,
        index: Option<IndexKind>,
    ) -> Self {
        check_bound(keys);
        // More blocks than there are block numbers cannot come: nothing else changes.
        let blocks = capacity_blocks.min(u32::MAX as usize);
        let contents = match eviction {
            _ if blocks == 0 => Contents::Nothing,
            Eviction::Fifo => Contents::Fifo(Fifo::new(blocks, keys, index)),
            Eviction::Lru => Contents::Lru(Lru::new(blocks, keys, index)),
            Eviction::Arc => Contents::Arc(Arc::new(blocks, keys, index)),
            Eviction::Sieve => Contents::Sieve(Sieve::new(blocks, keys, index)),
            Eviction::S3Fifo => Contents::S3Fifo(S3Fifo::new(blocks, keys, index)),
        };
        Self { eviction, capacity_blocks, keys, contents }
    }

    /// The policy this cache follows.
    pub fn eviction(&self) -> Eviction {
        self.eviction
    }

    /// The most blocks it holds.
    pub fn capacity_blocks(&self) -> usize {
        self.capacity_blocks
    }

    /// The bound below which keys are valid.
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// How blocks are found; `None` for a capacity of zero, where there is nothing to find.
    pub fn index_kind(&self) -> Option<IndexKind> {
        dispatch!(&self.contents, policy => Some(policy.index_kind()), nothing => None)
    }

    /// Number of resident blocks.
    pub fn len(&self) -> usize {
        dispatch!(&self.contents, policy => policy.len(), nothing => 0)
    }

    /// Whether no block is resident.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Raises the bound of keys to `keys` if it is lower.
    ///
    /// # Panics
    ///
    /// If `keys` is above `u32::MAX`.
    #[inline]
    pub fn ensure_keys(&mut self, keys: usize) {
        if keys > self.keys {
            self.raise_keys(keys);
        }
    }

    #[cold]
    fn raise_keys(&mut self, keys: usize) {
        check_bound(keys);
        self.keys = keys;
        dispatch!(&mut self.contents, policy => policy.ensure_keys(keys), nothing => ());
    }

    /// Whether `key` is resident. No block's standing changes.
    #[inline]
    pub fn contains(&self, key: u32) -> bool {
        self.check_key(key);
        dispatch!(&self.contents, policy => policy.contains(key), nothing => false)
    }

    /// Has the processor bring in what [`Self::reference`] to `keys` will look at, all of it together;
    /// notes in `found` which of them are known, 0 for those that are not, which are not resident. The
    /// number means nothing.
    pub(crate) fn look_up(&self, keys: &[u32], found: &mut [u32]) -> u32 {
        dispatch!(&self.contents, policy => policy.look_up(keys, found), nothing => {
            found.fill(0);
            0
        })
    }

    /// Reads `key`: a resident block gains standing, another one enters, and if the cache was full
    /// one leaves.
    #[inline]
    pub fn reference(&mut self, key: u32) -> Access {
        self.check_key(key);
        dispatch!(
            &mut self.contents,
            policy => policy.reference(key),
            nothing => Access::Miss { evicted: None }
        )
    }

    /// [`Self::reference`] to one key after another; what each found stands in `accesses`, which is as
    /// long as `keys`.
    pub(crate) fn reference_all(&mut self, keys: &[u32], accesses: &mut [Access]) {
        assert!(keys.len() == accesses.len(), "a place for what each reference finds");
        for key in keys {
            self.check_key(*key);
        }
        dispatch!(
            &mut self.contents,
            policy => policy.reference_all(keys, accesses),
            nothing => accesses.fill(Access::Miss { evicted: None })
        );
    }

    /// Writes `key`, which counts as a reference to it. Returns the block that left, if one did.
    #[inline]
    pub fn insert(&mut self, key: u32) -> Option<u32> {
        self.reference(key).evicted()
    }

    /// Forgets `key`, deleted or truncated, and whatever is remembered of it. Returns whether it
    /// was resident. This is no eviction: nothing else changes its standing.
    pub fn remove(&mut self, key: u32) -> bool {
        self.check_key(key);
        dispatch!(&mut self.contents, policy => policy.remove(key), nothing => false)
    }

    /// Checks the invariants of the module and of the policy. Cost: O(blocks + index).
    ///
    /// # Panics
    ///
    /// If one does not hold, which is a bug of this module.
    pub fn verify(&self) {
        assert!(self.len() <= self.capacity_blocks, "no more blocks than the capacity");
        dispatch!(&self.contents, policy => policy.verify(), nothing => ());
    }

    #[inline]
    fn check_key(&self, key: u32) {
        assert!((key as usize) < self.keys, "block {key} is not below the bound {}", self.keys);
    }
}

fn check_bound(keys: usize) {
    assert!(u32::try_from(keys).is_ok(), "block numbers are u32 and their bound {keys} is as well");
}
