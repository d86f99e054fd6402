//! The `[layout]` table of write-ahead logging: a journal around a layout that updates in place,
//! whose own keys stand in the same table.

use agewell_config::{Form, Key, Keyed, choice, keys, natural, size};
use agewell_layout::write_ahead::{JOURNAL_PLACES_MIN, JournalPlace, Journaled};
use serde_json::{Map, Value, json};

use super::{ConfigError, FastLayout, Layout, SequentialLayout, Table};

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
    /// Bytes that are queued at most before they are committed.
    pub group_bytes: u64,
    /// Commits between checkpoints; 0 for when the journal is half full.
    pub checkpoint_commits: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
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

keys! {
    /// Its keys beside those of what is behind it.
    struct JournalTable {
        /// what updates in place behind the journal; its keys stand beside
        <"1999, section 3.4">
        inner: Inner = "inner" choice(INNER).or(Inner::Fast { realloc: false });
        /// what goes through the journal: metadata, or data, too
        <"1999, section 3.4">
        journaled: Option<Journaled> = "journal"
            choice(JOURNALED).or_else("`\"metadata\"`; `\"full\"` where there is none");
        /// where it is; `"own-disk"` is a second disk like the first
        <"1999, section 3.4">
        place: JournalPlace = "journal_place" choice(PLACES).or(JournalPlace::Start);
        /// size of the ring; propagated at half of it; commits beyond a quarter are divided
        <"ours">
        journal_bytes: u64 = "journal_size" size().or(8 << 20);
        /// gathered at most before a commit, as much as a write buffer; syncs and full write buffers
        /// commit as well
        <"ours">
        group_bytes: u64 = "group_size" size().or(256 << 10);
        /// commits after which everything is propagated; 0: at half of the journal
        <"ours">
        checkpoint_commits: u32 = "checkpoint_commits" natural().or(0);
    }
}

impl WriteAheadLayout {
    pub(super) fn read(table: &mut Table) -> Result<Self, ConfigError> {
        let read = JournalTable::read(table)?;
        let inner = match read.inner {
            Inner::Sequential => Layout::Sequential(SequentialLayout::read(table)?),
            Inner::Fast { realloc } => Layout::Fast(FastLayout::read(table, realloc)?),
        };
        let has_metadata = matches!(&inner, Layout::Fast(fast) if fast.metadata.is_transferred);
        let default = if has_metadata { Journaled::Metadata } else { Journaled::Full };
        let layout = Self {
            journaled: read.journaled.unwrap_or(default),
            place: read.place,
            journal_bytes: read.journal_bytes,
            group_bytes: read.group_bytes,
            checkpoint_commits: read.checkpoint_commits,
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
            Layout::Fast(fast) => u64::from(fast.fragment_bytes()),
            inner => inner.block_bytes(),
        }
    }

    /// Places of the journal.
    #[must_use]
    pub fn journal_places(&self) -> u64 {
        self.journal_bytes / self.place_bytes()
    }

    pub(super) fn resolve(&self, table: &mut Map<String, Value>) {
        if let Value::Object(inner) = self.inner.resolved() {
            let beside = inner.into_iter().filter(|(key, _)| key != "kind");
            table.extend(beside);
        }
        let inner = match &*self.inner {
            Layout::Fast(fast) => Inner::Fast { realloc: fast.realloc },
            _ => Inner::Sequential,
        };
        let keys = JournalTable {
            inner,
            journaled: Some(self.journaled),
            place: self.place,
            journal_bytes: self.journal_bytes,
            group_bytes: self.group_bytes,
            checkpoint_commits: self.checkpoint_commits,
        };
        JournalTable::resolve(&keys, table);
        table.insert("kind".into(), json!("write-ahead"));
    }

    pub(super) fn keys() -> Vec<Key> {
        let mut keys = JournalTable::keys();
        let inner = [FastLayout::keys(), SequentialLayout::keys()].concat();
        for key in inner {
            if keys.iter().all(|known| known.name != key.name) {
                keys.push(key);
            }
        }
        keys
    }
}
