//! The snapshot file: one Parquet table with a row a file and a row a free extent.
//!
//! `kind` is `regular`, `directory`, `link`, `other` or `free`. A file's extents are a list of
//! structures in its row; a free extent has one, and its length as `size_bytes`. What is known of
//! the file system stands in the metadata as JSON. `docs/reference/snapshots.md` describes the
//! columns for those who read the file with other tools.
//!
//! Invariants: the files come first, ascending by inode, then the free extents, ascending by
//! address; the same snapshot gives the same bytes; what is read has passed [`Snapshot::check`].
//! Cost: about 1 microsecond a file each way.

use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StructBuilder, UInt16Builder, UInt64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{TimestampNanosecondType, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, PrimitiveArray, RecordBatch, StringArray, StructArray,
    TimestampNanosecondArray, UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use serde::{Deserialize, Serialize};

use crate::SnapshotError;
use crate::table_file::{TableKind, TableReader, TableWriter};
use crate::{
    Extent, ExtentFlags, FileKind, FileSystemFacts, FreeExtent, NO_TIME, Snapshot, SnapshotFile,
};

/// What the file says it is.
pub const TABLE: TableKind = TableKind { name: "snapshot", version: 1 };
/// The kind of the rows that are no files.
const FREE: &str = "free";
/// Rows encoded at a time; chosen by us.
const WRITE_ROWS: usize = 1 << 16;
/// Where `extents` stands among the columns; a name, if any, comes behind it.
const EXTENTS_COLUMN: usize = 10;
/// Where `name` stands.
const NAME_COLUMN: usize = 11;

/// The value of `agewell.metadata`.
#[derive(Serialize, Deserialize)]
struct Metadata {
    facts: FileSystemFacts,
    /// Whether there is a column `name`.
    names: bool,
}

/// Times in JSON: `null` where they are not known.
pub(super) mod known_time {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::super::NO_TIME;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub(in super::super) fn serialize<S: Serializer>(
        time_ns: &i64,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        (*time_ns != NO_TIME).then_some(*time_ns).serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<i64, D::Error> {
        Option::deserialize(deserializer).map(|time: Option<i64>| time.unwrap_or(NO_TIME))
    }
}

fn extent_fields() -> Fields {
    Fields::from(vec![
        Field::new("logical_bytes", DataType::UInt64, false),
        Field::new("physical_bytes", DataType::UInt64, false),
        Field::new("length_bytes", DataType::UInt64, false),
        Field::new("flags", DataType::UInt16, false),
    ])
}

fn extent_item() -> Field {
    Field::new("item", DataType::Struct(extent_fields()), false)
}

fn schema(names: bool) -> SchemaRef {
    let time = || DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()));
    let mut fields = vec![
        Field::new("kind", DataType::Utf8, false),
        Field::new("inode", DataType::UInt64, true),
        Field::new("links", DataType::UInt32, true),
        Field::new("size_bytes", DataType::UInt64, false),
        Field::new("birth_time", time(), true),
        Field::new("change_time", time(), true),
        Field::new("modify_time", time(), true),
        Field::new("directory", DataType::UInt64, true),
        Field::new("readdir_rank", DataType::UInt32, true),
        Field::new("name_rank", DataType::UInt32, true),
        Field::new("extents", DataType::List(Arc::new(extent_item())), false),
    ];
    if names {
        fields.push(Field::new("name", DataType::Binary, true));
    }
    Arc::new(Schema::new(fields))
}

/// Writes `snapshot` to `path`; returns the bytes of the file.
///
/// # Errors
/// If the file cannot be written; nothing stands under its name then.
///
/// # Panics
/// If `snapshot` breaks the invariants of its fields.
pub fn write(snapshot: &Snapshot, path: &Path) -> Result<u64, SnapshotError> {
    let names = snapshot.names.is_some();
    let mut writer = TableWriter::create(path, TABLE, schema(names), &["inode"])?;
    for start in (0..snapshot.files.len()).step_by(WRITE_ROWS) {
        let end = (start + WRITE_ROWS).min(snapshot.files.len());
        writer.write(&file_rows(snapshot, start, end))?;
    }
    for free in snapshot.free.chunks(WRITE_ROWS) {
        writer.write(&free_rows(free, names))?;
    }
    let metadata = Metadata { facts: snapshot.facts.clone(), names };
    writer.finish(serde_json::to_string(&metadata).expect("plain data with text keys"))
}

struct ExtentLists(ListBuilder<StructBuilder>);

impl ExtentLists {
    fn new(rows: usize) -> Self {
        let values = StructBuilder::from_fields(extent_fields(), rows);
        Self(ListBuilder::with_capacity(values, rows).with_field(extent_item()))
    }

    fn push(&mut self, extent: &Extent) {
        let values = self.0.values();
        let numbers = [extent.logical_bytes, extent.physical_bytes, extent.length_bytes];
        for (column, number) in numbers.into_iter().enumerate() {
            let builder = values.field_builder::<UInt64Builder>(column);
            builder.expect("as in the schema").append_value(number);
        }
        let builder = values.field_builder::<UInt16Builder>(3);
        builder.expect("as in the schema").append_value(extent.flags.0);
        values.append(true);
    }

    fn end_row(&mut self) {
        self.0.append(true);
    }

    fn finish(mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

fn times(values: impl Iterator<Item = i64>) -> ArrayRef {
    let known = values.map(|time_ns| (time_ns != NO_TIME).then_some(time_ns));
    Arc::new(known.collect::<TimestampNanosecondArray>().with_timezone("UTC"))
}

fn file_rows(snapshot: &Snapshot, start: usize, end: usize) -> RecordBatch {
    let files = &snapshot.files[start..end];
    let long = |value: fn(&SnapshotFile) -> u64| -> ArrayRef {
        Arc::new(files.iter().map(value).map(Some).collect::<UInt64Array>())
    };
    let short = |value: fn(&SnapshotFile) -> u32| -> ArrayRef {
        Arc::new(files.iter().map(value).map(Some).collect::<UInt32Array>())
    };
    let mut extents = ExtentLists::new(files.len());
    for file in files {
        snapshot.extents_of(file).iter().for_each(|extent| extents.push(extent));
        extents.end_row();
    }
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(files.iter().map(|file| file.kind.name()))),
        long(|file| file.inode),
        short(|file| file.links),
        long(|file| file.size_bytes),
        times(files.iter().map(|file| file.birth_ns)),
        times(files.iter().map(|file| file.change_ns)),
        times(files.iter().map(|file| file.modify_ns)),
        long(|file| file.directory),
        short(|file| file.readdir_rank),
        short(|file| file.name_rank),
        extents.finish(),
    ];
    if let Some(names) = &snapshot.names {
        columns.push(Arc::new(BinaryArray::from_iter_values(&names[start..end])));
    }
    RecordBatch::try_new(schema(snapshot.names.is_some()), columns).expect("as in the schema")
}

fn free_rows(free: &[FreeExtent], names: bool) -> RecordBatch {
    let mut extents = ExtentLists::new(free.len());
    for extent in free {
        extents.push(&Extent {
            logical_bytes: 0,
            physical_bytes: extent.physical_bytes,
            length_bytes: extent.length_bytes,
            flags: ExtentFlags::default(),
        });
        extents.end_row();
    }
    let rows = free.len();
    let long = || -> ArrayRef { Arc::new(UInt64Array::new_null(rows)) };
    let short = || -> ArrayRef { Arc::new(UInt32Array::new_null(rows)) };
    let time = || times(std::iter::repeat_n(NO_TIME, rows));
    let sizes = free.iter().map(|extent| extent.length_bytes);
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(std::iter::repeat_n(FREE, rows))),
        long(),
        short(),
        Arc::new(UInt64Array::from_iter_values(sizes)),
        time(),
        time(),
        time(),
        long(),
        short(),
        short(),
        extents.finish(),
    ];
    if names {
        columns.push(Arc::new(BinaryArray::new_null(rows)));
    }
    RecordBatch::try_new(schema(names), columns).expect("as in the schema")
}

/// Reads the snapshot file at `path`.
///
/// # Errors
/// If it is no snapshot file, is damaged, or contradicts itself.
pub fn read(path: &Path) -> Result<Snapshot, SnapshotError> {
    let input = |what: String| SnapshotError::Input(format!("{}: {what}", path.display()));
    let mut reader = TableReader::open(path, TABLE, &schema(false))?;
    let metadata: Metadata = serde_json::from_str(&reader.metadata).map_err(|why| {
        input(format!("damaged description of the file system ({why}); take the snapshot again"))
    })?;
    if metadata.names {
        reader = TableReader::open(path, TABLE, &schema(true))?;
    }
    let mut snapshot = Snapshot {
        facts: metadata.facts,
        names: metadata.names.then(Vec::new),
        ..Snapshot::default()
    };
    while let Some(rows) = reader.next_rows()? {
        let first = reader.rows_read() - rows.num_rows() as u64;
        take_rows(&rows, &mut snapshot).map_err(|(row, what)| {
            input(format!("row {}: {what}; take the snapshot again", first + row as u64 + 1))
        })?;
    }
    snapshot
        .check()
        .map_err(|what| input(format!("makes no sense: {what}; take the snapshot again")))?;
    Ok(snapshot)
}

/// The columns of a batch as arrays; rows that need a value where there is none are kept apart.
struct Rows<'a> {
    kind: &'a StringArray,
    inode: &'a UInt64Array,
    links: &'a UInt32Array,
    size_bytes: &'a UInt64Array,
    times: [&'a TimestampNanosecondArray; 3],
    directory: &'a UInt64Array,
    ranks: [&'a UInt32Array; 2],
    offsets: &'a [i32],
    extents: [&'a UInt64Array; 3],
    flags: &'a PrimitiveArray<UInt16Type>,
    names: Option<&'a BinaryArray>,
}

impl<'a> Rows<'a> {
    fn of(rows: &'a RecordBatch) -> Result<Self, String> {
        let column = |index: usize| rows.column(index);
        let time = |index: usize| column(index).as_primitive::<TimestampNanosecondType>();
        let lists = column(EXTENTS_COLUMN).as_list::<i32>();
        let values: &StructArray = lists.values().as_struct();
        let holes = values.null_count() > 0
            || values.columns().iter().any(|column| column.null_count() > 0);
        if holes {
            return Err("an extent without a value".to_owned());
        }
        let number = |index: usize| values.column(index).as_primitive::<UInt64Type>();
        Ok(Self {
            kind: column(0).as_string(),
            inode: column(1).as_primitive(),
            links: column(2).as_primitive(),
            size_bytes: column(3).as_primitive(),
            times: [time(4), time(5), time(6)],
            directory: column(7).as_primitive(),
            ranks: [8, 9].map(|index| column(index).as_primitive::<UInt32Type>()),
            offsets: lists.value_offsets(),
            extents: [number(0), number(1), number(2)],
            flags: values.column(3).as_primitive(),
            names: (rows.num_columns() > NAME_COLUMN).then(|| column(NAME_COLUMN).as_binary()),
        })
    }

    fn extent(&self, index: usize) -> Extent {
        let [logical, physical, length] = self.extents;
        Extent {
            logical_bytes: logical.value(index),
            physical_bytes: physical.value(index),
            length_bytes: length.value(index),
            flags: ExtentFlags(self.flags.value(index)),
        }
    }

    fn file(&self, row: usize, kind: FileKind) -> Result<SnapshotFile, String> {
        let missing = self.inode.is_null(row)
            || self.links.is_null(row)
            || self.directory.is_null(row)
            || self.ranks.iter().any(|rank| rank.is_null(row))
            || self.names.is_some_and(|names| names.is_null(row));
        if missing {
            return Err("a file without inode, links, directory, rank or name".to_owned());
        }
        let [birth_ns, change_ns, modify_ns] =
            self.times.map(|times| if times.is_null(row) { NO_TIME } else { times.value(row) });
        Ok(SnapshotFile {
            inode: self.inode.value(row),
            kind,
            links: self.links.value(row),
            size_bytes: self.size_bytes.value(row),
            birth_ns,
            change_ns,
            modify_ns,
            directory: self.directory.value(row),
            readdir_rank: self.ranks[0].value(row),
            name_rank: self.ranks[1].value(row),
            first_extent: 0,
            extents: 0,
        })
    }
}

/// Appends the rows of a batch; an error names the row within it.
fn take_rows(batch: &RecordBatch, snapshot: &mut Snapshot) -> Result<(), (usize, String)> {
    let rows = Rows::of(batch).map_err(|what| (0, what))?;
    for row in 0..batch.num_rows() {
        take_row(&rows, row, snapshot).map_err(|what| (row, what))?;
    }
    Ok(())
}

fn take_row(rows: &Rows<'_>, row: usize, snapshot: &mut Snapshot) -> Result<(), String> {
    let list = rows.offsets[row] as usize..rows.offsets[row + 1] as usize;
    let kind = rows.kind.value(row);
    if kind == FREE {
        if list.len() != 1 {
            return Err(format!("a free extent in {} pieces", list.len()));
        }
        let extent = rows.extent(list.start);
        snapshot.free.push(FreeExtent {
            physical_bytes: extent.physical_bytes,
            length_bytes: extent.length_bytes,
        });
        return Ok(());
    }
    let known = FileKind::ALL.into_iter().find(|known| known.name() == kind);
    let kind = known.ok_or_else(|| format!("kind '{kind}' is none that agewell knows"))?;
    if !snapshot.free.is_empty() {
        return Err("a file behind the free extents".to_owned());
    }
    let mut file = rows.file(row, kind)?;
    let first = u32::try_from(snapshot.extents.len());
    file.first_extent = first.map_err(|_| "more extents than 32 bits number".to_owned())?;
    file.extents = list.len() as u32;
    snapshot.extents.extend(list.map(|index| rows.extent(index)));
    snapshot.files.push(file);
    if let (Some(all), Some(names)) = (&mut snapshot.names, rows.names) {
        all.push(names.value(row).to_vec());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::{read, write};
    use crate::{
        Extent, ExtentFlags, FileKind, FileSystemFacts, FreeExtent, NO_TIME, Snapshot,
        SnapshotError, SnapshotFile,
    };

    /// Gaps and lengths, which make extents that ascend.
    fn stretches() -> impl Strategy<Value = Vec<(u64, u64)>> {
        vec((1_u64..1 << 20, 1_u64..1 << 40), 0..6)
    }

    fn time() -> impl Strategy<Value = i64> {
        prop_oneof![Just(NO_TIME), any::<i64>()]
    }

    fn file() -> impl Strategy<Value = (SnapshotFile, Vec<Extent>)> {
        let extent = (0_u64..1 << 60, 0_u16..64);
        let numbers = (1_u64..1 << 50, 0_usize..4, any::<u32>(), any::<u64>(), any::<u64>());
        let ranks = (any::<u32>(), any::<u32>());
        (numbers, [time(), time(), time()], ranks, stretches(), vec(extent, 6)).prop_map(
            |((step, kind, links, size_bytes, directory), times, ranks, stretches, places)| {
                let [birth_ns, change_ns, modify_ns] = times;
                let mut end = 0;
                let extents = stretches.into_iter().zip(places).map(|((gap, length), place)| {
                    let logical_bytes = end + gap;
                    end = logical_bytes + length;
                    Extent {
                        logical_bytes,
                        physical_bytes: place.0,
                        length_bytes: length,
                        flags: ExtentFlags(place.1),
                    }
                });
                let extents: Vec<Extent> = extents.collect();
                let file = SnapshotFile {
                    // A step from the file before; summed up below.
                    inode: step,
                    kind: FileKind::ALL[kind],
                    links,
                    size_bytes,
                    birth_ns,
                    change_ns,
                    modify_ns,
                    directory,
                    readdir_rank: ranks.0,
                    name_rank: ranks.1,
                    first_extent: 0,
                    extents: extents.len() as u32,
                };
                (file, extents)
            },
        )
    }

    fn facts() -> impl Strategy<Value = FileSystemFacts> {
        (any::<u64>(), any::<bool>(), time(), "\\PC*").prop_map(
            |(number, free_map, taken_ns, text)| FileSystemFacts {
                kind: text.clone(),
                block_bytes: 4096,
                fragment_bytes: 1024,
                total_bytes: number,
                free_bytes: number / 2,
                taken_ns,
                free_map,
                vanished: number % 7,
                parameters: [(text, number.to_string())].into(),
                ..FileSystemFacts::default()
            },
        )
    }

    prop_compose! {
        fn snapshot()(
            facts in facts(),
            files in vec(file(), 0..20),
            free in stretches(),
            names in option::of(vec(vec(any::<u8>(), 0..12), 20)),
        ) -> Snapshot {
            let mut made = Snapshot { facts, ..Snapshot::default() };
            let mut inode = 0;
            for (mut file, extents) in files {
                inode += file.inode;
                file.inode = inode;
                file.first_extent = made.extents.len() as u32;
                made.extents.extend(extents);
                made.files.push(file);
            }
            let mut end = 0;
            for (gap, length_bytes) in free {
                made.free.push(FreeExtent { physical_bytes: end + gap, length_bytes });
                end += gap + length_bytes;
            }
            made.names = names.map(|names| names[..made.files.len()].to_vec());
            made
        }
    }

    fn folder() -> TempDir {
        tempfile::tempdir().expect("a temporary directory")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// What is written is read back, whatever it is; twice written it is the same bytes.
        #[test]
        fn there_and_back(snapshot in snapshot()) {
            snapshot.check().expect("the strategy keeps the invariants");
            let folder = folder();
            let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
            let bytes = write(&snapshot, &one).expect("there is room");
            prop_assert_eq!(&read(&one).expect("a snapshot"), &snapshot);
            write(&snapshot, &two).expect("there is room");
            let [one, two] = [one, two].map(|path| std::fs::read(path).expect("a file"));
            prop_assert_eq!(one.len() as u64, bytes);
            prop_assert!(one == two);
        }

        /// A mangled file gives one line that names it, or a snapshot that keeps its invariants.
        #[test]
        fn mangled(
            snapshot in snapshot(),
            blows in vec((any::<prop::sample::Index>(), 1_u8..), 1..8),
            kept in option::of(any::<prop::sample::Index>()),
        ) {
            let folder = folder();
            let path = folder.path().join("mangled");
            write(&snapshot, &path).expect("there is room");
            let mut bytes = std::fs::read(&path).expect("a file");
            for (at, blow) in blows {
                let at = at.index(bytes.len());
                bytes[at] ^= blow;
            }
            if let Some(kept) = kept {
                bytes.truncate(kept.index(bytes.len()));
            }
            std::fs::write(&path, &bytes).expect("there is room");
            match read(&path) {
                Ok(snapshot) => prop_assert_eq!(snapshot.check(), Ok(())),
                Err(SnapshotError::Input(text)) => {
                    prop_assert!(text.contains("mangled") && !text.contains('\n'), "{}", text);
                }
                Err(other) => prop_assert!(false, "{other}"),
            }
        }
    }

    fn one_file(extents: &[(u64, u64, u64)]) -> Snapshot {
        let facts = FileSystemFacts {
            block_bytes: 4096,
            fragment_bytes: 4096,
            ..FileSystemFacts::default()
        };
        let extents: Vec<Extent> = extents
            .iter()
            .map(|&(logical_bytes, physical_bytes, length_bytes)| Extent {
                logical_bytes,
                physical_bytes,
                length_bytes,
                flags: ExtentFlags::default(),
            })
            .collect();
        let file = SnapshotFile {
            inode: 12,
            kind: FileKind::Regular,
            links: 1,
            size_bytes: 1,
            birth_ns: NO_TIME,
            change_ns: 0,
            modify_ns: 0,
            directory: 2,
            readdir_rank: 0,
            name_rank: 0,
            first_extent: 0,
            extents: extents.len() as u32,
        };
        Snapshot { facts, files: vec![file], extents, ..Snapshot::default() }
    }

    /// Each broken invariant is found when a file is read, and reported by its inode or address.
    #[test]
    fn contradictions() {
        let folder = folder();
        let path = folder.path().join("odd");
        let free = |physical_bytes, length_bytes| FreeExtent { physical_bytes, length_bytes };
        let mut twice = one_file(&[]);
        twice.files.push(twice.files[0]);
        let touching = Snapshot { free: vec![free(0, 4096), free(4096, 4096)], ..one_file(&[]) };
        let mut blockless = one_file(&[]);
        blockless.facts.block_bytes = 0;
        let cases = [
            (one_file(&[(0, 0, 8192), (4096, 9000, 4096)]), "inode 12: extents overlap at 4096"),
            (one_file(&[(0, 0, 0)]), "inode 12: an extent of 0 bytes"),
            (one_file(&[(0, u64::MAX, 4096)]), "inode 12: an extent beyond every device"),
            (one_file(&[(u64::MAX - 1, 0, 4096)]), "inode 12: an extent beyond every file"),
            (twice, "inode 12 stands in the wrong place or twice"),
            (touching, "free extents touch"),
            (blockless, "a block or a fragment of 0 bytes"),
        ];
        for (snapshot, words) in cases {
            write(&snapshot, &path).expect("there is room");
            let error = read(&path).expect_err(words).to_string();
            assert!(error.contains(words) && error.contains("odd"), "{error}");
        }
    }
}
