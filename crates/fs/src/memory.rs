//! How much memory this machine has to spare.

/// Bytes that programs can have without others having to give any up: what the kernel says of the machine, and of
/// the group of processes this one is in (proc_meminfo(5); cgroups(7), version 2). Nothing if it does not say.
pub(crate) fn to_spare_bytes() -> u64 {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let of_machine = available_bytes(&read("/proc/meminfo"));
    let number = |path| read(path).trim().parse::<u64>().ok();
    let most = number("/sys/fs/cgroup/memory.max");
    let of_group = most.zip(number("/sys/fs/cgroup/memory.current"));
    of_group.map_or(of_machine, |(most, has)| of_machine.min(most.saturating_sub(has)))
}

fn available_bytes(meminfo: &str) -> u64 {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0).saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_what_is_available() {
        let says = "MemTotal:       24612340 kB\nMemAvailable:   23004512 kB\nBuffers: 1 kB\n";
        assert_eq!(available_bytes(says), 23_004_512 * 1024);
        assert_eq!(available_bytes("MemFree: 12 kB\n"), 0);
        assert_eq!(available_bytes("MemAvailable: many\n"), 0);
        assert!(to_spare_bytes() > 0);
    }
}
