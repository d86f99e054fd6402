//! `[host]` of a file system: a machine of the papers, and what is changed of it.

use agewell_core::{SECTOR_BYTES, SimDuration};
use agewell_disk::queue::Discipline;
use serde_json::{Value, json};

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
        name: "sparcstation-2",
        transfer_bytes: 56 << 10,
        cache_bytes: 4 << 20,
        request_us: 250,
        turnaround_us: 250,
        file_us: 1000,
        copy_bytes_per_s: 4_551_111,
    },
    Machine {
        name: "pentium-120",
        transfer_bytes: 64 << 10,
        cache_bytes: 6_553_600,
        request_us: 50,
        turnaround_us: 100,
        file_us: 200,
        copy_bytes_per_s: 40_000_000,
    },
];

/// The update daemon of 4.4BSD calls `sync` every 30 s.
const UPDATE_INTERVAL: SimDuration = SimDuration(30_000_000_000);

/// A host as an experiment describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostSetup {
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
        let machines = MACHINES.map(|machine| (machine.name, machine));
        let machine = table.choice("machine", &machines, Some(MACHINES[1]))?;
        let disciplines = Discipline::ALL.map(|discipline| (discipline.name(), discipline));
        let discipline = table.choice("discipline", &disciplines, Some(Discipline::CLook))?;
        let mut time = |key, default_us: u64| -> Result<SimDuration, ConfigError> {
            Ok(table.duration(key)?.unwrap_or(SimDuration(default_us * 1000)))
        };
        let request_cpu = time("request_time", machine.request_us)?;
        let turnaround = time("turnaround_time", machine.turnaround_us)?;
        let file_cpu = time("file_time", machine.file_us)?;
        let transfer_bytes = table.bytes("transfer_size")?.unwrap_or(machine.transfer_bytes);
        let cache_bytes = table.bytes("cache")?.unwrap_or(machine.cache_bytes);
        // Half of the cache may wait to be written; chosen by us, as 4.4BSD bounds dirty buffers.
        let queue_bytes = table.bytes("queue_size")?.unwrap_or(cache_bytes / 2);
        let copy_bytes_per_s =
            table.bytes_per_second("copy_rate")?.unwrap_or(machine.copy_bytes_per_s);
        let read_ahead = table.boolean("read_ahead")?.unwrap_or(true);
        let update_interval = table.duration("update_interval")?.unwrap_or(UPDATE_INTERVAL);
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
            discipline,
            queue_sectors_max: queue_bytes / SECTOR_BYTES,
            transfer_sectors_max: transfer_bytes / SECTOR_BYTES,
            buffer_sectors: block_bytes / SECTOR_BYTES,
            buffers,
            request_cpu,
            turnaround,
            copy_bytes_per_s,
            read_ahead,
            update_interval,
        };
        Ok(Self { parameters, file_cpu })
    }

    /// Every value, as it could be written in an experiment.
    #[must_use]
    pub fn resolved(&self) -> Value {
        let parameters = &self.parameters;
        let time = |time: SimDuration| format!("{} us", time.0 as f64 / 1e3);
        let bytes = |sectors: u64| format!("{} B", sectors * SECTOR_BYTES);
        json!({
            "discipline": parameters.discipline.name(),
            "queue_size": bytes(parameters.queue_sectors_max),
            "transfer_size": bytes(parameters.transfer_sectors_max),
            "cache": bytes(parameters.buffers as u64 * parameters.buffer_sectors),
            "request_time": time(parameters.request_cpu),
            "turnaround_time": time(parameters.turnaround),
            "file_time": time(self.file_cpu),
            "copy_rate": format!("{} B/s", parameters.copy_bytes_per_s),
            "read_ahead": parameters.read_ahead,
            "update_interval": time(parameters.update_interval),
        })
    }
}

#[cfg(test)]
mod tests {
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
