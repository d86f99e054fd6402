//! Where each number of a device file comes from.

use std::collections::BTreeMap;

use agewell_config::ConfigError;
use toml::{Table, Value};

pub(super) fn read(
    file: &mut agewell_config::Table,
) -> Result<BTreeMap<String, String>, ConfigError> {
    match file.value("sources") {
        None => Ok(BTreeMap::new()),
        Some(serde_json::Value::Object(sources)) => sources
            .into_iter()
            .map(|(key, value)| match value {
                serde_json::Value::String(text) if !text.trim().is_empty() => Ok((key, text)),
                other => {
                    Err(file.invalid("sources", format!("{key}: must be a text, not {other}")))
                }
            })
            .collect(),
        Some(other) => Err(file.invalid("sources", format!("must be a table, found {other}"))),
    }
}

/// The key paths of `device` that hold a number and have no source, neither of their own nor of a table around them.
///
/// The catalogue's tests refuse a device file for which this is not empty.
pub fn missing_sources(device: &Table) -> Vec<String> {
    let empty = Table::new();
    let sources = device.get("sources").and_then(Value::as_table).unwrap_or(&empty);
    let mut missing = Vec::new();
    for (key, value) in device {
        if key != "sources" {
            collect(key, value, sources, &mut missing);
        }
    }
    missing.sort();
    missing.dedup();
    missing
}

fn collect(path: &str, value: &Value, sources: &Table, missing: &mut Vec<String>) {
    if sources.contains_key(path) {
        return;
    }
    match value {
        Value::Integer(_) | Value::Float(_) => missing.push(path.to_owned()),
        // Rates and sizes are numbers with a unit; names and titles are not.
        Value::String(text) if text.starts_with(|first: char| first.is_ascii_digit()) => {
            missing.push(path.to_owned());
        }
        Value::Table(table) => {
            for (key, inner) in table {
                collect(&format!("{path}.{key}"), inner, sources, missing);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| match item {
            Value::Table(table) => {
                for (key, inner) in table {
                    collect(&format!("{path}.{key}"), inner, sources, missing);
                }
            }
            other => collect(path, other, sources, missing),
        }),
        _ => {}
    }
}
