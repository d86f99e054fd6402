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

#[cfg(test)]
mod tests {
    use agewell_core::Operation;

    use super::*;

    /// `block_rq_issue` of Linux 6.18, as far as it is used.
    const ISSUE: &str = "ID: 2104\n\
        field:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        field:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
        field:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
        field:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
        field:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n\
        field:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\
        field:char comm[16];\toffset:44;\tsize:16;\tsigned:0;\n";

    fn record(id: u16, sectors: u32, letters: &[u8]) -> Vec<u8> {
        let mut record = vec![0; 64];
        record[..2].copy_from_slice(&id.to_ne_bytes());
        record[4..8].copy_from_slice(&4711_u32.to_ne_bytes());
        record[8..12].copy_from_slice(&(8_u32 << 20 | 1).to_ne_bytes());
        record[16..24].copy_from_slice(&123_456_789_012_u64.to_ne_bytes());
        record[24..28].copy_from_slice(&sectors.to_ne_bytes());
        record[34..34 + letters.len()].copy_from_slice(letters);
        record[44..48].copy_from_slice(b"tar\0");
        record
    }

    #[test]
    fn records_are_read_where_the_kernel_says_their_fields_are() {
        let format = EventFormat::parse(ISSUE).unwrap();
        let decoder = Decoder::new(&[(EventKind::Issue, format)]).unwrap();
        let read = |record: &[u8]| decoder.decode(77, record);
        let Decoded::Event(event, name) = read(&record(2104, 16, b"RA")) else {
            panic!("an event")
        };
        assert_eq!((event.kind, event.time_ns, event.client), (EventKind::Issue, 77, 4711));
        assert_eq!((event.device, event.sector, event.sectors), (8 << 20 | 1, 123_456_789_012, 16));
        assert_eq!(event.letters.operation, Some(Operation::Read));
        assert_eq!(name.expect("a name")[..4], *b"tar\0");
        assert!(matches!(read(&record(2104, 0, b"FF")), Decoded::Event(..)), "a flush");
        assert_eq!(read(&record(2104, 0, b"R")), Decoded::Other, "no data and no flush");
        assert_eq!(read(&record(2104, 8, b"N")), Decoded::Other, "a command");
        assert_eq!(read(&record(5, 8, b"R")), Decoded::Other, "another event");
        assert_eq!(read(&record(2104, 8, b"?")), Decoded::Broken);
        assert_eq!(read(&record(2104, 8, b"R")[..59]), Decoded::Broken, "cut");
        assert_eq!(read(&[8]), Decoded::Broken);
    }

    #[test]
    fn descriptions_that_lack_a_field_are_refused() {
        for (name, other) in [("sector;", "place;"), ("size:8", "size:4"), ("rwbs[10]", "how[10]")]
        {
            let format = EventFormat::parse(&ISSUE.replace(name, other)).unwrap();
            Decoder::new(&[(EventKind::Issue, format)]).unwrap_err();
        }
        Decoder::new(&[]).unwrap_err();
    }
}
