//! The drive that an experiment names.

use std::collections::BTreeMap;

use agewell_core::SECTOR_BYTES;
use agewell_disk::{Device, DeviceKind, DeviceParameters, WriteRule};

use crate::config::DeviceChoice;
use crate::error::RunError;
use crate::places::{Places, resolve_path};

/// Refuses a device that takes writes only in order for `what`, which writes anywhere.
///
/// # Errors
/// If the device has such a rule.
pub fn require_writes_anywhere(device: &impl Device, what: &str) -> Result<(), RunError> {
    match device.layout_advice().write_rule {
        WriteRule::Anywhere => Ok(()),
        WriteRule::SequentialInZones { .. } => Err(RunError::Input(format!(
            "[device]: the drive is written in order, zone by zone, and {what} writes anywhere; \
             choose another drive, or one that manages its zones itself (management = \"drive\")"
        ))),
    }
}

fn load_named(name: &str, places: Places) -> Result<DeviceParameters, RunError> {
    let beside = resolve_path(places.base, name);
    let found = if beside.is_file() {
        DeviceParameters::load(&beside)
    } else {
        DeviceParameters::find(name, places.catalogue)
    };
    found.map_err(RunError::Device)
}

/// Device parameters as the experiment chooses them.
///
/// # Errors
/// If there is no such device, or its parameters do not do.
pub fn load_device(choice: &DeviceChoice, places: Places) -> Result<DeviceParameters, RunError> {
    match choice {
        DeviceChoice::Model(name) => load_named(name, places),
        DeviceChoice::Simple(simple) => {
            let (bytes, parameters) = simple.as_device()?;
            Ok(DeviceParameters {
                name: "simple".into(),
                title: "a disk of access time and bandwidth".into(),
                capacity_sectors: bytes / SECTOR_BYTES,
                kind: DeviceKind::Simple(parameters),
                sources: BTreeMap::new(),
                uncertainty: None,
            })
        }
        DeviceChoice::Inline(value) => {
            DeviceParameters::from_value("[device]", value.clone()).map_err(RunError::Device)
        }
    }
}
