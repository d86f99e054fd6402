//! The history as a file: words of 64 bits, lowest byte first, behind a line that says what it is and
//! before a checksum. It is written whole, under another name first.

use std::path::Path;

use agewell_snapshot::SnapshotError;

/// What a file of this version begins with.
const HEADER: &[u8] = b"agewell watch 1\n";

/// Words to be written.
#[derive(Debug, Default)]
pub(crate) struct Words(Vec<u8>);

impl Words {
    pub(crate) fn push(&mut self, word: u64) {
        self.0.extend(word.to_le_bytes());
    }

    pub(crate) fn extend(&mut self, words: impl IntoIterator<Item = u64>) {
        words.into_iter().for_each(|word| self.push(word));
    }

    /// Writes them to `path`; what stands there stays unless all of it does.
    pub(crate) fn write(self, path: &Path) -> Result<(), SnapshotError> {
        let mut bytes = HEADER.to_vec();
        let sum = checksum(&self.0);
        bytes.extend(self.0);
        bytes.extend(sum.to_le_bytes());
        agewell_trace::write_whole(path, &bytes).map_err(SnapshotError::io("write", path))
    }

    #[cfg(test)]
    pub(crate) fn all(&self) -> Vec<u64> {
        Reader(&self.0).collect()
    }
}

/// Words that were read.
#[derive(Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl Iterator for Reader<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*word))
    }
}

/// What [`Words::write`] wrote to `path`, as `parse` reads it; `None` if nothing stands there.
pub(crate) fn read<T>(
    path: &Path,
    parse: impl FnOnce(&mut Reader<'_>) -> Option<T>,
) -> Result<Option<T>, SnapshotError> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(why) => return Err(SnapshotError::io("read", path)(why)),
    };
    let unlike = || {
        SnapshotError::Input(format!(
            "{}: is no history of agewell reorganise --watch, or a damaged one; remove it to \
             start afresh, or give another with --state",
            path.display()
        ))
    };
    let words = bytes.strip_prefix(HEADER).and_then(<[u8]>::split_last_chunk);
    let (words, sum) = words.ok_or_else(unlike)?;
    if checksum(words) != u64::from_le_bytes(*sum) {
        return Err(unlike());
    }
    let mut reader = Reader(words);
    let parsed = parse(&mut reader).filter(|_| reader.0.is_empty());
    parsed.map(Some).ok_or_else(unlike)
}

/// FNV-1a of 64 bits.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
