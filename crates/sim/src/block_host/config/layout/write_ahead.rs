//! The `[layout]` table of write-ahead logging: a journal around a layout that updates in place,
//! whose own keys stand in the same table.

use agewell_layout::write_ahead::{JOURNAL_PLACES_MIN, JournalPlace, Journaled};
use serde_json::{Value, json};

use super::super::small;
use super::{FastLayout, Layout, SequentialLayout};
use crate::config::{ConfigError, Table};

/// A journal and what is behind it.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteAheadLayout {
    /// What updates in place.
    pub inner: Box<Layout>,
    /// What goes through the journal.
    pub journaled: Journaled,
    /// Where it is.
    pub place: JournalPlace,
    /// How large it is.
    pub journal_bytes: u64,
    /// Bytes that are gathered at most before they are committed.
    pub group_bytes: u64,
    /// Commits between checkpoints; 0 for when the journal is half full.
    pub checkpoint_commits: u32,
}

/// Bytes of a journal where nothing else is said; chosen by us.
const JOURNAL_BYTES: u64 = 8 << 20;

/// Bytes of a group; as a write buffer.
const GROUP_BYTES: u64 = 256 << 10;

#[derive(Clone, Copy)]
enum Inner {
    Sequential,
    Fast { realloc: bool },
}

const INNER: &[(&str, Inner)] = &[
    ("ffs", Inner::Fast { realloc: false }),
    ("ffs+realloc", Inner::Fast { realloc: true }),
    ("sequential", Inner::Sequential),
];

const JOURNALED: &[(&str, Journaled)] =
    &[("metadata", Journaled::Metadata), ("full", Journaled::Full)];

const PLACES: &[(&str, JournalPlace)] = &[
    ("start", JournalPlace::Start),
    ("middle", JournalPlace::Middle),
    ("own-disk", JournalPlace::OwnDisk),
];

impl WriteAheadLayout {
    pub(super) fn read(table: &mut Table) -> Result<Self, ConfigError> {
        let inner = match table.choice("inner", INNER, Some(Inner::Fast { realloc: false }))? {
            Inner::Sequential => Layout::Sequential(SequentialLayout::read(table)?),
            Inner::Fast { realloc } => Layout::Fast(FastLayout::read(table, realloc)?),
        };
        let has_metadata = matches!(&inner, Layout::Fast(fast) if fast.metadata.is_transferred);
        let default = if has_metadata { Journaled::Metadata } else { Journaled::Full };
        let layout = Self {
            journaled: table.choice("journal", JOURNALED, Some(default))?,
            place: table.choice("journal_place", PLACES, Some(JournalPlace::Start))?,
            journal_bytes: table.bytes("journal_size")?.unwrap_or(JOURNAL_BYTES),
            group_bytes: table.bytes("group_size")?.unwrap_or(GROUP_BYTES),
            checkpoint_commits: small(table, "checkpoint_commits", 0)?,
            inner: Box::new(inner),
        };
        if layout.journaled == Journaled::Metadata && !has_metadata {
            let why = "needs an inner layout with metadata; say 'full' or inner = \"ffs\"";
            return Err(table.invalid("journal", why));
        }
        let least = u64::from(JOURNAL_PLACES_MIN) * layout.place_bytes();
        if layout.journal_bytes < least || layout.journal_places() > u64::from(u32::MAX / 2) {
            return Err(table.invalid("journal_size", format!("must be at least {least} bytes")));
        }
        Ok(layout)
    }

    /// Bytes of a place of the layout inside.
    #[must_use]
    pub fn place_bytes(&self) -> u64 {
        match &*self.inner {
            Layout::Fast(fast) => u64::from(fast.fragment_bytes),
            inner => inner.block_bytes(),
        }
    }

    /// Places of the journal.
    #[must_use]
    pub fn journal_places(&self) -> u64 {
        self.journal_bytes / self.place_bytes()
    }

    pub(super) fn resolved(&self) -> Value {
        let name = |found: Option<&str>| found.expect("every choice has a name").to_owned();
        let journaled = JOURNALED.iter().find(|(_, each)| *each == self.journaled);
        let place = PLACES.iter().find(|(_, each)| *each == self.place);
        let mut resolved = self.inner.resolved();
        resolved["inner"] = resolved["kind"].take();
        resolved["kind"] = json!("write-ahead");
        resolved["journal"] = json!(name(journaled.map(|found| found.0)));
        resolved["journal_place"] = json!(name(place.map(|found| found.0)));
        resolved["journal_size"] = json!(format!("{} B", self.journal_bytes));
        resolved["group_size"] = json!(format!("{} B", self.group_bytes));
        resolved["checkpoint_commits"] = json!(self.checkpoint_commits);
        resolved
    }
}
