//! Bugs that can be put into the store one at a time, to see that the tests find them.
//!
//! Only with the feature `seeded-faults`, which no other build has: elsewhere [`is_seeded`] is `false` when
//! the program is compiled.

/// The bugs of a crate that has a feature `seeded-faults`: `SeededFault` with all of them, and
/// `is_seeded`, which says whether one was chosen. One of them at most is.
#[doc(hidden)]
#[macro_export]
macro_rules! seeded_faults {
    ($($(#[$what:meta])+ $fault:ident,)+) => {
        /// A bug.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        #[cfg_attr(
            not(feature = "seeded-faults"),
            allow(unreachable_pub, reason = "who chooses needs the feature")
        )]
        pub enum SeededFault {
            $($(#[$what])+ $fault,)+
        }

        #[cfg(feature = "seeded-faults")]
        mod chosen {
            use std::sync::atomic::{AtomicU8, Ordering};

            use super::SeededFault;

            const NONE: u8 = u8::MAX;
            static CHOSEN: AtomicU8 = AtomicU8::new(NONE);

            impl SeededFault {
                /// All of them.
                pub const ALL: &[Self] = &[$(Self::$fault,)+];

                /// From here on all of the program have this bug, or none.
                pub fn choose(fault: Option<Self>) {
                    CHOSEN.store(fault.map_or(NONE, |fault| fault as u8), Ordering::Relaxed);
                }
            }

            /// Whether `fault` is the one that was chosen.
            pub(crate) fn is_seeded(fault: SeededFault) -> bool {
                CHOSEN.load(Ordering::Relaxed) == fault as u8
            }
        }

        #[cfg(feature = "seeded-faults")]
        pub(crate) use chosen::is_seeded;

        /// Whether `fault` is the one that was chosen.
        #[cfg(not(feature = "seeded-faults"))]
        pub(crate) const fn is_seeded(_: SeededFault) -> bool {
            false
        }
    };
}

seeded_faults! {
    /// The hole of a record is filled before a checkpoint that lasts has the record.
    RecordHoleNotHeld,
    /// A record goes into a hole where a reader does not look.
    HoleNotNamed,
    /// An inline record is written over before a checkpoint that lasts has it.
    NeedsCoveredIgnored,
    /// A slot of data is written over before the group in which it died is flushed.
    NeedsFlushedIgnored,
    /// An inline record counts as dead as soon as it is flushed, as data does.
    RecordsDieAsData,
    /// A hole is filled that a crash may still bring back.
    HeldHolesFilled,
    /// A checkpoint has what was not flushed before it was written.
    CheckpointBeforeFlush,
    /// What a checkpoint repeats counts as durable before the checkpoint is.
    CheckpointNotFlushed,
    /// Both roots are written without a flush between.
    RootsInOneFlush,
    /// The roots are written before the pages that they name are flushed.
    PagesNotFlushed,
    /// A map page goes to the place that the root names.
    PageInPlace,
    /// The map has what is planned and not written.
    PlannedInMap,
    /// A page does not count as changed when a block of it is freed.
    PageNotDirty,
    /// A block freed and written again in one group had no place before.
    FreedAndWrittenForgotten,
    /// Opening leaves a root that is older than the other.
    RootsNotMadeAlike,
    /// Behind the end of the inline records of a segment none is looked for.
    SegmentNotSearched,
    /// Opening does not raise the incarnation.
    IncarnationNotRaised,
    /// A ring record of an earlier incarnation counts.
    IncarnationOfRingIgnored,
    /// An inline record of an earlier incarnation counts.
    IncarnationOfInlineIgnored,
    /// Parts in the ring that were dropped at an opening count at the next.
    DroppedPartsComeBack,
    /// The checkpoint of an opening is not flushed.
    OpeningNotFlushed,
    /// An inline record counts that a checkpoint has repeated.
    CoveredInlineAccepted,
    /// A group counts of which a part is missing.
    PartCountIgnored,
    /// A group counts whose data is not there.
    DataNotVerified,
    /// A group does not count if what it has put somewhere was written over, though a later one had moved it on.
    SupersededVerified,
    /// Groups count behind one that is not there.
    FirstGapIgnored,
    /// Entries of checkpoints and groups are applied as they were found.
    OrderForgotten,
    /// No record says that blocks were freed.
    FreedNotRecorded,
    /// A record says that its own group was flushed.
    FlushedTooFar,
    /// Ring records are written over those that are needed.
    RingOvertakes,
    /// An inline record goes to a segment that only one ring record names.
    NamedOnce,
    /// A ring record repeats what was not flushed before it was written.
    UnflushedCovered,
    /// A ring record that was found as a copy is not written to its place.
    CopyNotWrittenBack,
    /// A run that fills its segment names the first slot of the next.
    ChainCrossesSegment,
    /// An open segment is said to end a slot before it does.
    OpenOneTooEarly,
    /// A sync returns without a flush.
    SyncWithoutFlush,
    /// What a flush that failed was for counts as flushed.
    FailedFlushForgotten,
    /// After a flush that failed nothing is written again.
    NotWrittenAgain,
    /// After a flush that failed, what the device has forgotten is read from it.
    ForgottenIsRead,
    /// The short sum of a moved block is that of its old slot.
    SumOfOldSlot,
    /// Damaged data that is moved gets a sum that fits it.
    DamageCopiedAsGood,
    /// Data is returned whatever its short sum.
    SumOfReadIgnored,
    /// The checksum of metadata does not know its address.
    ChecksumWithoutAddress,
    /// A transaction is accepted for which there is no room.
    RoomNotLookedAt,
    /// A group whose write failed counts as written.
    FailedWriteForgotten,
    /// What cannot be read when a store is opened counts as not there.
    UnreadableIsAbsent,
    /// A store that grows has its superblocks before the map that they name.
    GrownBeforeMap,
    /// What could not be written of the superblock of a store that grows is left.
    SuperblockForgotten,
    /// A store that grows goes back to what it was although a superblock may say what it will be.
    GrownBackTooLate,
    /// Opening leaves superblocks that are older than the current one.
    StaleSuperblockLeft,
}
