//! Partitions of the access graph: blocks that are read together.
//!
//! When a block is read right after one of another partition, the boundary between the two is
//! shifted so that both are in one, if that lowers the weight of the edges between partitions
//! (Matthews 1999, §6.4.1). Three shifts are tried:
//!
//! * the partitions become one, if that is no larger than the limit;
//! * the block moves over to the partition of the one before it, or that one to its partition,
//!   if it is tied more strongly there than where it is;
//! * where there is no room for it, the most weakly tied block there is moved out, if the edges
//!   that this cuts weigh less than those it joins.
//!
//! A block's *ties* are the weights of the edges, to it and from it, that join it to other members.
//! The *value* of a partition is the mean of its members' ties. The source defines it as "the sum
//! of the weight of all inter-partition edges divided by the number of data blocks", and in the
//! sentence before asks for "the predictive value of the edges joining the partition members": so
//! the edges within are meant. Each counts at both of its ends, because else a pattern that is being
//! read for the second time has a value below 2 and cannot be reorganised then, as figure 6-7 shows
//! it is (a chain of n blocks that was read k times has the value 2 k (n - 1) / n).
//!
//! Invariants: a block that has been read is in one partition, and stands in its list once; ties
//! are the sums that the graph says; a partition of more than one block holds only blocks with
//! ties, and is no larger than the limit; a shift never raises the weight between partitions.
//!
//! Open in the source, chosen by us: the limit (the caller's; a segment by default), the three
//! shifts, that a block read for the first time joins the one before it at once but others only by
//! an edge that was seen twice, and that a block whose last tie is gone stands alone from then on.
//!
//! Memory: 16 bytes a block and 32 bytes a partition, beside the graph's 24 bytes a block. What
//! bounds the speed: a read looks up the partition of the block, which is one access to memory; a
//! shift costs time in proportion to the members it touches, and there are fewer of them than reads.

use crate::access_graph::{AccessGraph, Edge, NONE, Recorded};

/// Partition of a block that was never read.
const NEVER: u32 = NONE;

/// Partition of a block that was deleted after it had been read: edges may still lead to it.
const GONE: u32 = NONE - 1;

/// Boundaries between blocks that were read before are not shifted for an edge seen less often;
/// chosen by us. An edge seen once says nothing yet, and reads at random make no others. A pattern
/// among such blocks is in partitions as soon as it is being read for the second time, before which
/// it may not be reorganised anyway.
const SHIFT_WEIGHT_MIN: u16 = 2;

#[derive(Debug, Clone, Copy)]
struct Member {
    partition: u32,
    ties: u32,
    next: u32,
    previous: u32,
}

const ABSENT: Member = Member { partition: NEVER, ties: 0, next: NONE, previous: NONE };

#[derive(Debug, Clone, Copy)]
struct Partition {
    first: u32,
    last: u32,
    members: u32,
    blocks: u32,
    /// Sum of the members' ties: twice the weight of the edges within.
    ties: u64,
    /// A mark of the caller's.
    mark: u64,
}

/// All partitions.
#[derive(Debug, Clone)]
pub struct Partitions {
    limit_blocks: u32,
    members: Vec<Member>,
    records: Vec<Partition>,
    free: Vec<u32>,
    /// Blocks that each node stands for; one each if empty.
    sizes: Vec<u32>,
}

impl Partitions {
    /// Partitions of at most `limit_blocks` blocks each, of blocks numbered below `blocks`.
    #[must_use]
    pub fn new(blocks: u32, limit_blocks: u32) -> Self {
        Self {
            limit_blocks: limit_blocks.max(1),
            members: vec![ABSENT; blocks as usize],
            records: Vec::new(),
            free: Vec::new(),
            sizes: Vec::new(),
        }
    }

    /// Lets blocks be numbered up to `blocks`.
    pub fn ensure_blocks(&mut self, blocks: u32) {
        if blocks as usize > self.members.len() {
            self.members.resize(blocks as usize, ABSENT);
            if !self.sizes.is_empty() {
                self.sizes.resize(blocks as usize, 1);
            }
        }
    }

    /// Blocks that may be numbered.
    #[must_use]
    #[inline]
    pub fn nodes(&self) -> u32 {
        self.members.len() as u32
    }

    /// `node` stands for `blocks` blocks from now on (a file in a graph of files). If that makes
    /// its partition too large, it stands alone.
    pub fn set_size(&mut self, graph: &AccessGraph, node: u32, blocks: u32) {
        if self.sizes.is_empty() {
            self.sizes = vec![1; self.members.len()];
        }
        let before = std::mem::replace(&mut self.sizes[node as usize], blocks);
        let Some(number) = self.of(node) else { return };
        let partition = &mut self.records[number as usize];
        partition.blocks = partition.blocks - before + blocks;
        if partition.members > 1 && partition.blocks > self.limit_blocks {
            self.leave(graph, node);
            self.found(node);
            self.sever_untied(number);
        }
    }

    pub(crate) fn size(&self, node: u32) -> u32 {
        self.sizes.get(node as usize).copied().unwrap_or(1)
    }

    /// The partition of `block`, if it has been read.
    #[must_use]
    #[inline]
    pub fn of(&self, block: u32) -> Option<u32> {
        let partition = self.members[block as usize].partition;
        (partition < GONE).then_some(partition)
    }

    /// The weight of the edges that join `block` to other members of its partition.
    #[must_use]
    #[inline]
    pub fn ties(&self, block: u32) -> u32 {
        self.members[block as usize].ties
    }

    /// Blocks in `partition`.
    #[must_use]
    pub fn len(&self, partition: u32) -> u32 {
        self.records[partition as usize].members
    }

    /// Whether no block is in `partition`: its number is not in use.
    #[must_use]
    pub fn is_empty(&self, partition: u32) -> bool {
        self.records.get(partition as usize).is_none_or(|partition| partition.members == 0)
    }

    /// Sum of the ties of the members of `partition`.
    #[must_use]
    #[inline]
    pub fn ties_within(&self, partition: u32) -> u64 {
        self.records[partition as usize].ties
    }

    /// The value of `partition`: see the module.
    #[must_use]
    #[inline]
    pub fn value(&self, partition: u32) -> f64 {
        let Partition { ties, members, .. } = self.records[partition as usize];
        ties as f64 / f64::from(members)
    }

    /// A number that the caller keeps with `partition`; zero at first.
    #[must_use]
    pub fn mark(&self, partition: u32) -> u64 {
        self.records[partition as usize].mark
    }

    /// Changes that number.
    pub fn set_mark(&mut self, partition: u32, mark: u64) {
        self.records[partition as usize].mark = mark;
    }

    /// Members of `partition`, in the order in which they came together.
    pub fn members(&self, partition: u32) -> impl Iterator<Item = u32> + '_ {
        let first = self.records.get(partition as usize).map_or(NONE, |found| found.first);
        let listed = |block: u32| (block != NONE).then_some(block);
        std::iter::successors(listed(first), move |block| {
            listed(self.members[*block as usize].next)
        })
    }

    /// Partitions, in the order of their numbers.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.records.len() as u32).filter(|partition| !self.is_empty(*partition))
    }

    /// `block` was read, not right after another.
    pub fn admit(&mut self, block: u32) {
        if self.of(block).is_none() {
            self.found(block);
        }
    }

    /// `to` was read right after `from`, which the graph has recorded.
    #[inline]
    pub fn read_after(&mut self, graph: &AccessGraph, from: u32, to: u32, recorded: Recorded) {
        let home = self.members[from as usize].partition;
        let together = home == self.members[to as usize].partition;
        if together {
            // First, so that a block is not severed for the edge that this one replaces.
            self.tie(from, to, u32::from(recorded.raised));
        }
        if let Some(Edge { target, weight }) = recorded.dropped {
            self.loosen(from, target, u32::from(weight));
        }
        if !together {
            self.meet(graph, from, to, recorded.weight);
        }
    }

    /// The weight of the edge between two members rises.
    #[inline]
    fn tie(&mut self, one: u32, other: u32, weight: u32) {
        self.members[one as usize].ties += weight;
        self.members[other as usize].ties += weight;
        let partition = self.members[one as usize].partition;
        self.records[partition as usize].ties += u64::from(2 * weight);
    }

    /// The weight of an edge falls; members whose last tie that was stand alone from then on.
    #[inline]
    fn loosen(&mut self, from: u32, to: u32, weight: u32) {
        let partition = self.members[from as usize].partition;
        if weight == 0 || partition >= GONE || partition != self.members[to as usize].partition {
            return;
        }
        self.records[partition as usize].ties -= u64::from(2 * weight);
        for block in [from, to] {
            self.members[block as usize].ties -= weight;
            if self.members[block as usize].ties == 0 {
                self.sever(block);
            }
        }
    }

    /// `block`, which has no ties, stands alone.
    #[cold]
    fn sever(&mut self, block: u32) {
        if self.len(self.members[block as usize].partition) > 1 {
            self.unlink(block);
            self.found(block);
        }
    }

    /// A new partition for `block`.
    fn found(&mut self, block: u32) {
        let blocks = self.size(block);
        let alone = Partition { first: block, last: block, members: 1, blocks, ties: 0, mark: 0 };
        let partition = if let Some(partition) = self.free.pop() {
            self.records[partition as usize] = alone;
            partition
        } else {
            self.records.push(alone);
            self.records.len() as u32 - 1
        };
        self.members[block as usize] = Member { partition, ..ABSENT };
    }

    /// Takes `block` out of the list of its partition, which ends with its last.
    fn unlink(&mut self, block: u32) {
        let Member { partition, next, previous, .. } = self.members[block as usize];
        let size = self.size(block);
        let record = &mut self.records[partition as usize];
        match previous {
            NONE => record.first = next,
            previous => self.members[previous as usize].next = next,
        }
        match next {
            NONE => record.last = previous,
            next => self.members[next as usize].previous = previous,
        }
        record.members -= 1;
        record.blocks -= size;
        if record.members == 0 {
            self.free.push(partition);
        }
    }

    /// Puts `block`, which is in no list, behind the member `previous`.
    fn link_behind(&mut self, block: u32, previous: u32) {
        let Member { partition, next, .. } = self.members[previous as usize];
        let size = self.size(block);
        self.members[block as usize] = Member { partition, ties: 0, next, previous };
        self.members[previous as usize].next = block;
        let record = &mut self.records[partition as usize];
        match next {
            NONE => record.last = block,
            next => self.members[next as usize].previous = block,
        }
        record.members += 1;
        record.blocks += size;
    }

    /// `to`, of another partition or of none yet, was read after `from`.
    #[inline(never)]
    fn meet(&mut self, graph: &AccessGraph, from: u32, to: u32, weight: u16) {
        let home = self.members[from as usize].partition;
        let there = self.members[to as usize].partition;
        let room = self.limit_blocks.saturating_sub(self.records[home as usize].blocks);
        if there == NEVER {
            // Nothing leads to it but this edge.
            if self.size(to) <= room {
                self.link_behind(to, from);
                self.tie(from, to, u32::from(weight));
            } else {
                self.found(to);
            }
            return;
        }
        if there == GONE {
            self.found(to);
        }
        if weight < SHIFT_WEIGHT_MIN {
            return;
        }
        let there = self.members[to as usize].partition;
        if self.records[there as usize].blocks <= room {
            self.merge(graph, home, there);
        } else {
            self.shift(graph, from, to);
        }
    }

    /// Makes one partition of two: the members of `behind` follow those of `ahead`.
    fn merge(&mut self, graph: &AccessGraph, ahead: u32, behind: u32) {
        let joined = self.tie_across(graph, ahead, behind) + self.tie_across(graph, behind, ahead);
        let (one, other) = (self.records[ahead as usize], self.records[behind as usize]);
        self.members[one.last as usize].next = other.first;
        self.members[other.first as usize].previous = one.last;
        let both = Partition {
            first: one.first,
            last: other.last,
            members: one.members + other.members,
            blocks: one.blocks + other.blocks,
            ties: one.ties + other.ties + 2 * joined,
            mark: 0,
        };
        let ahead_is_larger = one.members >= other.members;
        let (kept, gone) = if ahead_is_larger { (ahead, behind) } else { (behind, ahead) };
        let (renamed, count) =
            if ahead_is_larger { (other, other.members) } else { (one, one.members) };
        let mut block = renamed.first;
        for _ in 0..count {
            self.members[block as usize].partition = kept;
            block = self.members[block as usize].next;
        }
        self.records[kept as usize] = both;
        self.records[gone as usize] = Partition { members: 0, ties: 0, ..other };
        self.free.push(gone);
    }

    /// Adds the edges from members of `source` to members of `target` to the ties of both ends,
    /// and gives their weight.
    fn tie_across(&mut self, graph: &AccessGraph, source: u32, target: u32) -> u64 {
        let (mut joined, mut block) = (0, self.records[source as usize].first);
        while block != NONE {
            for edge in graph.edges(block) {
                if self.members[edge.target as usize].partition == target {
                    self.members[block as usize].ties += u32::from(edge.weight);
                    self.members[edge.target as usize].ties += u32::from(edge.weight);
                    joined += u64::from(edge.weight);
                }
            }
            block = self.members[block as usize].next;
        }
        joined
    }

    /// Tries to bring `from` and `to` together by moving one of them.
    fn shift(&mut self, graph: &AccessGraph, from: u32, to: u32) {
        // A lower bound of the gain: the edges that begin at the block, and the one just recorded.
        // Others may lead to it, but to find them takes a look at every member.
        let known = |mover: u32, stays: u32| {
            let partition = self.members[stays as usize].partition;
            let within = |edge: &Edge| self.members[edge.target as usize].partition == partition;
            let begins: u32 =
                graph.edges(mover).filter(within).map(|edge| u32::from(edge.weight)).sum();
            begins + u32::from(graph.weight(stays, mover))
        };
        let gain = |mover: u32, stays: u32| {
            i64::from(known(mover, stays)) - i64::from(self.members[mover as usize].ties)
        };
        let (follow, precede) = (gain(to, from), gain(from, to));
        let (mover, stays) = if follow >= precede { (to, from) } else { (from, to) };
        let gain = follow.max(precede);
        if gain <= 0 {
            return;
        }
        let target = self.members[stays as usize].partition;
        let room = self.limit_blocks.saturating_sub(self.records[target as usize].blocks);
        if self.size(mover) > room {
            let others = self.members(target).filter(|block| *block != stays);
            let Some(weakest) = others.min_by_key(|block| self.members[*block as usize].ties)
            else {
                return;
            };
            let between = graph.weight(mover, weakest) + graph.weight(weakest, mover);
            let lost = self.members[weakest as usize].ties + u32::from(between);
            let makes_room = self.size(weakest) + room >= self.size(mover);
            if !makes_room || gain <= i64::from(lost) {
                return;
            }
            self.leave(graph, weakest);
            self.found(weakest);
        }
        let source = self.members[mover as usize].partition;
        self.leave(graph, mover);
        self.join(graph, mover, stays, mover == to);
        self.sever_untied(source);
        self.sever_untied(target);
    }

    /// Takes `block` out of its partition, and its edges out of the ties of those it leaves.
    fn leave(&mut self, graph: &AccessGraph, block: u32) {
        let partition = self.members[block as usize].partition;
        for edge in graph.edges(block) {
            let target = &mut self.members[edge.target as usize];
            if target.partition == partition {
                target.ties -= u32::from(edge.weight);
            }
        }
        let mut member = self.records[partition as usize].first;
        while member != NONE {
            if member != block {
                self.members[member as usize].ties -= u32::from(graph.weight(member, block));
            }
            member = self.members[member as usize].next;
        }
        let ties = std::mem::take(&mut self.members[block as usize].ties);
        self.records[partition as usize].ties -= u64::from(2 * ties);
        self.unlink(block);
    }

    /// Puts `block`, which is in no list, into the partition of `member`, behind it or at its side.
    fn join(&mut self, graph: &AccessGraph, block: u32, member: u32, behind: bool) {
        let partition = self.members[member as usize].partition;
        let previous = self.members[member as usize].previous;
        self.link_behind(block, if behind || previous == NONE { member } else { previous });
        let mut ties = 0;
        for edge in graph.edges(block) {
            let target = &mut self.members[edge.target as usize];
            if target.partition == partition {
                target.ties += u32::from(edge.weight);
                ties += u32::from(edge.weight);
            }
        }
        let mut other = self.records[partition as usize].first;
        while other != NONE {
            let weight = u32::from(graph.weight(other, block));
            self.members[other as usize].ties += weight;
            ties += weight;
            other = self.members[other as usize].next;
        }
        self.members[block as usize].ties = ties;
        self.records[partition as usize].ties += u64::from(2 * ties);
    }

    fn sever_untied(&mut self, partition: u32) {
        if self.is_empty(partition) {
            return;
        }
        let mut block = self.records[partition as usize].first;
        while block != NONE {
            let Member { next, ties, .. } = self.members[block as usize];
            if ties == 0 {
                self.sever(block);
            }
            block = next;
        }
    }

    /// `block` was written: the edges that begin at it weigh one less (Matthews 1999, §6.4.3). When
    /// the last of them is gone it is severed: the edges of other members to it are forgotten, too.
    ///
    /// A block's edges are those that it keeps. If those that lead to it weighed less as well, an
    /// edge would lose two when a whole file is written once, and gain one when it is read.
    pub fn written(&mut self, graph: &mut AccessGraph, block: u32) {
        let mut targets = [NONE; crate::access_graph::EDGES];
        for (target, edge) in targets.iter_mut().zip(graph.edges(block)) {
            *target = edge.target;
        }
        let had_edges = targets[0] != NONE;
        for target in targets.into_iter().filter(|target| *target != NONE) {
            graph.weaken(block, target);
            self.loosen(block, target, 1);
        }
        if had_edges && graph.edges(block).next().is_none() {
            self.cut_from(graph, block);
        }
    }

    /// Forgets the edges of other members to `block`.
    #[cold]
    fn cut_from(&mut self, graph: &mut AccessGraph, block: u32) {
        let Some(partition) = self.of(block) else { return };
        let mut member = self.records[partition as usize].first;
        while member != NONE && self.members[block as usize].ties > 0 {
            let next = self.members[member as usize].next;
            if member != block {
                let weight = graph.cut(member, block);
                self.loosen(member, block, u32::from(weight));
            }
            member = next;
        }
    }

    /// `block` was deleted: its edges are forgotten, and it is in no partition.
    pub fn deleted(&mut self, graph: &mut AccessGraph, block: u32) {
        if let Some(partition) = self.of(block) {
            self.leave(graph, block);
            self.members[block as usize] = Member { partition: GONE, ..ABSENT };
            if !self.is_empty(partition) {
                let mut member = self.records[partition as usize].first;
                while member != NONE {
                    graph.cut(member, block);
                    member = self.members[member as usize].next;
                }
                self.sever_untied(partition);
            }
        }
        graph.clear(block);
    }

    /// The members of `partition` in the order to lay them out: from the one that fewest reads of
    /// other members led to, along the heaviest edges within.
    pub fn lay_out(&self, graph: &AccessGraph, partition: u32, order: &mut Vec<u32>) {
        order.clear();
        let within = |edge: &Edge| self.members[edge.target as usize].partition == partition;
        // Each member with the weight that leads to it, its place in the list, and whether it is
        // laid out already; by number, so that it is found.
        let mut known: Vec<(u32, u32, usize, bool)> = self
            .members(partition)
            .enumerate()
            .map(|(place, block)| (block, 0, place, false))
            .collect();
        known.sort_unstable();
        // Every block asked for is a member, so that its place is found, not one to put it at.
        let find = |known: &[(u32, u32, usize, bool)], block: u32| {
            known.partition_point(|member| member.0 < block)
        };
        for member in self.members(partition) {
            for edge in graph.edges(member).filter(within) {
                let target = find(&known, edge.target);
                known[target].1 += u32::from(edge.weight);
            }
        }
        let mut starts: Vec<usize> = (0..known.len()).collect();
        starts.sort_unstable_by_key(|start| (known[*start].1, known[*start].2));
        for start in starts {
            let mut next = (!known[start].3).then_some(start);
            while let Some(place) = next {
                known[place].3 = true;
                order.push(known[place].0);
                let mut heaviest = (0, None);
                for edge in graph.edges(known[place].0).filter(within) {
                    let target = find(&known, edge.target);
                    if !known[target].3 && edge.weight > heaviest.0 {
                        heaviest = (edge.weight, Some(target));
                    }
                }
                next = heaviest.1;
            }
        }
    }

    /// Weight of all edges between partitions, in time proportional to the blocks.
    #[must_use]
    pub fn weight_between(&self, graph: &AccessGraph) -> u64 {
        let mut between = 0;
        for (block, member) in self.members.iter().enumerate() {
            for edge in graph.edges(block as u32) {
                let partition = self.members[edge.target as usize].partition;
                let joined = partition < GONE && partition == member.partition;
                between += if joined { 0 } else { u64::from(edge.weight) };
            }
        }
        between
    }

    /// `block` has been deleted after it had been read, and nothing knows it any more.
    pub(crate) fn set_gone(&mut self, block: u32) {
        self.members[block as usize] = Member { partition: GONE, ..ABSENT };
    }

    /// Whether `block` has been deleted after it had been read.
    pub(crate) fn is_gone(&self, block: u32) -> bool {
        self.members[block as usize].partition == GONE
    }

    /// Makes a partition of `blocks`, none of which is in one, in this order; `false` if they are
    /// none, one of them is in one, they are too many, or one has no ties with the others.
    pub(crate) fn assemble(&mut self, graph: &AccessGraph, blocks: &[u32]) -> bool {
        let fits = blocks.iter().map(|block| u64::from(self.size(*block))).sum::<u64>()
            <= u64::from(self.limit_blocks);
        let Some(first) = blocks.first().filter(|_| fits || blocks.len() == 1) else {
            return false;
        };
        if blocks.iter().any(|block| self.members[*block as usize].partition != NEVER) {
            return false;
        }
        self.found(*first);
        let number = self.members[*first as usize].partition;
        for pair in blocks.windows(2) {
            if self.members[pair[1] as usize].partition != NEVER {
                return false;
            }
            self.link_behind(pair[1], pair[0]);
        }
        self.tie_across(graph, number, number);
        let ties = |block: &u32| self.members[*block as usize].ties;
        self.records[number as usize].ties =
            blocks.iter().map(|block| u64::from(ties(block))).sum();
        blocks.len() == 1 || blocks.iter().all(|block| ties(block) > 0)
    }

    /// Bytes it takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.members.capacity() * size_of::<Member>()
            + self.records.capacity() * size_of::<Partition>()
            + (self.free.capacity() + self.sizes.capacity()) * size_of::<u32>()
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// If one does not hold, which is a bug.
    pub fn verify(&self, graph: &AccessGraph) {
        let mut ties = vec![0_u32; self.members.len()];
        for (block, member) in self.members.iter().enumerate() {
            for edge in graph.edges(block as u32) {
                let partition = self.members[edge.target as usize].partition;
                if partition < GONE && partition == member.partition {
                    ties[block] += u32::from(edge.weight);
                    ties[edge.target as usize] += u32::from(edge.weight);
                }
            }
        }
        let mut listed = 0;
        for (number, partition) in self.records.iter().enumerate() {
            assert_eq!(partition.members == 0, self.free.contains(&(number as u32)));
            if partition.members == 0 {
                continue;
            }
            let (mut sum, mut blocks, mut count, mut previous) = (0, 0, 0, NONE);
            for block in self.members(number as u32) {
                let member = self.members[block as usize];
                assert_eq!(member.partition as usize, number, "block {block} in another list");
                assert_eq!(member.previous, previous, "the list back from block {block}");
                assert_eq!(member.ties, ties[block as usize], "ties of block {block}");
                assert!(member.ties > 0 || partition.members == 1, "block {block} has no ties");
                (sum, count, previous) = (sum + u64::from(member.ties), count + 1, block);
                blocks += self.size(block);
            }
            assert_eq!((sum, count, blocks), (partition.ties, partition.members, partition.blocks));
            assert_eq!(partition.last, previous, "the end of partition {number}");
            assert!(blocks <= self.limit_blocks || partition.members == 1, "it is too large");
            listed += count;
        }
        let inside = self.members.iter().filter(|member| member.partition < GONE).count();
        assert_eq!(inside, listed as usize, "blocks in partitions");
    }
}
