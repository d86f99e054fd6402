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

use super::{
    Extent, ExtentFlags, FileKind, FileSystemFacts, FreeExtent, NO_TIME, Snapshot, SnapshotFile,
};
use crate::AgeError;
use crate::table_file::{TableKind, TableReader, TableWriter};

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
pub fn write(snapshot: &Snapshot, path: &Path) -> Result<u64, AgeError> {
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
pub fn read(path: &Path) -> Result<Snapshot, AgeError> {
    let input = |what: String| AgeError::Input(format!("{}: {what}", path.display()));
    let mut reader = TableReader::open(path, TABLE, &schema(false))?;
    let metadata: Metadata = serde_json::from_str(&reader.metadata).map_err(|why| {
        input(format!("damaged description of the file system ({why}); take the snapshot anew"))
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
            input(format!("row {}: {what}; take the snapshot anew", first + row as u64 + 1))
        })?;
    }
    snapshot
        .check()
        .map_err(|what| input(format!("makes no sense: {what}; take the snapshot anew")))?;
    Ok(snapshot)
}

/// The columns of a batch as arrays; rows that need a value where there is none are told apart.
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
