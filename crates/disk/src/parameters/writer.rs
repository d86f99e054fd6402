//! Writes a device file that reads back as the same parameters.

use std::fmt::Write as _;

use agewell_core::SECTOR_BYTES;

use super::buffer::{BufferParameters, FastWrite, KeepRequested, ReadAhead};
use super::flash::FlashParameters;
use super::geometry::{GeometryParameters, ZoneParameters};
use super::mechanical::{MechanicalParameters, OverheadParameters, SeekCurve};
use super::names::name_of;
use super::simple::SimpleParameters;
use super::zoned::{Management, ZonedDrive, ZonedParameters};
use super::{DeviceKind, DeviceParameters};

/// Collects lines; writing to a string cannot fail.
struct Lines(String);

impl Lines {
    fn line(&mut self, text: &str) {
        self.0.push_str(text);
        self.0.push('\n');
    }

    fn heading(&mut self, name: &str) {
        self.line(&format!("\n{name}"));
    }

    fn text(&mut self, key: &str, value: &str) {
        self.line(&format!("{key} = {}", toml::Value::String(value.to_owned())));
    }

    fn number(&mut self, key: &str, value: impl std::fmt::Display) {
        self.line(&format!("{key} = {value}"));
    }

    fn time(&mut self, key: &str, ns: u64) {
        if ns != 0 {
            self.line(&format!("{key} = {}", ms(ns as i64, 6)));
        }
    }

    fn flag(&mut self, key: &str, value: bool, default: bool) {
        if value != default {
            self.number(key, value);
        }
    }
}

/// An integer of 10^-`digits` ms as decimal text, exactly.
fn ms(value: i64, digits: usize) -> String {
    let scale = 10_u64.pow(digits as u32);
    let sign = if value < 0 { "-" } else { "" };
    let (whole, part) = (value.unsigned_abs() / scale, value.unsigned_abs() % scale);
    let text = format!("{part:0digits$}");
    let text = text.trim_end_matches('0');
    if text.is_empty() { format!("{sign}{whole}.0") } else { format!("{sign}{whole}.{text}") }
}

fn float(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        format!("{}", value as i64)
    } else {
        format!("{value:?}")
    }
}

pub(super) fn write(device: &DeviceParameters) -> String {
    let mut out = Lines(String::new());
    out.text("name", &device.name);
    out.text("title", &device.title);
    match &device.kind {
        DeviceKind::Simple(simple) => {
            out.text("kind", "simple");
            out.number("capacity_sectors", device.capacity_sectors);
            write_sources(&mut out, device);
            write_simple(&mut out, *simple);
        }
        DeviceKind::Mechanical(mechanical) => {
            out.text("kind", "mechanical");
            write_mechanical_keys(&mut out, mechanical);
            write_sources(&mut out, device);
            write_mechanical(&mut out, mechanical);
        }
        DeviceKind::Zoned(zoned) => write_zoned(&mut out, device, zoned),
        DeviceKind::Flash(flash) => {
            out.text("kind", "flash");
            out.number("capacity_sectors", flash.capacity_sectors);
            write_sources(&mut out, device);
            write_flash(&mut out, flash);
        }
    }
    if let Some(uncertainty) = device.uncertainty {
        out.heading("[uncertainty]");
        out.number("random_read_pct", float(uncertainty.random_read_pct));
        out.number("sequential_read_pct", float(uncertainty.sequential_read_pct));
    }
    out.0
}

fn write_simple(out: &mut Lines, simple: SimpleParameters) {
    out.heading("[simple]");
    out.number("access_time_ms", ms(simple.access_time_ns as i64, 6));
    out.text("bandwidth", &format!("{} B/s", simple.bandwidth_bytes_per_s));
}

fn write_mechanical_keys(out: &mut Lines, mechanical: &MechanicalParameters) {
    out.number("sector_bytes", mechanical.sector_bytes);
    out.number("capacity_sectors", mechanical.capacity);
    out.number("rotation_period_ms", ms(mechanical.rotation_period_ps as i64, 9));
    if mechanical.queue_depth != 1 {
        out.number("queue_depth", mechanical.queue_depth);
    }
}

fn write_zoned(out: &mut Lines, device: &DeviceParameters, zoned: &ZonedParameters) {
    out.text("kind", "zoned");
    match &zoned.drive {
        ZonedDrive::Simple(_, sectors) => {
            out.text("drive", "simple");
            out.number("capacity_sectors", sectors);
        }
        ZonedDrive::Mechanical(mechanical) => {
            out.text("drive", "mechanical");
            write_mechanical_keys(out, mechanical);
        }
    }
    write_sources(out, device);
    let bytes = |sectors: u64| format!("{} B", sectors * SECTOR_BYTES);
    out.heading("[write_zones]");
    out.text("size", &bytes(zoned.zone_sectors));
    match zoned.management {
        Management::Host { conventional_zones } => {
            out.text("management", "host");
            out.number("conventional_zones", conventional_zones);
        }
        Management::Drive { cache_sectors } => {
            out.text("management", "drive");
            out.text("cache", &bytes(cache_sectors));
        }
    }
    match &zoned.drive {
        ZonedDrive::Simple(simple, _) => write_simple(out, *simple),
        ZonedDrive::Mechanical(mechanical) => write_mechanical(out, mechanical),
    }
}

fn write_flash(out: &mut Lines, flash: &FlashParameters) {
    out.heading("[flash]");
    out.number("channels", flash.channels);
    out.number("dies_per_channel", flash.dies_per_channel);
    out.text("page", &format!("{} B", flash.page_bytes));
    out.text("mapping", &format!("{} B", flash.mapping_bytes));
    out.number("pages_per_block", flash.pages_per_block);
    out.number("over_provisioning", float(flash.over_provisioning));
    out.text("placement", flash.placement.name());
    let read_ms: Vec<String> = flash.read.types().iter().map(|ns| ms(*ns as i64, 6)).collect();
    match &read_ms[..] {
        [one] => out.number("read_ms", one),
        types => out.number("read_ms", format!("[{}]", types.join(", "))),
    }
    out.number("program_ms", ms(flash.program_ns as i64, 6));
    out.number("erase_ms", ms(flash.erase_ns as i64, 6));
    out.text("channel_rate", &format!("{} B/s", flash.channel_bytes_per_s));
    out.text("link_rate", &format!("{} B/s", flash.link_bytes_per_s));
    out.time("request_overhead_ms", flash.request_overhead_ns);
    out.time("command_ms", flash.command_ns);
    out.number("write_command_ms", ms(flash.write_command_ns as i64, 6));
    out.number("queue_depth", flash.queue_depth);
    out.text("write_buffer", &format!("{} B", flash.write_buffer_bytes));
}

fn write_sources(out: &mut Lines, device: &DeviceParameters) {
    if device.sources.is_empty() {
        return;
    }
    out.heading("[sources]");
    for (key, source) in &device.sources {
        let bare = key.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        let key = if bare { key.clone() } else { toml::Value::String(key.clone()).to_string() };
        out.text(&key, source);
    }
}

fn write_mechanical(out: &mut Lines, mechanical: &MechanicalParameters) {
    write_geometry(out, &mechanical.geometry);
    out.heading("[seek]");
    write_seek(out, &mechanical.seek);
    out.number("head_switch_ms", ms(mechanical.head_switch_ns as i64, 6));
    out.number("write_settle_ms", ms(mechanical.write_settle_ns, 6));
    if mechanical.same_cylinder_ns != 0 {
        out.number("same_cylinder_ms", ms(mechanical.same_cylinder_ns as i64, 6));
    }
    write_overhead(out, &mechanical.overhead);
    out.heading("[bus]");
    let bus = &mechanical.bus;
    out.number("read_sector_ms", ms(bus.read_sector_ps as i64, 9));
    out.number("write_sector_ms", ms(bus.write_sector_ps as i64, 9));
    out.flag("hold_read", bus.hold_read, false);
    out.flag("hold_write", bus.hold_write, false);
    if let Some(bytes) = bus.read_fence_bytes {
        out.number("read_fence_bytes", bytes);
    }
    out.flag("read_on_crossing", bus.read_on_crossing, false);
    if bus.turnaround_ns != 0 {
        out.number("turnaround_ms", ms(bus.turnaround_ns as i64, 6));
    }
    if let Some(sectors) = bus.write_reserve_sectors {
        out.number("write_reserve_sectors", sectors);
    }
    write_buffer(out, &mechanical.buffer);
    for zone in &mechanical.geometry.zones {
        write_zone(out, zone);
    }
}

fn write_geometry(out: &mut Lines, geometry: &GeometryParameters) {
    out.heading("[geometry]");
    out.number("surfaces", geometry.surfaces);
    out.number("cylinders", geometry.cylinders);
    out.text("track_order", geometry.track_order.name());
    if geometry.track_order.seek_first().is_some() {
        out.number("group_cylinders", geometry.group_cylinders);
    }
    out.text("sparing", geometry.sparing.name());
    out.number("spare_range_cylinders", geometry.spare_range_cylinders);
}

fn write_zone(out: &mut Lines, zone: &ZoneParameters) {
    out.heading("[[zone]]");
    out.number("first_cylinder", zone.first_cylinder);
    out.number("last_cylinder", zone.last_cylinder);
    out.number("sectors_per_track", zone.sectors_per_track);
    out.number("first_sector_offset", float(zone.first_sector_offset));
    out.number("track_skew", float(zone.track_skew));
    out.number("cylinder_skew", float(zone.cylinder_skew));
    out.number("reserved_sectors", zone.reserved_sectors);
    out.number("spares", zone.spares);
    let slips: Vec<String> = zone.slips.iter().map(u64::to_string).collect();
    out.number("slips", format!("[{}]", slips.join(", ")));
    let defects: Vec<String> =
        zone.defects.iter().map(|(from, to)| format!("[{from}, {to}]")).collect();
    out.number("defects", format!("[{}]", defects.join(", ")));
}

fn write_seek(out: &mut Lines, seek: &SeekCurve) {
    match seek {
        SeekCurve::Points(points) => {
            out.line("points_ms = [");
            for (distance, ns) in points {
                out.line(&format!("  [{distance}, {}],", ms(*ns as i64, 6)));
            }
            out.line("]");
        }
        SeekCurve::Formula { short_ns, boundary, root_ms, line_ms } => {
            let mut short = String::new();
            for ns in short_ns {
                // Writing to a string cannot fail.
                let _ = write!(short, "{}, ", ms(*ns as i64, 6));
            }
            out.number("short_ms", format!("[{}]", short.trim_end_matches(", ")));
            out.number("boundary_cylinders", boundary);
            out.number("root_ms", format!("[{}, {}]", float(root_ms.0), float(root_ms.1)));
            out.number("line_ms", format!("[{}, {}]", float(line_ms.0), float(line_ms.1)));
        }
    }
}

fn write_overhead(out: &mut Lines, overhead: &OverheadParameters) {
    out.heading("[overhead]");
    out.time("per_request_ms", overhead.per_request_ns);
    for (name, times) in [
        ("read_hit", overhead.read_hit_ns),
        ("read_miss", overhead.read_miss_ns),
        ("write_hit", overhead.write_hit_ns),
        ("write_miss", overhead.write_miss_ns),
        ("read_disconnect", overhead.read_disconnect_ns),
    ] {
        out.time(&format!("{name}_after_read_ms"), times[0]);
        out.time(&format!("{name}_after_write_ms"), times[1]);
    }
    out.time("read_completion_ms", overhead.read_completion_ns);
    out.time("write_completion_ms", overhead.write_completion_ns);
    out.time("data_preparation_ms", overhead.data_preparation_ns);
    out.time("first_reselect_ms", overhead.first_reselect_ns);
    out.time("other_reselect_ms", overhead.other_reselect_ns);
    out.time("write_disconnect_ms", overhead.write_disconnect_ns);
    out.time("minimum_seek_delay_ms", overhead.minimum_seek_delay_ns);
    if let Some(extra) = &overhead.extra_write_disconnect {
        out.heading("[overhead.extra_write_disconnect]");
        out.time("command_ms", extra.command_ns);
        out.time("disconnect_ms", extra.disconnect_ns);
        out.time("away_ms", extra.away_ns);
        out.time("second_disconnect_ms", extra.second_disconnect_ns);
        out.time("seek_delay_ms", extra.seek_delay_ns);
    }
}

fn write_buffer(out: &mut Lines, buffer: &BufferParameters) {
    out.heading("[buffer]");
    out.number("segments", buffer.segments);
    if buffer.segments > 0 {
        out.number("segment_sectors", buffer.segment_sectors);
    }
    out.number("write_segments", buffer.write_segments);
    out.flag("dedicated_write_segment", buffer.dedicated_write_segment, false);
    out.flag("caching", buffer.caching, true);
    out.text("read_ahead", name_of(&ReadAhead::ALL, buffer.read_ahead));
    out.number("read_ahead_minimum_sectors", buffer.read_ahead_minimum);
    out.number("read_ahead_maximum_sectors", buffer.read_ahead_maximum);
    out.text("requested_data", name_of(&KeepRequested::ALL, buffer.requested_data));
    out.flag("read_ahead_on_idle_hit", buffer.read_ahead_on_idle_hit, false);
    out.flag("read_any_free", buffer.read_any_free, false);
    out.flag("stop_in_sector", buffer.stop_in_sector, false);
    out.number("read_water_mark", float(buffer.read_water_mark));
    out.number("write_water_mark", float(buffer.write_water_mark));
    out.flag("water_marks_by_request", buffer.water_marks_by_request, true);
    out.text("fast_write", name_of(&FastWrite::ALL, buffer.fast_write));
    out.flag("read_on_arrival", buffer.read_on_arrival, false);
    out.flag("write_on_arrival", buffer.write_on_arrival, false);
    out.flag("combine_sequential_writes", buffer.combine_sequential_writes, true);
    out.flag("read_hits_on_write_data", buffer.read_hits_on_write_data, true);
    out.flag("write_hit_stops_read_ahead", buffer.write_hit_stops_read_ahead, true);
    out.flag("partial_hit_immediate", buffer.partial_hit_immediate, true);
    out.flag("almost_read_hits", buffer.almost_read_hits, false);
}
