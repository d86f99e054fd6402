//! Blocks that several files have, or one file several times: how many have them.
//!
//! Only what two or more have is counted; an extent says whether its blocks may be counted.

use agewell_store::device::Disk;

use crate::core::Core;
use crate::format::{SystemKind, offset_of, system_key};
use crate::node::u32_at;
use crate::{FsError, tree};

/// Blocks that follow one another, and how many have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) number: u32,
    pub(crate) count: u32,
    pub(crate) sharers: u32,
}

impl Piece {
    fn end(&self) -> u32 {
        self.number + self.count
    }

    pub(crate) fn decode(number: u32, value: &[u8]) -> Option<Self> {
        if value.len() != 8 {
            return None;
        }
        let piece = Self { number, count: u32_at(value, 0), sharers: u32_at(value, 4) };
        let is_sound =
            piece.count > 0 && piece.sharers >= 2 && number.checked_add(piece.count).is_some();
        is_sound.then_some(piece)
    }
}

fn damaged(number: u32) -> FsError {
    FsError::Structure { number, what: "how many have it is not known" }
}

/// How many have each of the `count` blocks from `number` on; those that are not counted one.
pub(crate) fn pieces<D: Disk>(
    core: &mut Core<D>,
    number: u32,
    count: u32,
) -> Result<Vec<Piece>, FsError> {
    let end = number + count;
    let kind = SystemKind::Shared;
    let before = tree::last(
        &mut core.blocks,
        system_key(kind, 0),
        system_key(kind, u64::from(number)),
        |key, value| Piece::decode(offset_of(key) as u32, value),
    )?;
    let before = before.map(|piece| piece.ok_or_else(|| damaged(number))).transpose()?;
    let mut counted: Vec<Option<Piece>> =
        before.filter(|piece| piece.end() > number).map(Some).into_iter().collect();
    tree::each(
        &mut core.blocks,
        system_key(kind, u64::from(number) + 1),
        system_key(kind, u64::from(end)),
        |key, value| {
            if offset_of(key) < u64::from(end) {
                counted.push(Piece::decode(offset_of(key) as u32, value));
            }
            true
        },
    )?;
    let mut found = Vec::new();
    let mut at = number;
    for piece in counted {
        let piece = piece.ok_or_else(|| damaged(number))?;
        if piece.number > at {
            found.push(Piece { number: at, count: piece.number - at, sharers: 1 });
        }
        let from = piece.number.max(at);
        let to = piece.end().min(end);
        if from >= to {
            return Err(damaged(number));
        }
        found.push(Piece { number: from, count: to - from, sharers: piece.sharers });
        at = to;
    }
    if at < end {
        found.push(Piece { number: at, count: end - at, sharers: 1 });
    }
    Ok(found)
}

/// Takes the count of the `count` blocks from `number` on out.
fn clear<D: Disk>(core: &mut Core<D>, number: u32, count: u32) -> Result<(), FsError> {
    let (end, kind) = (number + count, SystemKind::Shared);
    loop {
        let found = tree::last(
            &mut core.blocks,
            system_key(kind, 0),
            system_key(kind, u64::from(end) - 1),
            |key, value| Piece::decode(offset_of(key) as u32, value),
        )?;
        let Some(piece) = found else { return Ok(()) };
        let piece = piece.ok_or_else(|| damaged(number))?;
        if piece.end() <= number {
            return Ok(());
        }
        tree::remove(&mut core.blocks, system_key(kind, u64::from(piece.number)))?;
        if piece.end() > end {
            put(core, Piece { number: end, count: piece.end() - end, ..piece })?;
        }
        if piece.number < number {
            return put(core, Piece { count: number - piece.number, ..piece });
        }
    }
}

fn put<D: Disk>(core: &mut Core<D>, piece: Piece) -> Result<(), FsError> {
    let mut value = [0; 8];
    value[..4].copy_from_slice(&piece.count.to_le_bytes());
    value[4..].copy_from_slice(&piece.sharers.to_le_bytes());
    tree::set(&mut core.blocks, system_key(SystemKind::Shared, u64::from(piece.number)), &value)
}

/// Puts pieces that follow one another, those together that as many have.
fn put_all<D: Disk>(core: &mut Core<D>, pieces: &[Piece]) -> Result<(), FsError> {
    let mut waiting: Option<Piece> = None;
    for piece in pieces.iter().filter(|piece| piece.sharers >= 2) {
        match &mut waiting {
            Some(last) if last.end() == piece.number && last.sharers == piece.sharers => {
                last.count += piece.count;
            }
            last => {
                if let Some(last) = last.replace(*piece) {
                    put(core, last)?;
                }
            }
        }
    }
    waiting.map_or(Ok(()), |last| put(core, last))
}

/// One more has each of the `count` blocks from `number` on.
pub(crate) fn share<D: Disk>(core: &mut Core<D>, number: u32, count: u32) -> Result<(), FsError> {
    let mut pieces = pieces(core, number, count)?;
    for piece in &mut pieces {
        piece.sharers = piece.sharers.checked_add(1).ok_or(FsError::NO_ROOM)?;
    }
    clear(core, number, count)?;
    put_all(core, &pieces)
}

/// One fewer has each of the `count` blocks from `number` on; those that none has are free.
pub(crate) fn release<D: Disk>(core: &mut Core<D>, number: u32, count: u32) -> Result<(), FsError> {
    let mut pieces = pieces(core, number, count)?;
    clear(core, number, count)?;
    for piece in &mut pieces {
        piece.sharers -= 1;
        if piece.sharers == 0 {
            for number in piece.number..piece.end() {
                if !core.blocks.is_used(number) {
                    return Err(FsError::Structure { number, what: "a file has it that is free" });
                }
                core.blocks.give(number);
            }
        }
    }
    put_all(core, &pieces)
}

/// From now on `sharers` have each of the blocks.
pub(crate) fn count_anew<D: Disk>(
    core: &mut Core<D>,
    (number, count): (u32, u32),
    sharers: u32,
) -> Result<(), FsError> {
    clear(core, number, count)?;
    if sharers < 2 { Ok(()) } else { put(core, Piece { number, count, sharers }) }
}
