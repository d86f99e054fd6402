//! Bugs that can be put into the file system one at a time, to see that the tests find them.
//!
//! Only with the feature `seeded-faults`, which no other build has.

agewell_store::seeded_faults! {
    /// A file that has lost its last name is not listed as one to be removed.
    OrphanLeaked,
    /// What lay behind the new end of a file comes back when it grows again.
    OldBytesAfterTruncation,
    /// Blocks that two files have are freed when one of them has them no more.
    SharedFreedWithTwoOwners,
    /// Blocks that two files have are written where they are.
    SharedWrittenInPlace,
    /// A directory that is moved does not count among the links of where it comes.
    MovedDirectoryNotCounted,
    /// A file that another takes the name of keeps its link.
    ReplacedKeepsLink,
    /// What describes data is handed over before the data.
    DataAfterMetadata,
    /// What is freed is handed over before what names it no more.
    FreedFirst,
    /// Promised blocks that are written are promised still.
    PromiseKept,
    /// A file that becomes shorter is not listed until its blocks are freed.
    ShrinkingNotListed,
    /// When an operation fails, nodes stay as it has changed them.
    NodesNotTakenBack,
    /// When an operation fails, what it has freed stays free.
    GivenNotTakenBack,
    /// Data takes the blocks that are kept for deleting.
    NothingKept,
    /// What was handed over is not brought to the medium by a sync.
    SyncWithoutFlush,
    /// Numbers of inodes are given again after a crash.
    NumbersGivenAgain,
    /// The blocks of one that has others' are not copied before a part of it is written.
    BeforeIsZeros,
    /// A name's hash leads to it still when it is removed.
    NameStays,
    /// The journal goes on to speak of nodes that are none any more, or were written whole.
    JournalNotForgotten,
    /// What the journal says is dropped when it is found.
    JournalNotReplayed,
    /// The journal is freed before the nodes that it speaks of are written.
    JournalFreedFirst,
    /// Only the first place of each block of the journal is read.
    JournalOnce,
}
