//! Reading one table of an experiment: every key is asked for by name and kind, and what nobody
//! asked for is an error that names the nearest key somebody did ask for.

use agewell_core::{
    SimDuration, parse_bytes, parse_bytes_per_second, parse_duration, unknown_key_message,
};
use serde_json::{Map, Value};

use super::ConfigError;

/// A table being read. Call [`Table::finish`] after the last key.
#[derive(Debug)]
pub struct Table<'a> {
    place: String,
    values: Map<String, Value>,
    asked: Vec<&'a str>,
}

impl<'a> Table<'a> {
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
    pub fn value(&mut self, key: &'a str) -> Option<Value> {
        self.asked.push(key);
        self.values.get(key).cloned()
    }

    /// A string.
    ///
    /// # Errors
    /// If the value is of another kind.
    pub fn string(&mut self, key: &'a str) -> Result<Option<String>, ConfigError> {
        self.value(key)
            .map(|value| match value {
                Value::String(text) => Ok(text),
                other => Err(self.wrong(key, "a string", &other)),
            })
            .transpose()
    }

    /// True or false.
    ///
    /// # Errors
    /// If the value is of another kind.
    pub fn boolean(&mut self, key: &'a str) -> Result<Option<bool>, ConfigError> {
        self.value(key)
            .map(|value| value.as_bool().ok_or_else(|| self.wrong(key, "true or false", &value)))
            .transpose()
    }

    /// A whole number that is not negative.
    ///
    /// # Errors
    /// If the value is of another kind.
    pub fn whole(&mut self, key: &'a str) -> Result<Option<u64>, ConfigError> {
        self.value(key)
            .map(|value| value.as_u64().ok_or_else(|| self.wrong(key, "a whole number", &value)))
            .transpose()
    }

    /// A number within `low..=high`.
    ///
    /// # Errors
    /// If the value is of another kind or out of range.
    pub fn number(
        &mut self,
        key: &'a str,
        low: f64,
        high: f64,
    ) -> Result<Option<f64>, ConfigError> {
        self.value(key)
            .map(|value| match value.as_f64() {
                Some(number) if (low..=high).contains(&number) => Ok(number),
                _ => Err(self.wrong(key, &format!("a number from {low} to {high}"), &value)),
            })
            .transpose()
    }

    /// A list of strings.
    ///
    /// # Errors
    /// If the value is of another kind.
    pub fn strings(&mut self, key: &'a str) -> Result<Option<Vec<String>>, ConfigError> {
        self.value(key)
            .map(|value| {
                value
                    .as_array()
                    .and_then(|list| {
                        list.iter().map(|item| item.as_str().map(str::to_owned)).collect()
                    })
                    .ok_or_else(|| self.wrong(key, "a list of strings", &value))
            })
            .transpose()
    }

    /// A duration with its unit, such as `"1 h"`.
    ///
    /// # Errors
    /// If the value is not a string that [`parse_duration`] takes.
    pub fn duration(&mut self, key: &'a str) -> Result<Option<SimDuration>, ConfigError> {
        self.quantity(key, |text| parse_duration(text).map_err(|error| error.to_string()))
    }

    /// A size with its unit, such as `"8 KiB"`, in bytes.
    ///
    /// # Errors
    /// If the value is not a string that [`parse_bytes`] takes.
    pub fn bytes(&mut self, key: &'a str) -> Result<Option<u64>, ConfigError> {
        self.quantity(key, |text| parse_bytes(text).map_err(|error| error.to_string()))
    }

    /// A rate with its unit, such as `"5 MB/s"`, in bytes per second.
    ///
    /// # Errors
    /// If the value is not a string that [`parse_bytes_per_second`] takes.
    pub fn bytes_per_second(&mut self, key: &'a str) -> Result<Option<u64>, ConfigError> {
        self.quantity(key, |text| parse_bytes_per_second(text).map_err(|error| error.to_string()))
    }

    /// One of `choices`, or `default` if the key is absent.
    ///
    /// # Errors
    /// If the value is something else; the message names the nearest choice.
    pub fn choice<T: Copy>(
        &mut self,
        key: &'a str,
        choices: &[(&str, T)],
        default: Option<T>,
    ) -> Result<T, ConfigError> {
        let Some(given) = self.string(key)? else {
            return default.ok_or_else(|| self.missing(key));
        };
        choices.iter().find(|(name, _)| *name == given).map(|(_, choice)| *choice).ok_or_else(
            || {
                let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
                let hint = match agewell_core::nearest(&given, &names) {
                    Some(near) => format!("did you mean '{near}'?"),
                    None => format!("use one of {}", names.join(", ")),
                };
                ConfigError(format!("{}: {key} = '{given}' is not known; {hint}", self.place))
            },
        )
    }

    /// The error for a key that must be there.
    pub fn missing(&self, key: &str) -> ConfigError {
        ConfigError(format!("{}: '{key}' is missing", self.place))
    }

    /// The error for a key whose value does not do.
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

    fn quantity<T>(
        &mut self,
        key: &'a str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, ConfigError> {
        let Some(text) = self.string(key)? else { return Ok(None) };
        parse(&text).map(Some).map_err(|why| self.invalid(key, why))
    }

    fn wrong(&self, key: &str, expected: &str, found: &Value) -> ConfigError {
        ConfigError(format!("{}: {key} must be {expected}, found {found}", self.place))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_unasked_key_is_an_error_that_names_the_nearest_asked_one() {
        let mut table = Table::new("[run]", json!({"sed": 3})).unwrap();
        assert_eq!(table.whole("seed").unwrap(), None);
        assert_eq!(
            table.finish().unwrap_err().to_string(),
            "[run]: unknown key 'sed'; did you mean 'seed'?"
        );
    }

    #[test]
    fn a_wrong_kind_names_the_place_the_key_and_what_was_found() {
        let mut table = Table::new("[run]", json!({"seed": "x", "share": 2.0})).unwrap();
        assert_eq!(
            table.whole("seed").unwrap_err().to_string(),
            "[run]: seed must be a whole number, found \"x\""
        );
        assert!(table.number("share", 0.0, 1.0).is_err());
    }

    #[test]
    fn a_wrong_choice_names_the_nearest() {
        let mut table = Table::new("[queue]", json!({"discipline": "cscan"})).unwrap();
        let error = table.choice("discipline", &[("c-scan", 1), ("fcfs", 2)], None).unwrap_err();
        assert!(error.to_string().contains("did you mean 'c-scan'?"), "{error}");
    }
}
