//! Device files of drives of today: what they say is kept, and impossible values are refused in one
//! line.

use agewell_disk::parameters::Management;
use agewell_disk::validation::replay::{Measured, TimeBase};
use agewell_disk::validation::{ValidationOptions, validate};
use agewell_disk::{Device, DeviceKind, DeviceModel, DeviceParameters};

const FLASH: &str = r#"
name = "a"
kind = "flash"
capacity_sectors = 131072
[flash]
channels = 2
dies_per_channel = 2
page = "16 KiB"
mapping = "4 KiB"
pages_per_block = 16
over_provisioning = 0.1
placement = "write-order"
read_ms = 0.05
program_ms = 0.4
erase_ms = 3.0
channel_rate = "400 MB/s"
link_rate = "550 MB/s"
queue_depth = 32
write_buffer = "64 KiB"
"#;

const ZONED: &str = r#"
name = "a"
kind = "zoned"
drive = "simple"
capacity_sectors = 1048576
[simple]
access_time_ms = 10.0
bandwidth = "100 MB/s"
[write_zones]
size = "1 MiB"
management = "host"
conventional_zones = 3
"#;

/// The zoned drive with a cache of its own in front of its zones.
fn drive_managed(cache: &str) -> String {
    let cache = format!("cache = \"{cache}\"");
    ZONED.replace("\"host\"", "\"drive\"").replace("conventional_zones = 3", &cache)
}

fn read(text: &str) -> DeviceParameters {
    DeviceParameters::from_toml("a.toml", text).expect("a good device file")
}

/// The message that refuses `text` with `old` replaced by `new`.
fn refusal(text: &str, old: &str, new: &str) -> String {
    assert!(text.contains(old), "'{old}' is not in the file");
    let changed = text.replace(old, new);
    let error = DeviceParameters::from_toml("a.toml", &changed).expect_err("a bad device file");
    let message = error.to_string();
    assert!(!message.contains('\n'), "one line: {message}");
    assert!(message.starts_with("a.toml: "), "names the file: {message}");
    message
}

#[test]
fn what_a_file_says_is_read_back_from_what_is_written() {
    let drive_managed = drive_managed("16 MiB");
    for text in [FLASH, ZONED, &drive_managed] {
        let read_once = read(text);
        assert_eq!(read(&read_once.to_toml()), read_once);
    }
}

#[test]
fn capacities_leave_the_cache_out_and_defaults_are_what_the_format_says() {
    let drive_managed = drive_managed("16 MiB");
    let parameters = read(&drive_managed);
    assert_eq!(parameters.capacity_sectors, 1_048_576 - 32_768);
    assert_eq!(DeviceModel::new(&parameters).capacity().0, parameters.capacity_sectors);
    let DeviceKind::Zoned(zoned) = &parameters.kind else { panic!("zoned") };
    assert_eq!(zoned.management, Management::Drive { cache_sectors: 32_768 });
    let short =
        FLASH.replace("mapping = \"4 KiB\"\n", "").replace("write_buffer = \"64 KiB\"\n", "");
    let DeviceKind::Flash(flash) = read(&short).kind else { panic!("flash") };
    assert_eq!((flash.mapping_bytes, flash.write_buffer_bytes), (16 << 10, 0));
    assert_eq!((flash.request_overhead_ns, flash.command_ns, flash.write_command_ns), (0, 0, 0));
}

#[test]
fn every_contradiction_is_named_with_its_key() {
    let cases = [
        (
            FLASH,
            "kind = \"flash\"",
            "kind = \"tape\"",
            "use one of simple, mechanical, zoned, flash",
        ),
        (FLASH, "channels = 2", "channels = 0", "[flash]: channels: must be from 1 to 256"),
        (FLASH, "read_ms", "reed_ms", "'read_ms' is missing"),
        (FLASH, "queue_depth = 32", "queue_dept = 32", "'queue_depth' is missing"),
        (FLASH, "read_ms = 0.05", "read_ms = 0.05\nraed_ms = 1.0", "did you mean 'read_ms'"),
        (FLASH, "mapping = \"4 KiB\"", "mapping = \"5 KiB\"", "does not divide a page"),
        (FLASH, "page = \"16 KiB\"", "page = \"16\"", "[flash]: page: "),
        (FLASH, "write-order", "random", "use one of write-order, static, collision-free"),
        (FLASH, "\"64 KiB\"", "\"4 KiB\"", "less than a page"),
        (FLASH, "\"400 MB/s\"", "\"0.9 MB/s\"", "at least 1000000 bytes per second"),
        (
            FLASH,
            "capacity_sectors = 131072",
            "capacity_sectors = 1000000000000",
            "take larger ones",
        ),
        (ZONED, "drive = \"simple\"", "drive = \"flash\"", "use one of simple, mechanical"),
        (ZONED, "\"host\"", "\"nobody\"", "use one of host, drive"),
        (ZONED, "\"host\"", "\"drive\"", "is for management = \"host\""),
        (
            ZONED,
            "\"host\"\nconventional_zones = 3",
            "\"drive\"",
            "[write_zones]: 'cache' is missing",
        ),
        (ZONED, "size = \"1 MiB\"", "size = \"1000 B\"", "a whole number of 512-byte sectors"),
        (ZONED, "size = \"1 MiB\"", "size = \"2 TiB\"", "at most 1099511627776 bytes"),
        (ZONED, "conventional_zones = 3", "conventional_zones = 512", "the drive has only 1048576"),
        (ZONED, "conventional_zones = 3", "cache = \"1 MiB\"", "is for management = \"drive\""),
    ];
    for (text, old, new, expected) in cases {
        let message = refusal(text, old, new);
        assert!(message.contains(expected), "{new}: '{message}' does not say '{expected}'");
    }
    // A little less than whole blocks, so that a thousandth leaves nearly nothing.
    let tight = FLASH.replace("131072", "130816");
    assert!(refusal(&tight, "= 0.1", "= 0.001").contains("it needs an erase block of 64"));
    let drive = drive_managed("16 MiB");
    assert!(refusal(&drive, "16 MiB", "1536 KiB").contains("not a number of bands"));
    assert!(refusal(&drive, "16 MiB", "1 GiB").contains("the drive has only"));
}

#[test]
fn a_measured_trace_that_the_device_would_refuse_is_no_validation() {
    let trace = |sectors: [u64; 2]| Measured {
        issue_ns: vec![0, 50_000_000],
        finish_ns: vec![20_000_000, 70_000_000],
        sector: sectors.to_vec(),
        sectors: vec![8, 8],
        operation: vec![1, 1],
    };
    let options = ValidationOptions { fit: false, primary: TimeBase::Closed };
    // The first zone that is written in order begins at sector 6144.
    let in_order = validate(&read(ZONED), &[trace([6144, 6152])], options, &mut || true)
        .expect("a validation");
    assert_eq!(in_order.requests, 2);
    let refused =
        validate(&read(ZONED), &[trace([6144, 6160])], options, &mut || true).expect_err("refused");
    let text = refused.to_string();
    assert!(text.contains("request 1: the device refuses a write to sector 6160"), "{text}");
    assert!(validate(&read(FLASH), &[trace([6144, 6160])], options, &mut || true).is_ok());
}
