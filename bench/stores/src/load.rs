//! What is written: values that do not compress, of which a block and a version say every byte.

/// Bytes of a value.
pub const BLOCK_BYTES: usize = 4096;
/// Values of a transaction.
pub const TRANSACTION_BLOCKS: usize = 64;

/// Bytes that values are cut from, longer than any window in which a compressor looks for repetitions of
/// what it has seen; chosen by us.
const POOL_BYTES: usize = 1 << 23;
/// Where memory must begin that is written past the page cache.
const ALIGNMENT: usize = 4096;

/// Memory that is aligned.
pub struct AlignedBytes {
    memory: Vec<u8>,
    from: usize,
    length: usize,
}

impl AlignedBytes {
    pub fn new(length: usize) -> Self {
        let memory = vec![0; length + ALIGNMENT];
        let from = memory.as_ptr().align_offset(ALIGNMENT);
        Self { memory, from, length }
    }

    pub fn random(length: usize) -> Self {
        let mut bytes = Self::new(length);
        let mut random = Random::new(length as u64);
        for word in bytes.bytes_mut().chunks_exact_mut(8) {
            word.copy_from_slice(&random.next().to_le_bytes());
        }
        bytes
    }

    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.from..self.from + self.length]
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.from..self.from + self.length]
    }
}

/// SplitMix64 (Steele, Lea & Flood 2014): what is drawn is the same for every store.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// A number below `end`; that some are drawn 2^-32 oftener than others does not matter here.
    pub fn below(&mut self, end: u32) -> u32 {
        (((self.next() >> 32) * u64::from(end)) >> 32) as u32
    }
}

/// The values of the blocks that one client writes: every so-manieth.
pub struct Load {
    pool: AlignedBytes,
    first: u32,
    step: u32,
    /// Versions of its blocks; 0 was never written.
    versions: Vec<u32>,
    random: Random,
}

impl Load {
    /// What client `client` of `clients` writes, of `blocks` blocks.
    pub fn new(blocks: u32, client: u32, clients: u32) -> Self {
        let own = (blocks - client).div_ceil(clients);
        Self {
            pool: AlignedBytes::random(POOL_BYTES),
            first: client,
            step: clients,
            versions: vec![0; own as usize],
            random: Random::new(u64::from(client) + 1),
        }
    }

    /// Its blocks, in their order.
    pub fn blocks(&self) -> impl Iterator<Item = u32> + use<> {
        let own = self.versions.len() as u32;
        let (first, step) = (self.first, self.step);
        (0..own).map(move |at| first + at * step)
    }

    /// Up to `count` of its blocks, drawn at random, none twice.
    pub fn drawn(&mut self, count: usize, into: &mut Vec<u32>) {
        let own = self.versions.len() as u32;
        into.clear();
        while into.len() < count.min(own as usize) {
            while into.len() < count {
                into.push(self.first + self.random.below(own) * self.step);
            }
            into.sort_unstable();
            into.dedup();
        }
        // Not in the order of their numbers.
        for last in (1..into.len()).rev() {
            into.swap(last, self.random.below(last as u32 + 1) as usize);
        }
    }

    /// Puts the next version of `block` into `into`.
    pub fn next_version(&mut self, block: u32, into: &mut [u8]) {
        self.versions[(block / self.step) as usize] += 1;
        self.expected(block, into);
    }

    /// Puts the last version of `block` into `into`.
    pub fn expected(&self, block: u32, into: &mut [u8]) {
        let version = self.versions[(block / self.step) as usize];
        let stamp = u64::from(block) << 32 | u64::from(version);
        let from = Random::new(stamp).below(((POOL_BYTES - BLOCK_BYTES) / 8) as u32) as usize * 8;
        into.copy_from_slice(&self.pool.bytes()[from..from + BLOCK_BYTES]);
        into[..8].copy_from_slice(&stamp.to_le_bytes());
    }
}
