//! What reading costs on a device: expected positioning between two places, and transfer.
//!
//! Mechanical disk: a break costs the overhead of a request, the seek over the distance in
//! cylinders (or a head switch within one) and half a rotation, which is what a wait for a sector at
//! an unknown angle is on average. Over a short way the angle is known: the heads wait until the gap
//! has passed, and a turn more if it has passed before the next request reaches the medium (the lost
//! rotations of Smith & Seltzer 1996, §5.1). Data move at the rate of their zone, skews included, or
//! of the bus if that is slower. Simple disk: every break costs the access time (Matthews 1999,
//! §5.3).
//!
//! The file system lies at the front of the device. If it is larger, its addresses are scaled so
//! that it fills the device: distances keep their share of a full stroke, rates are those of the
//! zones.
//!
//! Differences from a simulation of the device: angles only over short ways, no buffer, no other
//! load. Invariant: all times are integers; the same reads cost the same.
//!
//! Cost: a search among the zones for each read.

use agewell_core::SECTOR_BYTES;
use agewell_disk::geometry::Geometry;
use agewell_disk::parameters::{MechanicalParameters, SimpleParameters};
use agewell_disk::{DeviceParameters, Medium};

/// Up to this number of turns of the platter a gap is short: its angle follows from its length to a few
/// per cent of a turn, the skew of a track. Chosen by us.
const NEAR_TURNS: u64 = 4;

const PS_PER_NS: u128 = 1000;
const PS_PER_S: u128 = 1_000_000_000_000;

/// What reading costs on one device.
#[derive(Debug)]
pub(crate) struct ReadCosts {
    device: Device,
    capacity_bytes: u64,
    /// Bytes of the file system, if it is larger than the device.
    scaled_from_bytes: Option<u64>,
}

#[derive(Debug)]
enum Device {
    /// With what its bandwidth comes to.
    Simple(SimpleParameters, PerByte),
    Mechanical(Box<Disk>),
}

#[derive(Debug)]
struct Disk {
    zones: Vec<Zone>,
    seek_ns: Vec<u32>,
    head_switch_ns: u64,
    rotation_ns: u64,
    /// Controller time of a read that is not in the buffer.
    overhead_ns: u64,
}

/// Cylinders that hold the same number of sectors.
#[derive(Debug)]
struct Zone {
    first_byte: u64,
    first_cylinder: u64,
    cylinders: u64,
    /// Of one cylinder, on average.
    cylinder_bytes: u64,
    /// For a byte to pass under the heads, tracks one after another.
    sweep: PerByte,
    /// For a byte to be read: as long, or longer over a slow bus.
    read: PerByte,
}

/// A time for each byte, in 2^-32 ns: multiplied and shifted, because dividing 128 bits for every
/// extent takes longer than all else here.
#[derive(Debug, Clone, Copy)]
struct PerByte(u64);

impl PerByte {
    /// Picoseconds and the bytes that they are for.
    fn new(ps: u128, bytes: u64) -> Self {
        let fixed = (ps << 32) / (u128::from(bytes) * PS_PER_NS);
        Self(u64::try_from(fixed).unwrap_or(u64::MAX))
    }

    /// For `bytes`, ns, rounded down; 584 years if it is longer.
    #[inline]
    fn ns(self, bytes: u64) -> u64 {
        u64::try_from((u128::from(bytes) * u128::from(self.0)) >> 32).unwrap_or(u64::MAX)
    }
}

impl ReadCosts {
    /// Costs of a file system of `file_system_bytes` on `device`.
    pub(crate) fn new(device: &DeviceParameters, file_system_bytes: u64) -> Self {
        let capacity_bytes = device.capacity_sectors.saturating_mul(SECTOR_BYTES);
        Self {
            device: match device.kind.medium() {
                Medium::Simple(simple) => {
                    Device::Simple(simple, PerByte::new(PS_PER_S, simple.bandwidth_bytes_per_s))
                }
                Medium::Mechanical(mechanical) => {
                    Device::Mechanical(Box::new(Disk::new(mechanical)))
                }
            },
            capacity_bytes,
            scaled_from_bytes: (file_system_bytes > capacity_bytes).then_some(file_system_bytes),
        }
    }

    /// Whether the file system is larger than the device, so that distances were scaled.
    pub(crate) fn is_scaled(&self) -> bool {
        self.scaled_from_bytes.is_some()
    }

    /// Expected time from the end of a read at `from_bytes` to the first byte at `to_bytes`, ns.
    #[inline]
    pub(crate) fn positioning_ns(&self, from_bytes: u64, to_bytes: u64) -> u64 {
        match &self.device {
            Device::Simple(simple, _) => simple.access_time_ns,
            Device::Mechanical(disk) => {
                let zone = disk.zone_at(self.place(from_bytes));
                let gap_ns = zone.sweep.ns(from_bytes.abs_diff(to_bytes));
                if gap_ns <= NEAR_TURNS * disk.rotation_ns {
                    disk.turn_ns(gap_ns, from_bytes <= to_bytes)
                } else {
                    disk.jump_ns(self.place(from_bytes), self.place(to_bytes))
                }
            }
        }
    }

    /// Time to move `length_bytes` from `start_bytes` on, ns.
    #[inline]
    pub(crate) fn transfer_ns(&self, start_bytes: u64, length_bytes: u64) -> u64 {
        match &self.device {
            Device::Simple(_, per_byte) => per_byte.ns(length_bytes),
            Device::Mechanical(disk) => disk.zone_at(self.place(start_bytes)).read.ns(length_bytes),
        }
    }

    /// Expected time to get to a place of the file system from anywhere in it, ns.
    pub(crate) fn mean_positioning_ns(&self, file_system_bytes: u64) -> u64 {
        match &self.device {
            Device::Simple(simple, _) => simple.access_time_ns,
            Device::Mechanical(disk) => {
                let last = self.place(file_system_bytes.saturating_sub(1));
                let cylinders = disk.cylinder_at(last) + 1;
                disk.overhead_ns + disk.mean_seek_ns(cylinders) + disk.rotation_ns / 2
            }
        }
    }

    /// Where `bytes` of the file system lie on the device.
    #[inline]
    fn place(&self, bytes: u64) -> u64 {
        let last = self.capacity_bytes.saturating_sub(1);
        match self.scaled_from_bytes {
            None => bytes.min(last),
            Some(from) => {
                let scaled = u128::from(bytes) * u128::from(self.capacity_bytes) / u128::from(from);
                u64::try_from(scaled).unwrap_or(last).min(last)
            }
        }
    }
}

impl Disk {
    fn new(parameters: &MechanicalParameters) -> Self {
        let geometry = Geometry::new(&parameters.geometry);
        let sector_bytes = u64::from(parameters.sector_bytes);
        let bus_ps = u128::from(parameters.bus.read_sector_ps);
        let mut first_byte = 0;
        let mut zones = Vec::with_capacity(parameters.geometry.zones.len());
        for (number, zone) in parameters.geometry.zones.iter().enumerate() {
            let sectors = geometry.zone_sectors(number);
            if sectors == 0 {
                continue;
            }
            let sweep_ps = zone_sweep_ps(parameters, number);
            zones.push(Zone {
                first_byte,
                first_cylinder: u64::from(zone.first_cylinder),
                cylinders: u64::from(zone.cylinders()),
                cylinder_bytes: (sectors * sector_bytes / u64::from(zone.cylinders())).max(1),
                sweep: PerByte::new(sweep_ps, sectors * sector_bytes),
                read: PerByte::new(
                    sweep_ps.max(bus_ps * u128::from(sectors)),
                    sectors * sector_bytes,
                ),
            });
            first_byte += sectors * sector_bytes;
        }
        assert!(!zones.is_empty(), "the reader of device files refuses a disk without sectors");
        let overhead = &parameters.overhead;
        Self {
            zones,
            seek_ns: parameters.seek.table_ns(parameters.geometry.cylinders),
            head_switch_ns: parameters.head_switch_ns,
            rotation_ns: (parameters.rotation_period_ps / 1000).max(1),
            overhead_ns: overhead.per_request_ns
                + overhead.read_miss_ns[0]
                + overhead.read_completion_ns
                + parameters.bus.turnaround_ns,
        }
    }

    #[inline]
    fn zone_at(&self, place: u64) -> &Zone {
        let after = self.zones.partition_point(|zone| zone.first_byte <= place);
        &self.zones[after.saturating_sub(1)]
    }

    #[inline]
    fn cylinder_at(&self, place: u64) -> u64 {
        let zone = self.zone_at(place);
        let within = (place - zone.first_byte) / zone.cylinder_bytes;
        zone.first_cylinder + within.min(zone.cylinders - 1)
    }

    /// Wait for a sector whose distance takes `gap_ns` to pass, forward or backward.
    fn turn_ns(&self, gap_ns: u64, forward: bool) -> u64 {
        let within_ns = gap_ns % self.rotation_ns;
        let ahead_ns = if forward { within_ns } else { self.rotation_ns - within_ns };
        // The first of its passes that the request is not too late for.
        let late_ns = self.overhead_ns.saturating_sub(ahead_ns);
        ahead_ns + late_ns.div_ceil(self.rotation_ns) * self.rotation_ns
    }

    fn jump_ns(&self, from: u64, to: u64) -> u64 {
        let distance = self.cylinder_at(from).abs_diff(self.cylinder_at(to));
        let move_ns = match distance {
            0 => self.head_switch_ns,
            _ => u64::from(self.seek_ns[distance as usize]),
        };
        self.overhead_ns + move_ns + self.rotation_ns / 2
    }

    /// Mean seek over all pairs of the first `cylinders`.
    fn mean_seek_ns(&self, cylinders: u64) -> u64 {
        let total = u128::from(cylinders);
        let seeks = self.seek_ns.iter().take(cylinders as usize).enumerate().skip(1);
        // A distance d > 0 joins 2 (n - d) of the n^2 ordered pairs.
        let sum: u128 =
            seeks.map(|(distance, ns)| 2 * (total - distance as u128) * u128::from(*ns)).sum();
        (sum / (total * total)) as u64
    }
}

/// Time for the platter to bring all tracks of a zone by, one after another, ps.
fn zone_sweep_ps(parameters: &MechanicalParameters, number: usize) -> u128 {
    let geometry = &parameters.geometry;
    let zone = &geometry.zones[number];
    let surfaces = u128::from(geometry.surfaces);
    let turn_ps = u128::from(parameters.rotation_period_ps);
    let skew_ps = |sectors: f64| {
        (sectors / f64::from(zone.sectors_per_track) * parameters.rotation_period_ps as f64).round()
            as u128
    };
    let cylinder_ps = surfaces * turn_ps
        + (surfaces - 1) * skew_ps(zone.track_skew)
        + skew_ps(zone.cylinder_skew);
    u128::from(zone.cylinders()) * cylinder_ps
}
