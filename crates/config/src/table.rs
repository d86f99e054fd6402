//! Reading one table: every key is asked for by name and form, and what nobody asked for is an error
//! that names the nearest key somebody did ask for.

use std::fmt::{self, Write};

use agewell_core::unknown_key_message;
use serde_json::{Map, Value};

use crate::{KeyForm, Keyed};

/// Why a configuration does not do: one line that names the table, the key and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError(pub String);

impl fmt::Display for ConfigError {
    /// One line, whatever stands in the configuration: names may hold line ends.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| {
            if character.is_control() {
                write!(formatter, "{}", character.escape_debug())
            } else {
                formatter.write_char(character)
            }
        })
    }
}

/// A table being read. Call [`Table::finish`] after the last key.
#[derive(Debug)]
pub struct Table {
    place: String,
    values: Map<String, Value>,
    asked: Vec<&'static str>,
}

impl Table {
    /// A reader over `value`, which stands at `place` (for messages, such as `[workload]`).
    ///
    /// # Errors
    /// If `value` is not a table.
    pub fn new(place: &str, value: Value) -> Result<Self, ConfigError> {
        match value {
            Value::Object(values) => {
                Ok(Self { place: place.to_owned(), values, asked: Vec::new() })
            }
            other => Err(ConfigError(format!("{place}: expected a table, found {other}"))),
        }
    }

    /// The value of `key`, if given.
    pub fn value(&mut self, key: &'static str) -> Option<Value> {
        self.asked.push(key);
        self.values.get(key).cloned()
    }

    /// Whether `key` is given.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// The value of `key` as `form` reads it, or what stands when it is absent.
    ///
    /// # Errors
    /// If the value does not do, or is absent and must be there.
    pub fn key<F: KeyForm>(
        &mut self,
        key: &'static str,
        form: &F,
    ) -> Result<F::Value, ConfigError> {
        match self.value(key) {
            Some(given) => {
                form.read(&given).map_err(|why| ConfigError(format!("{}: {key}{why}", self.place)))
            }
            None => form.absent().ok_or_else(|| self.missing(key)),
        }
    }

    /// The table `key` within this one, if given.
    ///
    /// # Errors
    /// If it is no table.
    pub fn table(&mut self, key: &'static str) -> Result<Option<Self>, ConfigError> {
        let name = format!("[{key}]");
        self.value(key).map(|value| Self::new(&name, value)).transpose()
    }

    /// The tables in the list `key`, none if it is absent.
    ///
    /// # Errors
    /// If it is no list of tables.
    pub fn tables(&mut self, key: &'static str) -> Result<Vec<Self>, ConfigError> {
        let name = |index: usize| format!("[[{key}]] number {}", index + 1);
        match self.value(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(tables)) => {
                let tables = tables.into_iter().enumerate();
                tables.map(|(index, table)| Self::new(&name(index), table)).collect()
            }
            Some(other) => Err(self.invalid(key, format!("must be tables, found {other}"))),
        }
    }

    /// All of the table `key` within this one, which must be there.
    ///
    /// # Errors
    /// As [`Table::table`] and [`Table::finish`].
    pub fn whole_table<K: Keyed>(&mut self, key: &'static str) -> Result<K::Value, ConfigError> {
        let value = self.value(key).ok_or_else(|| self.missing(key))?;
        read_table::<K>(&format!("[{key}]"), value)
    }

    /// The error for a key that must be there.
    #[must_use]
    pub fn missing(&self, key: &str) -> ConfigError {
        ConfigError(format!("{}: '{key}' is missing", self.place))
    }

    /// The error for a key whose value does not do.
    #[must_use]
    pub fn invalid(&self, key: &str, why: impl std::fmt::Display) -> ConfigError {
        ConfigError(format!("{}: {key}: {why}", self.place))
    }

    /// Ends the table.
    ///
    /// # Errors
    /// If a key was given that nobody asked for.
    pub fn finish(self) -> Result<(), ConfigError> {
        match self.values.keys().find(|key| !self.asked.contains(&key.as_str())) {
            Some(stranger) => {
                let mut known = self.asked.clone();
                known.sort_unstable();
                known.dedup();
                Err(ConfigError(unknown_key_message(&self.place, stranger, &known)))
            }
            None => Ok(()),
        }
    }
}

/// Reads the whole of a table.
///
/// # Errors
/// If a key is not known, a value does not do, or one is missing.
pub fn read_table<K: Keyed>(place: &str, value: Value) -> Result<K::Value, ConfigError> {
    let mut table = Table::new(place, value)?;
    let read = K::read(&mut table)?;
    table.finish()?;
    Ok(read)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Form, choice, number, text, whole};

    #[test]
    fn an_unasked_key_is_an_error_that_names_the_nearest_asked_one() {
        let mut table = Table::new("[run]", json!({"sed": 3})).unwrap();
        assert_eq!(table.key("seed", &whole().or(1)).unwrap(), 1);
        assert_eq!(
            table.finish().unwrap_err().to_string(),
            "[run]: unknown key 'sed'; did you mean 'seed'?"
        );
    }

    #[test]
    fn a_wrong_kind_names_the_place_the_key_and_what_was_found() {
        let mut table = Table::new("[run]", json!({"seed": "x", "share": 2.0})).unwrap();
        assert_eq!(
            table.key("seed", &whole().or(1)).unwrap_err().to_string(),
            "[run]: seed must be a whole number, found \"x\""
        );
        assert!(table.key("share", &number(0.0, 1.0).or(0.5)).is_err());
    }

    #[test]
    fn a_wrong_choice_names_the_nearest() {
        let mut table = Table::new("[queue]", json!({"discipline": "cscan"})).unwrap();
        let form = choice(&[("c-scan", 1), ("fcfs", 2)]).required();
        let error = table.key("discipline", &form).unwrap_err();
        assert!(error.to_string().contains("did you mean 'c-scan'?"), "{error}");
    }

    #[test]
    fn an_error_is_one_line_whatever_the_names_are() {
        let table = Table::new("[run]", json!({"a\nb": 1})).unwrap();
        let error = table.finish().unwrap_err().to_string();
        assert!(error.starts_with("[run]: unknown key 'a\\nb'"), "{error}");
        let mut table = Table::new("[queue]", json!({"discipline": "x\r\ny"})).unwrap();
        let error = table.key("discipline", &choice(&[("fcfs", 1)]).required()).unwrap_err();
        assert!(!error.to_string().chars().any(char::is_control), "{error}");
    }

    #[test]
    fn tables_within_a_table_are_read_as_strictly() {
        crate::keys! {
            /// A part.
            struct Part {
                /// how long
                length: u64 = "length" whole().required();
            }
        }
        let given = json!({"part": {"length": 3}, "parts": [{"length": 4}, {"lenght": 5}]});
        let mut table = Table::new("device", given).unwrap();
        assert_eq!(table.whole_table::<Part>("part").unwrap(), Part { length: 3 });
        assert!(table.table("other").unwrap().is_none());
        let missing = table.whole_table::<Part>("other").unwrap_err().to_string();
        assert_eq!(missing, "device: 'other' is missing");
        let mut parts = table.tables("parts").unwrap();
        assert_eq!(Part::read(&mut parts[0]).unwrap(), Part { length: 4 });
        let error = Part::read(&mut parts[1]).unwrap_err().to_string();
        assert_eq!(error, "[[parts]] number 2: 'length' is missing");
        table.finish().unwrap();
    }

    #[test]
    fn what_must_be_there_is_missed() {
        let mut table = Table::new("[workload]", json!({})).unwrap();
        let error = table.key("path", &text().required()).unwrap_err();
        assert_eq!(error.to_string(), "[workload]: 'path' is missing");
        assert_eq!(table.key("format", &text().optional()).unwrap(), None);
    }
}
