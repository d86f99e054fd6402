//! `[host]` of a file system: a machine of the papers, and what is changed of it.

use agewell_config::{Form, Key, Keyed, choice, flag, keys, rate, size, time};
use agewell_core::{SECTOR_BYTES, SimDuration};
use agewell_disk::queue::Discipline;
use serde_json::Value;

use super::HostParameters;
use crate::config::{ConfigError, Table};

/// A host by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Machine {
    name: &'static str,
    transfer_bytes: u64,
    cache_bytes: u64,
    request_us: u64,
    turnaround_us: u64,
    file_us: u64,
    copy_bytes_per_s: u64,
}

/// The machines whose file systems the papers measured.
///
/// Published: memory (Seltzer et al. 1995, table 1: 40 MB; Smith & Seltzer 1996, table 1: 64 MB),
/// the largest transfers (1995, §2.1: 56 KB; 1996, §5.1: 64 KB), and that the SPARCstation copies a
/// block of 4 KB in 0.9 ms (1995, §3). That the buffer cache has a tenth of the memory is the rule
/// of 4.4BSD. The other times are chosen by us: some thousand instructions for a request and ten
/// thousand to open or create a file, at 20 and 100 million instructions a second; a Pentium of
/// 120 MHz copies about 40 MB/s.
const MACHINES: [Machine; 2] = [
    Machine {
        name: "pentium-120",
        transfer_bytes: 64 << 10,
        cache_bytes: 6_553_600,
        request_us: 50,
        turnaround_us: 100,
        file_us: 200,
        copy_bytes_per_s: 40_000_000,
    },
    Machine {
        name: "sparcstation-2",
        transfer_bytes: 56 << 10,
        cache_bytes: 4 << 20,
        request_us: 250,
        turnaround_us: 250,
        file_us: 1000,
        copy_bytes_per_s: 4_551_111,
    },
];

/// The update daemon of 4.4BSD calls `sync` every 30 s.
const UPDATE_INTERVAL: SimDuration = SimDuration(30_000_000_000);

keys! {
    /// The keys of a host.
    struct MachineTable {
        /// where the other defaults come from
        machine: Machine = "machine" choice(&MACHINES.map(|each| (each.name, each))).or(MACHINES[0]);
        /// how the driver orders what waits
        discipline: Discipline = "discipline"
            choice(&Discipline::ALL.map(|each| (each.name(), each))).or(Discipline::CLook);
        /// the largest request
        transfer_bytes: Option<u64> = "transfer_size" size().or_else("`\"64 KiB\"`, `\"56 KiB\"`");
        /// the buffer cache; 0 for none
        cache_bytes: Option<u64> = "cache" size().or_else("6.25 MiB, 4 MiB");
        // Chosen by us, as 4.4BSD bounds dirty buffers.
        /// asynchronous writes that may wait before their writer is held up
        queue_bytes: Option<u64> = "queue_size" size().or_else("half of the cache");
        /// processor time of a request
        request_time: Option<SimDuration> = "request_time" time().or_else("50 us, 250 us");
        /// processor time between two that wait
        turnaround_time: Option<SimDuration> = "turnaround_time" time().or_else("100 us, 250 us");
        /// processor time to open or create a file
        file_time: Option<SimDuration> = "file_time" time().or_else("200 us, 1 ms");
        /// at which the processor copies data
        copy_bytes_per_s: Option<u64> = "copy_rate" rate().or_else("40 MB/s, 4.55 MB/s");
        /// ask for a cluster while the one before is read
        read_ahead: bool = "read_ahead" flag().or(true);
        /// from one run of the update daemon to the next; 0 for never
        update_interval: SimDuration = "update_interval" time().or(UPDATE_INTERVAL);
    }
}

/// A host as an experiment describes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HostSetup {
    machine: Machine,
    /// What it costs and holds; buffers are those of a file system with the blocks it was read for.
    pub parameters: HostParameters,
    /// Processor time to create, open or remove a file.
    pub file_cpu: SimDuration,
}

impl HostSetup {
    /// Reads the table, for a file system with blocks of `block_bytes`.
    ///
    /// # Errors
    /// If a key is not known or its value does not do.
    pub fn read(value: Value, block_bytes: u64) -> Result<Self, ConfigError> {
        let mut table = Table::new("[host]", value)?;
        let keys = MachineTable::read(&mut table)?;
        let machine = keys.machine;
        let time = |key: Option<SimDuration>, default_us: u64| {
            key.unwrap_or(SimDuration(default_us * 1000))
        };
        let transfer_bytes = keys.transfer_bytes.unwrap_or(machine.transfer_bytes);
        let cache_bytes = keys.cache_bytes.unwrap_or(machine.cache_bytes);
        let queue_bytes = keys.queue_bytes.unwrap_or(cache_bytes / 2);
        if transfer_bytes < block_bytes {
            let why = format!("is less than a block of {block_bytes} bytes");
            return Err(table.invalid("transfer_size", why));
        }
        let buffers = (cache_bytes / block_bytes) as usize;
        let touched = (transfer_bytes / block_bytes) as usize + 2;
        if buffers != 0 && buffers < touched {
            let why = format!("must be 0, or hold the {touched} blocks of a transfer");
            return Err(table.invalid("cache", why));
        }
        table.finish()?;
        let parameters = HostParameters {
            discipline: keys.discipline,
            queue_sectors_max: queue_bytes / SECTOR_BYTES,
            transfer_sectors_max: transfer_bytes / SECTOR_BYTES,
            buffer_sectors: block_bytes / SECTOR_BYTES,
            buffers,
            request_cpu: time(keys.request_time, machine.request_us),
            turnaround: time(keys.turnaround_time, machine.turnaround_us),
            copy_bytes_per_s: keys.copy_bytes_per_s.unwrap_or(machine.copy_bytes_per_s),
            read_ahead: keys.read_ahead,
            update_interval: keys.update_interval,
        };
        Ok(Self { machine, parameters, file_cpu: time(keys.file_time, machine.file_us) })
    }

    /// Every value, as it could be written in an experiment.
    #[must_use]
    pub fn resolved(&self) -> Value {
        let parameters = &self.parameters;
        MachineTable::resolved(&MachineTable {
            machine: self.machine,
            discipline: parameters.discipline,
            transfer_bytes: Some(parameters.transfer_sectors_max * SECTOR_BYTES),
            cache_bytes: Some(parameters.buffers as u64 * parameters.buffer_sectors * SECTOR_BYTES),
            queue_bytes: Some(parameters.queue_sectors_max * SECTOR_BYTES),
            request_time: Some(parameters.request_cpu),
            turnaround_time: Some(parameters.turnaround),
            file_time: Some(self.file_cpu),
            copy_bytes_per_s: Some(parameters.copy_bytes_per_s),
            read_ahead: parameters.read_ahead,
            update_interval: parameters.update_interval,
        })
    }

    /// The keys of the table.
    #[must_use]
    pub fn keys() -> Vec<Key> {
        MachineTable::keys()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_machine_and_what_is_changed_of_it() {
        let given = json!({"machine": "sparcstation-2", "cache": "1 MiB", "read_ahead": false});
        let setup = HostSetup::read(given, 8192).expect("a host");
        assert_eq!(setup.parameters.transfer_sectors_max, 112);
        assert_eq!(setup.parameters.buffers, 128);
        assert_eq!(setup.parameters.queue_sectors_max, 1024);
        assert!(!setup.parameters.read_ahead);
        assert_eq!(setup.file_cpu, SimDuration(1_000_000));
        let again = HostSetup::read(setup.resolved(), 8192).expect("what it resolves to");
        assert_eq!(again, setup);
    }

    #[test]
    fn what_does_not_do_is_refused_in_one_line() {
        for (given, expected) in [
            (json!({"machine": "pentium-12"}), "did you mean 'pentium-120'?"),
            (json!({"cahce": "1 MiB"}), "did you mean 'cache'?"),
            (
                json!({"transfer_size": "4 KiB"}),
                "transfer_size: is less than a block of 8192 bytes",
            ),
            (json!({"cache": "16 KiB"}), "cache: must be 0, or hold the 10 blocks of a transfer"),
        ] {
            let error = HostSetup::read(given, 8192).expect_err("refused").to_string();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains('\n'));
        }
    }
}
