//! Checksums of whole Parquet files, so that a flipped bit is an error and never other data.
//!
//! Parquet's own checksums cover the data of pages, but neither their headers nor the footer, and
//! the `parquet` crate writes none. So a block of our own stands between the last page or index
//! and the footer, where every reader of Parquet looks past it: nothing points there. All numbers
//! are little endian:
//!
//! | bytes | what |
//! |---|---|
//! | 4 each | CRC-32 (IEEE 802.3) of each [`BLOCK_BYTES`] of what stands before, the last shorter |
//! | 8 | bytes that stand before |
//! | 4 | bytes of a block |
//! | 4 | CRC-32 of the footer, its length and the magic number at the end |
//! | 4 | CRC-32 of the fields above |
//! | 8 | [`MAGIC`] |
//!
//! A CRC-32 finds every burst of up to 32 bits within a block, so every single flipped bit. The key
//! `agewell.checksums` in the footer of a file that agewell made says that the block must be there, so
//! that a damaged one does not pass for a file of another program; other files are read unchecked,
//! also those that another program made of ours, with the keys that it found. Reading checks
//! the footer at once and each block when it is first touched. Cost: about 0.1 ns a byte of the file
//! for the checksum and for reading a block from the page cache once more.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowSchemaConverter, encode_arrow_schema};
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::file::properties::WriterPropertiesBuilder;
use parquet::file::reader::{ChunkReader, Length};

use crate::guarded::{guarded, one_line};

/// The key whose presence says that the file has checksums.
pub const KEY_CHECKSUMS: &str = "agewell.checksums";
/// Its value: the version of the block that holds them.
pub const CHECKSUMS_VERSION: &str = "1";
/// What the footer of a table of ours says of its writer.
const CREATED_BY: &str = concat!("agewell ", env!("CARGO_PKG_VERSION"));
/// The version of the format that footers name, as the library's own writer has it.
const PARQUET_VERSION: i32 = 1;
/// Bytes that one checksum covers, chosen by us: small beside a row group, and large enough that
/// the checksums of a file of 100 GB take 1.6 MB.
const BLOCK_BYTES: usize = 1 << 18;
/// What ends the block of checksums.
const MAGIC: [u8; 8] = *b"agewcrc1";
/// Bytes of the block behind its table.
const TRAILER_BYTES: u64 = 28;
/// Bytes behind the footer: its length and `PAR1`.
const END_BYTES: u64 = 8;
/// Bytes that a reader of page headers takes at a time, chosen by us: a few headers.
const HEADER_BYTES: u64 = 1 << 10;

/// Writes a table with checksums.
pub struct ParquetWriter<W: Write + Send> {
    writer: ArrowWriter<Summing<W>>,
    schema: SchemaRef,
}

impl<W: Write + Send> ParquetWriter<W> {
    /// Begins a table of `schema` in `output`.
    ///
    /// # Errors
    /// If `output` cannot be written, or Parquet has no form for the schema.
    pub fn new(
        output: W,
        schema: SchemaRef,
        properties: WriterPropertiesBuilder,
    ) -> Result<Self, ParquetError> {
        let properties = properties.set_created_by(CREATED_BY.to_owned()).build();
        let summing = Summing::new(output);
        let writer = ArrowWriter::try_new(summing, schema.clone(), Some(properties))?;
        Ok(Self { writer, schema })
    }

    /// Appends `rows`.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(&mut self, rows: &RecordBatch) -> Result<(), ParquetError> {
        self.writer.write(rows)
    }

    /// Adds a key to the footer.
    pub fn append_key(&mut self, key: KeyValue) {
        self.writer.append_key_value_metadata(key);
    }

    /// Bytes of the row groups written so far and, about, of the one under way.
    pub(crate) fn bytes(&self) -> u64 {
        (self.writer.bytes_written() + self.writer.in_progress_size()) as u64
    }

    /// Ends the row group, and hands back what would make of what is written so far a whole file with
    /// `keys` in its footer: the checksums and the footer. Nothing of that is written.
    pub(crate) fn closing(&mut self, keys: Vec<KeyValue>) -> Result<Vec<u8>, ParquetError> {
        self.writer.flush()?;
        // The writer holds bytes back; the sums are of what it has handed on.
        self.writer.sync()?;
        let groups = self.writer.flushed_row_groups().to_vec();
        let rows = groups.iter().map(RowGroupMetaData::num_rows).sum();
        let version = CHECKSUMS_VERSION.to_owned();
        let keys = keys.into_iter().chain([
            KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), encode_arrow_schema(&self.schema)),
            KeyValue::new(KEY_CHECKSUMS.to_owned(), version),
        ]);
        let described = FileMetaData::new(
            PARQUET_VERSION,
            rows,
            Some(CREATED_BY.to_owned()),
            Some(keys.collect()),
            Arc::new(ArrowSchemaConverter::new().convert(&self.schema)?),
            None,
        );
        let mut footer = Vec::new();
        let whole = ParquetMetaData::new(described, groups);
        ParquetMetaDataWriter::new(&mut footer, &whole).finish()?;
        let mut closing = self.writer.inner().sums.clone().block(&footer);
        closing.append(&mut footer);
        Ok(closing)
    }

    /// Completes the table; hands back the output.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> Result<W, ParquetError> {
        self.append_key(KeyValue::new(KEY_CHECKSUMS.to_owned(), CHECKSUMS_VERSION.to_owned()));
        self.writer.flush()?;
        self.writer.inner_mut().held = Some(Vec::new());
        Ok(self.writer.into_inner()?.seal()?)
    }
}

/// Sums what is written, and holds back the end of it.
struct Summing<W> {
    output: W,
    sums: Sums,
    /// What comes behind the last row group, once that is written: it ends in the footer.
    held: Option<Vec<u8>>,
}

impl<W: Write> Summing<W> {
    fn new(output: W) -> Self {
        Self { output, sums: Sums::default(), held: None }
    }

    /// Writes what was held back, with the checksums before the footer.
    fn seal(mut self) -> io::Result<W> {
        let held = self.held.take().unwrap_or_default();
        let footer = footer_start(&held, held.len() as u64)
            .ok_or_else(|| io::Error::other("the Parquet library wrote no footer"))?;
        let (before, footer) = held.split_at(footer as usize);
        self.sums.add(before);
        self.output.write_all(before)?;
        self.output.write_all(&self.sums.block(footer))?;
        self.output.write_all(footer)?;
        self.output.flush()?;
        Ok(self.output)
    }
}

impl<W: Write> Write for Summing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(held) = &mut self.held {
            held.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        let written = self.output.write(bytes)?;
        self.sums.add(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

/// The checksums of the blocks of what was written so far.
#[derive(Default, Clone)]
struct Sums {
    whole: Vec<u32>,
    /// The block that is not full yet, and its bytes.
    open: crc32fast::Hasher,
    open_bytes: usize,
}

impl Sums {
    fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK_BYTES - self.open_bytes));
            self.open.update(now);
            self.open_bytes += now.len();
            bytes = later;
            if self.open_bytes == BLOCK_BYTES {
                self.whole.push(std::mem::take(&mut self.open).finalize());
                self.open_bytes = 0;
            }
        }
    }

    /// The block of checksums for a file that ends in `footer`.
    fn block(mut self, footer: &[u8]) -> Vec<u8> {
        let covered = (self.whole.len() * BLOCK_BYTES + self.open_bytes) as u64;
        if self.open_bytes > 0 {
            self.whole.push(self.open.finalize());
        }
        let mut block: Vec<u8> = self.whole.iter().flat_map(|sum| sum.to_le_bytes()).collect();
        block.extend(covered.to_le_bytes());
        block.extend((BLOCK_BYTES as u32).to_le_bytes());
        block.extend(crc32fast::hash(footer).to_le_bytes());
        block.extend(crc32fast::hash(&block).to_le_bytes());
        block.extend(MAGIC);
        block
    }
}

/// How many bytes the checksums and the footer of [`ParquetWriter::closing`] speak of, if they are as
/// they were written.
pub(crate) fn closing_covers(closing: &[u8]) -> Option<u64> {
    let start = footer_start(closing, closing.len() as u64)? as usize;
    let (block, footer) = closing.split_at_checked(start)?;
    let trailer = block.get(block.len().checked_sub(TRAILER_BYTES as usize)?..)?;
    let four = |at: usize| trailer.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
    let sound = trailer.ends_with(&MAGIC) && four(12)? == crc32fast::hash(footer);
    sound.then_some(u64::from(four(0)?) | u64::from(four(4)?) << 32)
}

/// Where the footer begins in a file of `length` bytes that ends in `end`, if it has one.
fn footer_start(end: &[u8], length: u64) -> Option<u64> {
    let (rest, magic) = end.split_last_chunk::<4>()?;
    let (_, size) = rest.split_last_chunk::<4>()?;
    let start = length.checked_sub(END_BYTES + u64::from(u32::from_le_bytes(*size)))?;
    (magic == b"PAR1").then_some(start)
}

/// Puts checksums into the finished Parquet file `input`, whose footer has the key
/// [`KEY_CHECKSUMS`]; for tables that another library wrote.
///
/// # Errors
/// If `input` is no Parquet file.
pub fn with_checksums(input: &[u8]) -> Result<Vec<u8>, String> {
    let start = footer_start(input, input.len() as u64).ok_or("no Parquet footer at its end")?;
    let (before, footer) = input.split_at(start as usize);
    let mut sums = Sums::default();
    sums.add(before);
    Ok([before, &sums.block(footer), footer].concat())
}

/// A Parquet file whose bytes are checked as they are read, if it has checksums.
#[derive(Debug)]
pub struct CheckedFile {
    file: Arc<File>,
    length: u64,
    checks: Option<Arc<Checks>>,
}

#[derive(Debug)]
struct Checks {
    covered: u64,
    sums: Vec<u32>,
    /// Whether each block was found to be as it was written.
    sound: Vec<AtomicBool>,
}

impl CheckedFile {
    /// Takes `file`; checks its footer and its checksums, if it has them.
    fn new(file: File) -> Result<Self, String> {
        let length = file.metadata().map_err(|why| why.to_string())?.len();
        let mut checked = Self { file: Arc::new(file), length, checks: None };
        checked.checks = checked.read_checks()?.map(Arc::new);
        Ok(checked)
    }

    fn read(&self, start: u64, bytes: usize) -> Result<Vec<u8>, String> {
        let mut read = vec![0; bytes];
        self.file.read_exact_at(&mut read, start).map_err(|why| why.to_string())?;
        Ok(read)
    }

    fn read_checks(&self) -> Result<Option<Checks>, String> {
        if self.length < END_BYTES {
            return Ok(None);
        }
        let end = self.read(self.length - END_BYTES, END_BYTES as usize)?;
        let Some(footer_start) = footer_start(&end, self.length) else { return Ok(None) };
        let Some(trailer_start) = footer_start.checked_sub(TRAILER_BYTES) else { return Ok(None) };
        let trailer = self.read(trailer_start, TRAILER_BYTES as usize)?;
        if !trailer.ends_with(&MAGIC) {
            return Ok(None);
        }
        let four = |at: usize| {
            u32::from_le_bytes([trailer[at], trailer[at + 1], trailer[at + 2], trailer[at + 3]])
        };
        let covered = u64::from(four(0)) | u64::from(four(4)) << 32;
        let broken = || "its checksums are damaged".to_owned();
        let blocks = covered.div_ceil(BLOCK_BYTES as u64);
        let fits = blocks.checked_mul(4).and_then(|table| table.checked_add(covered))
            == Some(trailer_start);
        if !fits || four(8) as usize != BLOCK_BYTES {
            return Err(broken());
        }
        let table = self.read(covered, (trailer_start - covered) as usize)?;
        let mut whole = crc32fast::Hasher::new();
        whole.update(&table);
        whole.update(&trailer[..16]);
        if whole.finalize() != four(16) {
            return Err(broken());
        }
        let footer = self.read(footer_start, (self.length - footer_start) as usize)?;
        if crc32fast::hash(&footer) != four(12) {
            return Err("its footer is not as it was written".to_owned());
        }
        let sums =
            table.chunks_exact(4).map(|sum| u32::from_le_bytes([sum[0], sum[1], sum[2], sum[3]]));
        let sums: Vec<u32> = sums.collect();
        let sound = sums.iter().map(|_| AtomicBool::new(false)).collect();
        Ok(Some(Checks { covered, sums, sound }))
    }

    /// Checks the blocks that hold `length` bytes from `start`.
    fn check(&self, start: u64, length: usize) -> Result<(), ParquetError> {
        let Some(checks) = &self.checks else { return Ok(()) };
        let end = (start + length as u64).min(checks.covered);
        if start >= end {
            return Ok(());
        }
        let block_bytes = BLOCK_BYTES as u64;
        for block in start / block_bytes..=(end - 1) / block_bytes {
            let sound = &checks.sound[block as usize];
            if sound.load(Ordering::Relaxed) {
                continue;
            }
            let first = block * block_bytes;
            let bytes = (checks.covered - first).min(block_bytes) as usize;
            let read = self.read(first, bytes).map_err(ParquetError::General)?;
            if crc32fast::hash(&read) != checks.sums[block as usize] {
                return Err(ParquetError::General(format!(
                    "bytes {first} to {} are not as they were written",
                    first + bytes as u64
                )));
            }
            sound.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn share(&self) -> Self {
        Self { file: self.file.clone(), length: self.length, checks: self.checks.clone() }
    }
}

impl Length for CheckedFile {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for CheckedFile {
    type T = CheckedRead;

    fn get_read(&self, start: u64) -> Result<CheckedRead, ParquetError> {
        Ok(CheckedRead { file: self.share(), next: start, bytes: Bytes::new() })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let fits = start.checked_add(length as u64).is_some_and(|end| end <= self.length);
        if !fits {
            return Err(ParquetError::EOF(format!(
                "{length} bytes from {start} are beyond the end of the file"
            )));
        }
        self.check(start, length)?;
        Ok(self.read(start, length).map_err(ParquetError::General)?.into())
    }
}

/// Reads a [`CheckedFile`] from some place on.
pub struct CheckedRead {
    file: CheckedFile,
    next: u64,
    bytes: Bytes,
}

impl Read for CheckedRead {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.bytes.is_empty() {
            let left = self.file.length.saturating_sub(self.next).min(HEADER_BYTES);
            self.bytes = self.file.get_bytes(self.next, left as usize).map_err(io::Error::other)?;
            self.next += left;
        }
        let bytes = self.bytes.split_to(self.bytes.len().min(into.len()));
        into[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }
}

/// Opens a Parquet file for reading, checked where it has checksums.
///
/// # Errors
/// If it is damaged or no Parquet file: what is wrong with it, in one line.
pub fn open_parquet(file: File) -> Result<ParquetRecordBatchReaderBuilder<CheckedFile>, String> {
    let checked = CheckedFile::new(file)?;
    let has_checks = checked.checks.is_some();
    let builder =
        guarded(|| ParquetRecordBatchReaderBuilder::try_new(checked))?.map_err(one_line)?;
    let footer = builder.metadata().file_metadata();
    let is_ours = footer.created_by().is_some_and(|name| name.starts_with("agewell "));
    let keys = footer.key_value_metadata();
    let must_have = is_ours && keys.into_iter().flatten().any(|pair| pair.key == KEY_CHECKSUMS);
    if must_have && !has_checks {
        return Err("its checksums are damaged".to_owned());
    }
    Ok(builder)
}

/// Checks every byte of the Parquet file `path`, if it has checksums, for readers that know nothing
/// of them; whether it has.
///
/// # Errors
/// If it cannot be opened, is damaged or no Parquet file: what is wrong with it, in one line.
pub fn check_parquet(path: &Path) -> Result<bool, String> {
    let file = File::open(path).map_err(|why| why.to_string())?;
    let builder = open_parquet(file.try_clone().map_err(|why| why.to_string())?)?;
    drop(builder);
    let checked = CheckedFile::new(file)?;
    let Some(checks) = checked.checks.clone() else { return Ok(false) };
    for block in 0..checks.sums.len() {
        checked.check((block * BLOCK_BYTES) as u64, 1).map_err(one_line)?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, UInt64Array};
    use parquet::file::properties::WriterProperties;

    use super::*;

    fn numbers(count: u64) -> RecordBatch {
        let mixed = (0..count).map(|n| Some(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let column: ArrayRef = Arc::new(mixed.collect::<UInt64Array>());
        RecordBatch::try_from_iter([("n", column)]).expect("one column")
    }

    fn written(rows: &RecordBatch) -> Vec<u8> {
        let properties = WriterProperties::builder();
        let mut writer =
            ParquetWriter::new(Vec::new(), rows.schema(), properties).expect("a vector takes all");
        writer.write(rows).expect("a vector takes all");
        writer.finish().expect("a vector takes all")
    }

    fn read(bytes: &[u8]) -> Result<Vec<RecordBatch>, String> {
        let mut file = tempfile::tempfile().expect("a place for files");
        file.write_all(bytes).expect("room");
        let builder = open_parquet(file)?;
        guarded(|| {
            builder.build().map_err(one_line)?.map(|batch| batch.map_err(one_line)).collect()
        })?
    }

    /// A file of several blocks: what is read is what was written, and a flip in each block, in the
    /// checksums and in the footer is found.
    #[test]
    fn a_flip_in_a_file_of_several_blocks_is_found() {
        let rows = numbers(150_000);
        let bytes = written(&rows);
        assert!(bytes.len() > 4 * BLOCK_BYTES, "{}", bytes.len());
        let got = read(&bytes).expect("sound");
        assert_eq!(got.iter().map(RecordBatch::num_rows).sum::<usize>(), 150_000);
        let mut at = 7;
        while at < bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            assert!(read(&flipped).is_err(), "byte {at} of {}", bytes.len());
            at += BLOCK_BYTES / 3;
        }
    }

    #[test]
    fn checksums_put_in_afterwards_are_those_of_the_writer() {
        let rows = numbers(1000);
        let key = KeyValue::new(KEY_CHECKSUMS.to_owned(), CHECKSUMS_VERSION.to_owned());
        let properties = WriterProperties::builder().set_created_by(CREATED_BY.to_owned()).build();
        let mut plain =
            ArrowWriter::try_new(Vec::new(), rows.schema(), Some(properties)).expect("a vector");
        plain.write(&rows).expect("a vector takes all");
        plain.append_key_value_metadata(key);
        let plain = plain.into_inner().expect("a vector takes all");
        assert_eq!(with_checksums(&plain).expect("Parquet"), written(&rows));
        assert!(read(&plain).expect_err("they are missing").contains("checksums"));
        assert!(with_checksums(b"no Parquet").is_err());
    }

    /// What another program wrote has no checksums, and is read, whatever keys it took over.
    #[test]
    fn a_file_without_checksums_is_read() {
        let rows = numbers(1000);
        let mut plain = ArrowWriter::try_new(Vec::new(), rows.schema(), None).expect("a vector");
        plain.write(&rows).expect("a vector takes all");
        let key = KeyValue::new(KEY_CHECKSUMS.to_owned(), CHECKSUMS_VERSION.to_owned());
        plain.append_key_value_metadata(key);
        assert_eq!(read(&plain.into_inner().expect("a vector")).expect("sound"), [rows]);
    }
}
