//! Pages as the kernel writes them, made from a list of what happened, against that list.

use agewell_record::format::Field;
use agewell_record::page::{Missed, PageLayout, read_page};
use proptest::collection::vec;
use proptest::prelude::*;

const LAYOUT: PageLayout =
    PageLayout { commit: Field { offset: 8, bytes: 8 }, data: Field { offset: 16, bytes: 4080 } };

/// What the kernel puts into a page.
#[derive(Debug, Clone)]
enum Entry {
    /// A record some ns after the entry before, of so many bytes.
    Record { after_ns: u32, bytes: usize },
    /// The same in the form for records of more than 112 bytes.
    BigRecord { after_ns: u32, bytes: usize },
    /// A record that was written and taken back.
    Discarded { after_ns: u32, bytes: usize },
    /// A time that does not fit 27 bits.
    Extend { after_ns: u64 },
    /// An absolute time, that much later.
    Stamp { after_ns: u64 },
}

/// The page under way, and what it must say: the slow model.
struct Writer {
    data: Vec<u8>,
    time_ns: u64,
    records: Vec<(u64, Vec<u8>)>,
    next: u8,
}

impl Writer {
    fn word(&mut self, kind: u32, low: u32) {
        // Bit fields begin at the low end on little-endian machines, at the high end on others.
        let word = if cfg!(target_endian = "little") { low << 5 | kind } else { kind << 27 | low };
        self.data.extend(word.to_ne_bytes());
    }

    fn body(&mut self, bytes: usize) -> Vec<u8> {
        let body: Vec<u8> = (0..bytes)
            .map(|_| {
                self.next = self.next.wrapping_mul(167).wrapping_add(13);
                self.next
            })
            .collect();
        self.data.extend(&body);
        body
    }

    fn room(&self) -> usize {
        LAYOUT.data.bytes - self.data.len()
    }

    /// Writes `entry`; `false` if the page is full.
    fn write(&mut self, entry: &Entry) -> bool {
        match *entry {
            Entry::Record { after_ns, bytes } => {
                if self.room() < 4 + bytes {
                    return false;
                }
                self.word((bytes / 4) as u32, after_ns);
                self.time_ns += u64::from(after_ns);
                let body = self.body(bytes);
                self.records.push((self.time_ns, body));
            }
            Entry::BigRecord { after_ns, bytes } => {
                if self.room() < 8 + bytes {
                    return false;
                }
                self.word(0, after_ns);
                self.data.extend((bytes as u32 + 4).to_ne_bytes());
                self.time_ns += u64::from(after_ns);
                let body = self.body(bytes);
                self.records.push((self.time_ns, body));
            }
            Entry::Discarded { after_ns, bytes } => {
                if self.room() < 8 + bytes {
                    return false;
                }
                self.word(29, after_ns.max(1));
                self.data.extend((bytes as u32 + 4).to_ne_bytes());
                self.time_ns += u64::from(after_ns.max(1));
                self.body(bytes);
            }
            Entry::Extend { after_ns } => {
                if self.room() < 8 {
                    return false;
                }
                self.time_ns += after_ns;
                self.word(30, (after_ns & 0x7ff_ffff) as u32);
                self.data.extend(((after_ns >> 27) as u32).to_ne_bytes());
            }
            Entry::Stamp { after_ns } => {
                if self.room() < 8 {
                    return false;
                }
                self.time_ns += after_ns;
                self.word(31, (self.time_ns & 0x7ff_ffff) as u32);
                self.data.extend(((self.time_ns >> 27) as u32).to_ne_bytes());
            }
        }
        true
    }

    fn page(&self, first_ns: u64, missed: Missed, ends_early: bool) -> Vec<u8> {
        let mut data = self.data.clone();
        if ends_early && data.len() + 4 <= LAYOUT.data.bytes {
            // Padding without a time: the rest of the page is empty, whatever stands there.
            let kind: u32 = if cfg!(target_endian = "little") { 29 } else { 29 << 27 };
            data.extend(kind.to_ne_bytes());
            let rest = (LAYOUT.data.bytes - data.len()).min(20);
            data.extend(vec![0xa5; rest]);
        }
        let flags: u64 = match missed {
            Missed::None => 0,
            Missed::Unknown => 1 << 31,
            Missed::Count(_) => 3 << 30,
        };
        let mut page = first_ns.to_ne_bytes().to_vec();
        page.extend((data.len() as u64 | flags).to_ne_bytes());
        page.extend(data);
        if let Missed::Count(count) = missed {
            page.extend(count.to_ne_bytes());
        }
        page.resize(LAYOUT.page_bytes().max(page.len()), 0);
        page
    }
}

fn entry() -> impl Strategy<Value = Entry> {
    let after = 0_u32..1 << 27;
    prop_oneof![
        8 => (after.clone(), 1_usize..=28)
            .prop_map(|(after_ns, words)| Entry::Record { after_ns, bytes: 4 * words }),
        1 => (after.clone(), 29_usize..300)
            .prop_map(|(after_ns, words)| Entry::BigRecord { after_ns, bytes: 4 * words }),
        1 => (after, 0_usize..30)
            .prop_map(|(after_ns, words)| Entry::Discarded { after_ns, bytes: 4 * words }),
        1 => (1_u64 << 27..1 << 45).prop_map(|after_ns| Entry::Extend { after_ns }),
        1 => (0_u64..1 << 50).prop_map(|after_ns| Entry::Stamp { after_ns }),
    ]
}

fn missed() -> impl Strategy<Value = Missed> {
    prop_oneof![
        2 => Just(Missed::None),
        1 => Just(Missed::Unknown),
        1 => (1_u64..1 << 40).prop_map(Missed::Count),
    ]
}

proptest! {
    /// What was written is what is read: every record, its time, its bytes; and what was lost.
    #[test]
    fn a_page_says_what_was_written(
        entries in vec(entry(), 0..120),
        // Clocks with and without the bits that an absolute stamp lacks.
        first_ns in prop_oneof![0_u64..1 << 58, (1_u64 << 59..1 << 62)],
        missed in missed(),
        ends_early in any::<bool>(),
    ) {
        let mut writer = Writer { data: Vec::new(), time_ns: first_ns, records: Vec::new(), next: 1 };
        for entry in &entries {
            if !writer.write(entry) {
                break;
            }
        }
        let page = writer.page(first_ns, missed, ends_early);
        // A number that has no room is not stored by the kernel either.
        prop_assume!(page.len() == LAYOUT.page_bytes());
        let mut records = Vec::new();
        let report = read_page(&LAYOUT, &page, |time_ns, record| {
            records.push((time_ns, record.to_vec()));
        });
        let report = report.expect("a page as the kernel writes it");
        prop_assert_eq!(&records, &writer.records);
        prop_assert_eq!(report.records, records.len() as u64);
        prop_assert_eq!(report.first_ns, first_ns);
        prop_assert_eq!(report.last_ns, writer.time_ns);
        prop_assert_eq!(report.missed, missed);
    }

    /// Any other bytes give an error or records that lie within them; never a panic.
    #[test]
    fn any_bytes_are_read_or_refused(mut bytes in vec(any::<u8>(), 0..4200), short in any::<bool>()) {
        if short && bytes.len() >= 16 {
            // Lengths that fit lead further in.
            let used = ((bytes.len() - 16) as u64).to_ne_bytes();
            bytes[8..16].copy_from_slice(&used);
        }
        let mut all = 0;
        let read = read_page(&LAYOUT, &bytes, |_, record| all += record.len());
        prop_assert!(all <= bytes.len());
        if let Err(why) = read {
            prop_assert!(!why.to_string().contains('\n'));
        }
    }
}

/// The same page with its number of lost events on a machine whose longs have four bytes.
#[test]
fn pages_of_machines_with_short_longs() {
    let layout = PageLayout {
        commit: Field { offset: 8, bytes: 4 },
        data: Field { offset: 12, bytes: 4084 },
    };
    let mut page = 77_u64.to_ne_bytes().to_vec();
    page.extend((3_u32 << 30).to_ne_bytes());
    page.extend(5_u32.to_ne_bytes());
    page.resize(4096, 0);
    let report = read_page(&layout, &page, |_, _| ()).expect("an empty page");
    assert_eq!(report.missed, Missed::Count(5));
    assert_eq!((report.first_ns, report.records), (77, 0));
}
