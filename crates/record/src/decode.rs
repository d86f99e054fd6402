//! From the kernel's trace records to events of block requests.

use agewell_trace::{Event, EventKind, letters};

use crate::format::{EventFormat, Field};

/// Longest text of operation letters (`RWBS_LEN`).
const LETTERS_BYTES_MAX: usize = 32;
/// Bytes of a process name (`TASK_COMM_LEN`).
pub const NAME_BYTES: usize = 16;

/// The name of a process, filled up with zeros.
pub type ProcessName = [u8; NAME_BYTES];

/// The event in the kernel that says each kind.
pub const KERNEL_EVENTS: [(&str, EventKind); 5] = [
    ("block_bio_queue", EventKind::Queue),
    ("block_rq_issue", EventKind::Issue),
    ("block_rq_requeue", EventKind::Requeue),
    ("block_rq_complete", EventKind::Complete),
    ("block_bio_complete", EventKind::PieceComplete),
];

/// How to read the records of one event.
#[derive(Debug, Clone)]
struct Plan {
    id: u16,
    kind: EventKind,
    device: Field,
    sector: Field,
    sectors: Field,
    letters: Field,
    /// Who did it, where the record says.
    name: Option<Field>,
    /// Least bytes of a record.
    bytes: usize,
}

/// Reads records of the block events.
#[derive(Debug, Clone)]
pub struct Decoder {
    plans: Vec<Plan>,
    process: Field,
}

/// What a record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded {
    /// An event of the device with this number of the kernel, to be numbered by the trace; with the
    /// name of the process where the record has it.
    Event(Event, Option<ProcessName>),
    /// Something else: the kernel's own remarks, or a command that moves no data.
    Other,
    /// A record that is too short, or of letters that are unknown.
    Broken,
}

/// The first field of every record (`common_type`).
const TYPE: Field = Field { offset: 0, bytes: 2 };

fn number<const BYTES: usize>(record: &[u8], field: Field) -> [u8; BYTES] {
    record[field.offset..field.offset + BYTES].try_into().expect("as many bytes")
}

impl Decoder {
    /// A decoder that knows no event.
    pub(crate) fn none() -> Self {
        Self { plans: Vec::new(), process: TYPE }
    }

    /// A decoder of the events whose `format` files are given, each with its kind.
    ///
    /// # Errors
    /// If one of them lacks what a request is made of.
    pub fn new(formats: &[(EventKind, EventFormat)]) -> Result<Self, String> {
        let process = match formats.first() {
            Some((_, format)) => format.field("common_pid", Some(4))?,
            None => return Err("no event is described".to_owned()),
        };
        let mut plans = Vec::new();
        for (kind, format) in formats {
            let place = format.field("common_type", Some(2))?;
            if place != TYPE || format.field("common_pid", Some(4))? != process {
                return Err("the number of an event is not at the front of its record".to_owned());
            }
            let (device, sector) =
                (format.field("dev", Some(4))?, format.field("sector", Some(8))?);
            let sectors = format.field("nr_sector", Some(4))?;
            let letters = format.field("rwbs", None)?;
            if letters.bytes > LETTERS_BYTES_MAX {
                return Err(format!("field 'rwbs' has {} bytes", letters.bytes));
            }
            let name = format.field("comm", Some(NAME_BYTES)).ok();
            let all =
                [Some(device), Some(sector), Some(sectors), Some(letters), name, Some(process)];
            let bytes = all.iter().flatten().map(|field| field.offset + field.bytes).max();
            plans.push(Plan {
                id: format.id,
                kind: *kind,
                device,
                sector,
                sectors,
                letters,
                name,
                bytes: bytes.unwrap_or(0),
            });
        }
        Ok(Self { plans, process })
    }

    /// What `record` says, which was written at `time_ns`.
    #[inline]
    pub fn decode(&self, time_ns: u64, record: &[u8]) -> Decoded {
        if record.len() < TYPE.bytes {
            return Decoded::Broken;
        }
        let id = u16::from_ne_bytes(number(record, TYPE));
        let Some(plan) = self.plans.iter().find(|plan| plan.id == id) else {
            return Decoded::Other;
        };
        if record.len() < plan.bytes {
            return Decoded::Broken;
        }
        let text = &record[plan.letters.offset..plan.letters.offset + plan.letters.bytes];
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
        let Some(letters) = letters(&text[..end]) else { return Decoded::Broken };
        let sectors = u32::from_ne_bytes(number(record, plan.sectors));
        if letters.operation.is_none() || (sectors == 0 && !letters.flush) {
            return Decoded::Other;
        }
        let name = plan.name.map(|field| number(record, field));
        let event = Event {
            kind: plan.kind,
            time_ns,
            device: u32::from_ne_bytes(number(record, plan.device)),
            sector: u64::from_ne_bytes(number(record, plan.sector)),
            sectors: sectors.into(),
            letters,
            client: u32::from_ne_bytes(number(record, self.process)),
        };
        Decoded::Event(event, name)
    }
}
