//! A store on a drive that is written in order, zone by zone. The modelled drive refuses every write that
//! does not begin where the last one in its zone ended.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agewell_core::{RandomStreams, uniform_below};
use agewell_disk::parameters::{Management, SimpleParameters, ZonedDrive, ZonedParameters};
use agewell_disk::{DeviceKind, DeviceParameters};
use agewell_log::policy::mechanism::Mechanism;
use agewell_store::device::{Disk, ModelledDisk, Piece, WriteZones};
use agewell_store::{FormatOptions, OpenOptions, Placement, Store, Transaction};

use super::load::{AnyStore, open_store};
use crate::simulation::{Updates, draw};

const BLOCK_BYTES: u32 = 4096;
const ZONE_BLOCKS: u32 = 32;
const ZONES: u64 = 100;
const CONVENTIONAL: u32 = 4;

fn drive(conventional_zones: u32) -> Arc<ModelledDisk> {
    drive_of(ZONE_BLOCKS, ZONES, conventional_zones)
}

fn drive_of(zone_blocks: u32, zones: u64, conventional_zones: u32) -> Arc<ModelledDisk> {
    let zone_sectors = u64::from(zone_blocks * BLOCK_BYTES / 512);
    let simple = SimpleParameters { access_time_ns: 8_000_000, bandwidth_bytes_per_s: 200_000_000 };
    // The last zone is a short one.
    let capacity_sectors = zones * zone_sectors - 24;
    Arc::new(ModelledDisk::new(&DeviceParameters {
        name: "zoned".into(),
        title: "zoned".into(),
        capacity_sectors,
        kind: DeviceKind::Zoned(Box::new(ZonedParameters {
            drive: ZonedDrive::Simple(simple, capacity_sectors),
            zone_sectors,
            management: Management::Host { conventional_zones },
        })),
        sources: BTreeMap::new(),
        uncertainty: None,
    }))
}

fn options(segment_zones: u32) -> FormatOptions {
    FormatOptions {
        block_bytes: BLOCK_BYTES,
        segment_blocks: segment_zones * ZONE_BLOCKS,
        ..FormatOptions::new([1; 16])
    }
}

fn contents(block: u32, version: u32) -> Vec<u8> {
    let mut data = vec![version as u8; BLOCK_BYTES as usize];
    data[..4].copy_from_slice(&block.to_le_bytes());
    data[4..8].copy_from_slice(&version.to_le_bytes());
    data
}

#[test]
fn a_store_keeps_to_zones_that_are_written_in_order() {
    let placements = [Placement::None, Placement::SepBit, Placement::Lifetime];
    for (segment_zones, placement) in
        [1, 2].into_iter().flat_map(|zones| placements.map(|placement| (zones, placement)))
    {
        let opened = OpenOptions { placement, collected_logs: Some(3), ..OpenOptions::default() };
        let disk = drive(CONVENTIONAL);
        let geometry = Store::format(&disk, &options(segment_zones)).unwrap();
        let blocks = geometry.capacity_blocks() as u32;
        let mut versions = vec![0; blocks as usize];
        let mut random = RandomStreams::new(1).stream("zones");
        let mut cleaned = 0;
        for opening in 0..6 {
            // The last is closed in order, the others are left as they are.
            let store = open_store(Arc::clone(&disk), &opened).unwrap();
            assert_eq!(store.collected_logs() > 0, placement != Placement::None);
            assert_eq!(store.opened().was_closed, opening == 0);
            for round in 0..400 {
                let first = draw(Updates::HotAndCold, &mut random, blocks - 40);
                let named: Vec<u32> = (first..first + 1 + round % 30).collect();
                if round % 16 == 15 {
                    // As many that they do not find room in an inline record.
                    let frees: Vec<u32> = (blocks - 40..blocks).collect();
                    for block in &frees {
                        versions[*block as usize] = 0;
                    }
                    store.write(&Transaction { writes: Vec::new(), frees }).unwrap();
                }
                let data: Vec<Vec<u8>> = named
                    .iter()
                    .map(|block| {
                        versions[*block as usize] += 1;
                        contents(*block, versions[*block as usize])
                    })
                    .collect();
                let writes = named.iter().zip(&data).map(|(block, data)| (*block, &data[..]));
                store.write(&Transaction { writes: writes.collect(), frees: Vec::new() }).unwrap();
                store.sync().unwrap();
            }
            store.discard().unwrap();
            cleaned += store.log_counts().cleaned_blocks;
            assert_eq!(store.log_counts().plugged_blocks + store.log_counts().threaded_blocks, 0);
            store.verify();
            check(&store, &versions);
            if opening == 5 {
                store.close().unwrap();
            }
        }
        let store = open_store(Arc::clone(&disk), &OpenOptions::default()).unwrap();
        assert!(store.opened().was_closed);
        check(&store, &versions);
        assert!(cleaned > 1000, "{cleaned} blocks were collected");
    }
}

fn check(store: &AnyStore<'_>, versions: &[u32]) {
    let mut into = vec![0; BLOCK_BYTES as usize];
    for (block, version) in (0..).zip(versions) {
        assert_eq!(store.read(block, &mut into).unwrap(), *version > 0, "block {block}");
        assert!(*version == 0 || into == contents(block, *version), "block {block}");
    }
}

#[test]
fn what_zones_do_not_allow_is_refused_in_one_line() {
    let refused = |conventional, options: &FormatOptions| {
        Store::format(&drive(conventional), options).unwrap_err().to_string()
    };
    let odd = FormatOptions { segment_blocks: ZONE_BLOCKS + 8, ..options(1) };
    let said = refused(CONVENTIONAL, &odd);
    assert!(said.contains("take segments of 32 blocks, or a multiple"), "{said}");
    let said = refused(0, &options(1));
    assert!(said.contains("only the first 0 may be written so"), "{said}");
    let disk = drive(CONVENTIONAL);
    Store::format(&disk, &options(1)).unwrap();
    for mechanism in [Mechanism::Plug, Mechanism::Thread] {
        let opened = open_store(Arc::clone(&disk), &OpenOptions::fixed(mechanism));
        let said = opened.map(drop).unwrap_err();
        assert!(said.to_string().contains("open the store with cleaning"), "{said}");
        assert!(!said.to_string().contains('\n'));
    }
    assert!(open_store(disk, &OpenOptions::fixed(Mechanism::Clean)).is_ok());
}

/// A disk that refuses to write after some number of writes: a crash.
struct Stops {
    disk: Arc<ModelledDisk>,
    writes_left: AtomicU32,
}

impl Disk for Stops {
    fn size_bytes(&self) -> u64 {
        self.disk.size_bytes()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.disk.read(offset, into)
    }

    fn write(&self, pieces: &[Piece<'_>]) -> io::Result<()> {
        let left = self.writes_left.load(Ordering::Relaxed);
        self.writes_left.store(left.checked_sub(1).ok_or(io::ErrorKind::Other)?, Ordering::Relaxed);
        self.disk.write(pieces)
    }

    fn discard(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.disk.discard(offset, bytes)
    }

    fn flush(&self) -> io::Result<()> {
        self.disk.flush()
    }

    fn write_zones(&self) -> Option<WriteZones> {
        self.disk.write_zones()
    }
}

/// A zone is emptied as a whole, and a crash right behind that must find elsewhere all that was in it.
/// Zones are of 1 MiB here, which is what a disk in memory forgets when it is discarded.
#[test]
fn what_died_in_a_zone_is_there_until_something_later_lasts() {
    let zone_blocks = 256;
    let disk = drive_of(zone_blocks, 24, 2);
    let format = FormatOptions { segment_blocks: zone_blocks, ..options(1) };
    let geometry = Store::format(&disk, &format).unwrap();
    let blocks = geometry.capacity_blocks() as u32;
    let mut versions = vec![0; blocks as usize];
    let mut random = RandomStreams::new(2).stream("zones");
    let all: Vec<u32> = (0..blocks).collect();
    let mut named = all.chunks(64).map(<[u32]>::to_vec);
    let (mut emptied, mut crashes) = (0, 0);
    for _ in 0..100 {
        let writes_left = AtomicU32::new(uniform_below(&mut random, 3000) as u32);
        let stops = Stops { disk: Arc::clone(&disk), writes_left };
        let before = disk.spent().discards.requests;
        let mut open = Vec::new();
        let placement = if crashes % 2 == 0 { Placement::SepBit } else { Placement::None };
        let opened = OpenOptions { placement, collected_logs: Some(3), ..OpenOptions::default() };
        if let Ok(store) = open_store(stops, &opened) {
            loop {
                // A few blocks again and again, so that segments come free by themselves, written one by
                // one; the records of some last before others of the same segment.
                let next =
                    named.next().unwrap_or_else(|| vec![uniform_below(&mut random, 64) as u32]);
                if uniform_below(&mut random, 1500) == 0 && store.discard().is_err() {
                    break;
                }
                open = next.iter().map(|block| (*block, versions[*block as usize] + 1)).collect();
                let data: Vec<Vec<u8>> = open.iter().map(|one| contents(one.0, one.1)).collect();
                let writes = next.iter().zip(&data).map(|(block, data)| (*block, &data[..]));
                let transaction = Transaction { writes: writes.collect(), frees: Vec::new() };
                if store.write(&transaction).and_then(|()| store.sync()).is_err() {
                    break;
                }
                for (block, version) in open.drain(..) {
                    versions[block as usize] = version;
                }
            }
            crashes += 1;
        }
        emptied += disk.spent().discards.requests - before;
        let store = open_store(Arc::clone(&disk), &OpenOptions::default()).unwrap();
        let mut into = vec![0; BLOCK_BYTES as usize];
        // What was not acknowledged is there whole or not at all.
        if let Some((block, version)) = open.first() {
            store.read(*block, &mut into).unwrap();
            if into == contents(*block, *version) {
                for (block, version) in &open {
                    versions[*block as usize] = *version;
                }
            }
        }
        check(&store, &versions);
    }
    assert!(emptied > 100 && crashes > 90, "{emptied} zones were emptied, {crashes} crashes");
}
