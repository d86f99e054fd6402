//! An order of files along the access graph of a recording.
//!
//! Nodes are files, and an edge leads from each file to the one that the same client read after it.
//! Files that follow one another often come into one partition, which is laid out along its heaviest
//! edges; partitions follow one another as the first of their files were read. So what several
//! programs, started side by side or at other times in other company, read of each is put together,
//! where the order of first reads mixes them.
//!
//! The graph and its partitions are those of the simulator (Matthews 1999, §6.4.1). Its nodes were
//! blocks; a file stands for as many as it has, so that a partition is no longer than a stretch.
//!
//! Open in the source, chosen by us: each client's reads are taken by themselves, one client after
//! another, since which client's read comes next is chance.

use agewell_regrouping::RelatedBlocks;

use super::recording::FileRead;

/// What a file stands for in the graph is counted in blocks of this size, bytes: of a page.
const BLOCK_BYTES: u64 = 4096;

/// The files of `reads`, of `file_bytes` each, in the order in which they are to lie; partitions have
/// at most `stretch_bytes`.
pub(super) fn order(reads: &[FileRead], file_bytes: &[u64], stretch_bytes: u64) -> Vec<u32> {
    let blocks = |bytes: u64| u32::try_from(bytes.div_ceil(BLOCK_BYTES)).unwrap_or(u32::MAX / 2);
    let files = file_bytes.len() as u32;
    let mut related = RelatedBlocks::new(files, blocks(stretch_bytes));
    for (file, bytes) in file_bytes.iter().enumerate() {
        related.set_size(file as u32, blocks(*bytes).max(1));
    }
    // Stable: each client's reads stay in their order.
    let mut by_client: Vec<&FileRead> = reads.iter().collect();
    by_client.sort_by_key(|read| read.client);
    let mut client = None;
    for read in by_client {
        if client.replace(read.client) == Some(read.client) {
            related.read(read.file);
        } else {
            related.read_apart(read.file);
        }
    }
    let mut laid = vec![false; files as usize];
    let mut found = Vec::with_capacity(laid.len());
    let mut members = Vec::new();
    for file in 0..files {
        if laid[file as usize] {
            continue;
        }
        match related.partitions().of(file) {
            Some(partition) => related.lay_out(partition, &mut members),
            None => members = vec![file],
        }
        for member in &members {
            laid[*member as usize] = true;
            found.push(*member);
        }
    }
    found
}
