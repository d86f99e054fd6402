//! DiskSim disk parameters: `.diskspecs` -> `.model` -> `.seek`.
//!
//! Meaning of the parameters after `disk.modspec`, `layout_g1.modspec`, `layout_g1_zone.modspec` and
//! `mech_g1.modspec` of DiskSim 4.0.

use std::collections::BTreeMap;
use std::path::Path;

use super::libparam::{Block, ValueKind, beside, error, read_blocks};
use super::seek_file;
use super::{Imported, extracted};
use crate::geometry::Geometry;
use crate::parameters::{
    BufferParameters, BusParameters, ExtraDisconnect, FastWrite, GROUP_CYLINDERS,
    GeometryParameters, KeepRequested, MechanicalParameters, OverheadParameters, ReadAhead,
    SeekCurve, Sparing, TrackOrder, ZoneParameters,
};
use crate::{DeviceError, DeviceKind, DeviceParameters};

pub(super) fn import(path: &Path, name: Option<&str>) -> Result<Imported, DeviceError> {
    let blocks = read_blocks(path)?;
    let disk = blocks
        .iter()
        .find(|block| block.kind == "disksim_disk")
        .ok_or_else(|| error(path, 1, "holds no disksim_disk block"))?;
    let model = disk.block("Model", &blocks)?;
    let layout = model.block("Layout Model", &[])?;
    if layout.kind != "dm_layout_g1" {
        return Err(error(
            &layout.file,
            layout.line,
            format!("layout model '{}' is not known, only dm_layout_g1", layout.kind),
        ));
    }
    let mechanics = model.block("Mechanical Model", &[])?;
    if mechanics.kind != "dm_mech_g1" {
        return Err(error(
            &mechanics.file,
            mechanics.line,
            format!("mechanical model '{}' is not known, only dm_mech_g1", mechanics.kind),
        ));
    }
    let mut notes = Vec::new();
    let mut geometry = read_geometry(&model, &layout, &mut notes)?;
    let dropped = Geometry::drop_unfitting_slips(&mut geometry);
    if dropped > 0 {
        notes.push(format!("{dropped} slips outnumber the spares of their unit and are left out."));
    }
    let held = Geometry::check(&geometry).map_err(|(key, message)| DeviceError::Key {
        file: layout.file.display().to_string(),
        message: format!("{key}: {message}"),
    })?;
    let declared = model.whole("Block count")?;
    let capacity = declared.min(held);
    if declared != held {
        notes.push(format!(
            "The model file says {declared} blocks; its zones hold {held}. The smaller is taken."
        ));
    }
    let mut repairs = Repairs::default();
    let (seek, head_switch_ns, write_settle_ns) = read_mechanics(&mechanics, &mut repairs.seek)?;
    let rpm = mechanics.number("Rotation speed (in rpms)")?;
    if rpm < 1.0 {
        return Err(error(&mechanics.file, mechanics.line, format!("rotation speed is {rpm} rpm")));
    }
    let mut mechanical = MechanicalParameters {
        sector_bytes: 512,
        capacity,
        rotation_period_ps: (60e12 / rpm).round() as u64,
        geometry,
        seek,
        head_switch_ns,
        write_settle_ns,
        same_cylinder_ns: 0,
        overhead: read_overhead(disk)?,
        bus: read_bus(disk, &mut notes)?,
        buffer: read_buffer(disk)?,
        // DiskSim's drives have a queue and a scheduler of their own, which are not imported.
        queue_depth: 1,
    };
    extracted::interpret(&mut mechanical, &mut repairs.overhead);
    let stem =
        path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let mut sources = sources(path, &model, &mechanics, &repairs);
    if mechanical.same_cylinder_ns != 0 {
        let chosen = "chosen by us: part of the shortest seek (docs/concepts/disk-model.md)";
        sources.insert("seek.same_cylinder_ms".to_owned(), chosen.to_owned());
    }
    let parameters = DeviceParameters {
        name: name.map_or_else(|| catalogue_name(&stem), str::to_owned),
        title: format!("{} (DiskSim parameters)", disk.name),
        capacity_sectors: mechanical.capacity,
        kind: DeviceKind::Mechanical(Box::new(mechanical)),
        sources,
        uncertainty: None,
    };
    // What was read must also pass the checks of a device file: the same rules for every way in.
    let text = parameters.to_toml();
    let checked = DeviceParameters::from_toml(&path.display().to_string(), &text)?;
    debug_assert_eq!(checked, parameters, "a device file reads back as it was written");
    notes.splice(0..0, repairs.seek.into_iter().chain(repairs.overhead));
    Ok(Imported { parameters, notes })
}

fn catalogue_name(stem: &str) -> String {
    stem.chars()
        .map(
            |letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' },
        )
        .collect()
}

/// What was changed, one line each: notes of the import, and part of the sources of the numbers that they are about.
#[derive(Default)]
struct Repairs {
    seek: Vec<String>,
    overhead: Vec<String>,
}

fn sources(
    path: &Path,
    model: &Block,
    mechanics: &Block,
    repairs: &Repairs,
) -> BTreeMap<String, String> {
    let repaired = |source: String, notes: &[String]| [&[source], notes].concat().join("; ");
    let file = |path: &Path| {
        path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    };
    let specification = format!("DiskSim 4.0, {}", file(path));
    let model_file = format!("DiskSim 4.0, {}", file(&model.file));
    let seek = match mechanics.get("Full seek curve").map(|value| &value.kind) {
        Some(ValueKind::Word(name)) => format!("DiskSim 4.0, {name}"),
        _ => model_file.clone(),
    };
    BTreeMap::from([
        ("sector_bytes".to_owned(), "DiskSim 4.0: every block is 512 bytes".to_owned()),
        ("capacity_sectors".to_owned(), model_file.clone()),
        ("rotation_period_ms".to_owned(), model_file.clone()),
        ("geometry".to_owned(), model_file.clone()),
        ("zone".to_owned(), model_file.clone()),
        ("seek".to_owned(), model_file),
        ("seek.points_ms".to_owned(), repaired(seek, &repairs.seek)),
        ("overhead".to_owned(), repaired(specification.clone(), &repairs.overhead)),
        ("bus".to_owned(), specification.clone()),
        ("buffer".to_owned(), specification),
    ])
}

fn read_geometry(
    model: &Block,
    layout: &Block,
    notes: &mut Vec<String>,
) -> Result<GeometryParameters, DeviceError> {
    let choice = |key: &str, count: usize| -> Result<usize, DeviceError> {
        let number = layout.whole(key)? as usize;
        if number < count {
            Ok(number)
        } else {
            let line = layout.get(key).map_or(layout.line, |value| value.line);
            Err(error(
                &layout.file,
                line,
                format!("'{key}' is {number}; 0 to {} are known", count - 1),
            ))
        }
    };
    let track_order = TrackOrder::ALL[choice("LBN-to-PBN mapping scheme", 3)?].0;
    let sparing = Sparing::ALL[choice("Sparing scheme used", 11)?].0;
    let range = layout.whole("Rangesize for sparing")?.max(1) as u32;
    let skew_units = layout.optional_word("Skew units")?.unwrap_or("sectors");
    let mut zones: Vec<ZoneParameters> = Vec::new();
    for item in layout.list("Zones")? {
        let ValueKind::Block(block) = &item.kind else {
            return Err(error(&layout.file, item.line, "'Zones' must hold zone blocks"));
        };
        zones.push(read_zone(block, skew_units, zones.last(), notes)?);
    }
    if zones.is_empty() {
        return Err(layout.missing("Zones"));
    }
    let declared = model.whole("Number of cylinders")? as u32;
    let last = zones.last().map_or(0, |zone| zone.last_cylinder);
    let cylinders = declared.max(last.saturating_add(1));
    if cylinders > declared {
        notes.push(format!(
            "The model file says {declared} cylinders; its last zone ends at cylinder {last}, counted from 0. \
             The disk has {cylinders} here."
        ));
    }
    let surfaces = model.whole("Number of data surfaces")? as u32;
    if surfaces == 0 {
        return Err(error(&model.file, model.line, "'Number of data surfaces' is 0"));
    }
    Ok(GeometryParameters {
        surfaces,
        cylinders,
        track_order,
        sparing,
        group_cylinders: GROUP_CYLINDERS,
        spare_range_cylinders: range,
        zones,
    })
}

fn read_zone(
    block: &Block,
    skew_units: &str,
    before: Option<&ZoneParameters>,
    notes: &mut Vec<String>,
) -> Result<ZoneParameters, DeviceError> {
    let first_cylinder = block.whole("First cylinder number")? as u32;
    let last_cylinder = block.whole("Last cylinder number")? as u32;
    let sectors_per_track = block.whole("Blocks per track")? as u32;
    let fail = |key: &str, message: String| {
        let line = block.get(key).map_or(block.line, |value| value.line);
        error(&block.file, line, message)
    };
    if last_cylinder < first_cylinder {
        return Err(fail(
            "Last cylinder number",
            format!("the zone ends at cylinder {last_cylinder}, before its start {first_cylinder}"),
        ));
    }
    if let Some(before) = before
        && first_cylinder < before.last_cylinder
    {
        return Err(fail(
            "First cylinder number",
            format!(
                "the zone starts at cylinder {first_cylinder}, but the zone before it reaches to {}",
                before.last_cylinder
            ),
        ));
    }
    // The number of cylinders decides how many blocks a zone holds; where it starts, only how far the arm moves.
    let shift = u32::from(before.is_some_and(|before| before.last_cylinder == first_cylinder));
    if shift > 0 {
        notes.push(format!(
            "A zone starts at cylinder {first_cylinder}, where the one before it ends: it is moved on by \
             one cylinder."
        ));
    }
    if sectors_per_track == 0 {
        return Err(fail("Blocks per track", "'Blocks per track' is 0".to_owned()));
    }
    let units = block.optional_word("Skew units")?.unwrap_or(skew_units);
    let skew = |key: &str, required: bool| -> Result<f64, DeviceError> {
        let value =
            if required { block.number(key)? } else { block.optional_number(key)?.unwrap_or(0.0) };
        // DiskSim cuts skews given in sectors to whole ones. A whole turn more or less is the same angle.
        let sectors = if units == "revolutions" {
            value * f64::from(sectors_per_track)
        } else {
            value.trunc()
        };
        let turn = f64::from(sectors_per_track);
        Ok(if (0.0..=turn).contains(&sectors) { sectors } else { sectors.rem_euclid(turn) })
    };
    let mut slips = block.wholes("slips")?;
    slips.sort_unstable();
    slips.dedup();
    let defects = block.wholes("defects")?;
    if !defects.len().is_multiple_of(2) {
        return Err(fail("defects", format!("{} numbers do not pair up", defects.len())));
    }
    Ok(ZoneParameters {
        first_cylinder: first_cylinder.saturating_add(shift),
        last_cylinder: last_cylinder.saturating_add(shift),
        sectors_per_track,
        first_sector_offset: skew("Offset of first block", true)?,
        track_skew: skew("Skew for track switch", false)?,
        cylinder_skew: skew("Skew for cylinder switch", false)?,
        reserved_sectors: block.whole("Empty space at zone front")?,
        spares: block.whole("Number of spares")?,
        slips,
        defects: defects.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect(),
    })
}

fn ns(ms: f64) -> u64 {
    (ms.max(0.0) * 1e6).round() as u64
}

fn read_mechanics(
    mechanics: &Block,
    notes: &mut Vec<String>,
) -> Result<(SeekCurve, u64, i64), DeviceError> {
    let head_switch_ns = ns(mechanics.number("Head switch time")?);
    let write_settle_ns = (mechanics.number("Add. write settling delay")? * 1e6).round() as i64;
    let kind =
        mechanics.optional_word("Seek type")?.ok_or_else(|| mechanics.missing("Seek type"))?;
    let curve = match kind {
        // A curve file takes precedence over the other types, as in DiskSim.
        _ if mechanics.get("Full seek curve").is_some() => read_seek_curve(mechanics, notes)?,
        "extracted" => return Err(mechanics.missing("Full seek curve")),
        "hpl" | "hplplus10" => read_hpl(mechanics, kind == "hplplus10")?,
        "constant" => {
            let time = mechanics.number("Constant seek time")?;
            SeekCurve::Formula {
                short_ns: Vec::new(),
                boundary: 0,
                root_ms: (time, 0.0),
                line_ms: (time, 0.0),
            }
        }
        other => {
            let line = mechanics.get("Seek type").map_or(mechanics.line, |value| value.line);
            return Err(error(
                &mechanics.file,
                line,
                format!(
                    "seek type '{other}' is not known; extracted, hpl, hplplus10 and constant are"
                ),
            ));
        }
    };
    Ok((curve, head_switch_ns, write_settle_ns))
}

fn read_hpl(mechanics: &Block, first_ten: bool) -> Result<SeekCurve, DeviceError> {
    let values = mechanics.numbers("HPL seek equation values")?;
    let [boundary, root, root_slope, line, line_slope, single] = values.as_slice() else {
        return Err(error(
            &mechanics.file,
            mechanics.line,
            format!("'HPL seek equation values' needs six numbers, it has {}", values.len()),
        ));
    };
    let mut short_ns: Vec<u64> = Vec::new();
    if first_ten {
        short_ns = mechanics.numbers("First ten seek times")?.into_iter().map(ns).collect();
        if short_ns.len() != 10 {
            return Err(error(
                &mechanics.file,
                mechanics.line,
                format!("'First ten seek times' needs ten numbers, it has {}", short_ns.len()),
            ));
        }
    } else if *single >= 0.0 {
        short_ns.push(ns(*single));
    }
    Ok(SeekCurve::Formula {
        short_ns,
        boundary: boundary.max(0.0) as u32,
        root_ms: (*root, *root_slope),
        line_ms: (*line, *line_slope),
    })
}

fn read_seek_curve(mechanics: &Block, notes: &mut Vec<String>) -> Result<SeekCurve, DeviceError> {
    let name = mechanics
        .optional_word("Full seek curve")?
        .ok_or_else(|| mechanics.missing("Full seek curve"))?;
    let line = mechanics.get("Full seek curve").map_or(mechanics.line, |value| value.line);
    let path = beside(&mechanics.file, name);
    let text = agewell_core::read_text(&path).map_err(|cause| {
        error(
            &mechanics.file,
            line,
            format!("the seek curve {} cannot be read: {cause}", path.display()),
        )
    })?;
    let measured = seek_file::read(&path, &text)?;
    notes.extend(measured.notes);
    Ok(SeekCurve::Points(measured.points))
}

fn read_overhead(disk: &Block) -> Result<OverheadParameters, DeviceError> {
    let scale = disk.optional_number("Time scale for overheads")?.unwrap_or(1.0);
    let time = |key: &str| -> Result<u64, DeviceError> {
        Ok(ns(disk.optional_number(key)?.unwrap_or(0.0) * scale))
    };
    let pair = |read: &str, write: &str| -> Result<[u64; 2], DeviceError> {
        Ok([time(read)?, time(write)?])
    };
    let leaves_twice =
        disk.optional_number("Extra write disconnect")?.is_some_and(|value| value > 0.0);
    let extra = if leaves_twice {
        Some(ExtraDisconnect {
            command_ns: time("Extradisc command overhead")?,
            disconnect_ns: time("Extradisc disconnect overhead")?,
            away_ns: time("Extradisc inter-disconnect delay")?,
            second_disconnect_ns: time("Extradisc 2nd disconnect overhead")?,
            seek_delay_ns: time("Extradisc seek delta")?,
        })
    } else {
        None
    };
    Ok(OverheadParameters {
        per_request_ns: time("Per-request overhead time")?,
        read_hit_ns: pair("Read hit over. after read", "Read hit over. after write")?,
        read_miss_ns: pair("Read miss over. after read", "Read miss over. after write")?,
        write_hit_ns: pair("Write hit over. after read", "Write hit over. after write")?,
        write_miss_ns: pair("Write miss over. after read", "Write miss over. after write")?,
        read_completion_ns: time("Read completion overhead")?,
        write_completion_ns: time("Write completion overhead")?,
        data_preparation_ns: time("Data preparation overhead")?,
        first_reselect_ns: time("First reselect overhead")?,
        other_reselect_ns: time("Other reselect overhead")?,
        read_disconnect_ns: pair("Read disconnect afterread", "Read disconnect afterwrite")?,
        write_disconnect_ns: time("Write disconnect overhead")?,
        extra_write_disconnect: extra,
        minimum_seek_delay_ns: time("Minimum seek delay")?,
    })
}

fn read_bus(disk: &Block, notes: &mut Vec<String>) -> Result<BusParameters, DeviceError> {
    let sector_ms = disk.optional_number("Bulk sector transfer time")?.unwrap_or(0.0);
    let sector_ps = (sector_ms * 1e9).round() as u64;
    if sector_ps == 0 {
        notes.push(
            "The specification leaves the bus to the host (bulk sector transfer time 0): it is \
             simulated as fast as the medium until bus.read_sector_ms is given; validation \
             measures it from the trace."
                .to_owned(),
        );
    }
    let flag = |key: &str| -> Result<bool, DeviceError> {
        Ok(disk.optional_number(key)?.unwrap_or(0.0) != 0.0)
    };
    Ok(BusParameters {
        read_sector_ps: sector_ps,
        write_sector_ps: sector_ps,
        hold_read: flag("Hold bus entire read xfer")?,
        hold_write: flag("Hold bus entire write xfer")?,
        read_fence_bytes: None,
        read_on_crossing: false,
        turnaround_ns: 0,
        write_reserve_sectors: None,
    })
}

fn read_buffer(disk: &Block) -> Result<BufferParameters, DeviceError> {
    let default = BufferParameters::default();
    let flag = |key: &str, default: bool| -> Result<bool, DeviceError> {
        Ok(disk.optional_number(key)?.map_or(default, |value| value != 0.0))
    };
    let choice = |key: &str, low: i64, count: usize| -> Result<usize, DeviceError> {
        let value = disk.optional_number(key)?.unwrap_or(0.0) as i64 - low;
        usize::try_from(value).ok().filter(|index| *index < count).ok_or_else(|| {
            let line = disk.get(key).map_or(disk.line, |value| value.line);
            error(&disk.file, line, format!("'{key}' is out of its range"))
        })
    };
    let whole = |key: &str| -> Result<u64, DeviceError> {
        if disk.get(key).is_some() { disk.whole(key) } else { Ok(0) }
    };
    Ok(BufferParameters {
        segments: whole("Number of buffer segments")? as u32,
        segment_sectors: whole("Segment size (in blks)")?,
        write_segments: whole("Maximum number of write segments")?.max(1) as u32,
        dedicated_write_segment: flag("Use separate write segment", false)?,
        caching: flag("Enable caching in buffer", true)?,
        read_ahead: ReadAhead::ALL[choice("Buffer continuous read", 0, 5)?].0,
        read_ahead_minimum: whole("Minimum read-ahead (blks)")?,
        read_ahead_maximum: whole("Maximum read-ahead (blks)")?,
        requested_data: match choice("Read-ahead over requested", -1, 3)? {
            0 => KeepRequested::Drop,
            1 => KeepRequested::Keep,
            _ => KeepRequested::Replace,
        },
        read_ahead_on_idle_hit: flag("Read-ahead on idle hit", false)?,
        read_any_free: flag("Read any free blocks", false)?,
        stop_in_sector: flag("Stop prefetch in sector", false)?,
        read_water_mark: disk.optional_number("High (read) water mark")?.unwrap_or(0.0),
        write_water_mark: disk.optional_number("Low (write) water mark")?.unwrap_or(0.0),
        water_marks_by_request: flag("Set watermark by reqsize", true)?,
        fast_write: FastWrite::ALL[choice("Fast write level", 0, 3)?].0,
        read_on_arrival: flag("Immediate buffer read", false)?,
        write_on_arrival: flag("Immediate buffer write", false)?,
        combine_sequential_writes: flag("Combine seq writes", default.combine_sequential_writes)?,
        read_hits_on_write_data: flag("Allow read hits on write data", true)?,
        write_hit_stops_read_ahead: flag("Write hit stop prefetch", true)?,
        partial_hit_immediate: flag("Immed transfer partial hit", true)?,
        almost_read_hits: flag("Allow almost read hits", false)?,
    })
}
