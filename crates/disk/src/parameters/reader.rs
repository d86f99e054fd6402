//! Reads one table of a device file: typed access, defaults, and a refusal of every key that nobody asked for.

use toml::{Table, Value};

use crate::DeviceError;

/// One TOML table being read.
///
/// Each accessor marks its key as known; [`TableReader::finish`] refuses what is left over.
pub(crate) struct TableReader<'a> {
    file: &'a str,
    place: String,
    table: &'a Table,
    known: Vec<&'static str>,
}

impl<'a> TableReader<'a> {
    /// A reader of `table`, called `place` in messages.
    pub(crate) fn new(file: &'a str, place: impl Into<String>, table: &'a Table) -> Self {
        Self { file, place: place.into(), table, known: Vec::new() }
    }

    /// An error about `key`.
    pub(crate) fn error(&self, key: &str, message: impl std::fmt::Display) -> DeviceError {
        DeviceError::Key {
            file: self.file.to_owned(),
            message: format!("{}: '{key}' {message}", self.place),
        }
    }

    /// A contradiction at `key`.
    pub(crate) fn inconsistent(&self, key: &str, message: impl std::fmt::Display) -> DeviceError {
        DeviceError::Inconsistent {
            file: self.file.to_owned(),
            key: format!("{}: {key}", self.place),
            message: message.to_string(),
        }
    }

    /// Whether `key` is present.
    pub(crate) fn has(&mut self, key: &'static str) -> bool {
        self.value(key).is_some()
    }

    fn value(&mut self, key: &'static str) -> Option<&'a Value> {
        self.known.push(key);
        self.table.get(key)
    }

    fn required<T>(&self, key: &str, value: Option<T>) -> Result<T, DeviceError> {
        value.ok_or_else(|| self.error(key, "is missing"))
    }

    /// A string, if present.
    pub(crate) fn optional_text(
        &mut self,
        key: &'static str,
    ) -> Result<Option<&'a str>, DeviceError> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.error(key, format!("must be a string, not {other}"))),
        }
    }

    /// A string.
    pub(crate) fn text(&mut self, key: &'static str) -> Result<&'a str, DeviceError> {
        let value = self.optional_text(key)?;
        self.required(key, value)
    }

    /// A truth value, or `default`.
    pub(crate) fn flag(&mut self, key: &'static str, default: bool) -> Result<bool, DeviceError> {
        match self.value(key) {
            None => Ok(default),
            Some(Value::Boolean(value)) => Ok(*value),
            Some(other) => Err(self.error(key, format!("must be true or false, not {other}"))),
        }
    }

    /// A whole number, if present, from `low` to `high`.
    pub(crate) fn optional_whole(
        &mut self,
        key: &'static str,
        low: u64,
        high: u64,
    ) -> Result<Option<u64>, DeviceError> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Integer(value))
                if u64::try_from(*value).is_ok_and(|value| (low..=high).contains(&value)) =>
            {
                Ok(Some(*value as u64))
            }
            Some(other) => Err(self
                .error(key, format!("must be a whole number from {low} to {high}, not {other}"))),
        }
    }

    /// A whole number from `low` to `high`.
    pub(crate) fn whole(
        &mut self,
        key: &'static str,
        low: u64,
        high: u64,
    ) -> Result<u64, DeviceError> {
        let value = self.optional_whole(key, low, high)?;
        self.required(key, value)
    }

    /// A whole number of 32 bits, or `default`.
    pub(crate) fn small(&mut self, key: &'static str, default: u32) -> Result<u32, DeviceError> {
        Ok(self.optional_whole(key, 0, u64::from(u32::MAX))?.map_or(default, |value| value as u32))
    }

    /// A number, if present, from `low` to `high`.
    pub(crate) fn optional_number(
        &mut self,
        key: &'static str,
        low: f64,
        high: f64,
    ) -> Result<Option<f64>, DeviceError> {
        let number = match self.value(key) {
            None => return Ok(None),
            Some(Value::Float(value)) => *value,
            Some(Value::Integer(value)) => *value as f64,
            Some(other) => {
                return Err(self.error(key, format!("must be a number, not {other}")));
            }
        };
        if (low..=high).contains(&number) {
            Ok(Some(number))
        } else {
            Err(self.error(key, format!("is {number}; it must lie from {low} to {high}")))
        }
    }

    /// A number from `low` to `high`.
    pub(crate) fn number(
        &mut self,
        key: &'static str,
        low: f64,
        high: f64,
    ) -> Result<f64, DeviceError> {
        let value = self.optional_number(key, low, high)?;
        self.required(key, value)
    }

    /// A time written in milliseconds, in nanoseconds; `default` ns if absent. Never negative.
    pub(crate) fn time_ns(&mut self, key: &'static str, default: u64) -> Result<u64, DeviceError> {
        Ok(self.optional_number(key, 0.0, 1e6)?.map_or(default, |ms| (ms * 1e6).round() as u64))
    }

    /// A table, if present.
    pub(crate) fn optional_table(
        &mut self,
        key: &'static str,
    ) -> Result<Option<TableReader<'a>>, DeviceError> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Table(table)) => {
                Ok(Some(TableReader::new(self.file, format!("[{key}]"), table)))
            }
            Some(other) => Err(self.error(key, format!("must be a table, not {other}"))),
        }
    }

    /// A table.
    pub(crate) fn table(&mut self, key: &'static str) -> Result<TableReader<'a>, DeviceError> {
        let value = self.optional_table(key)?;
        self.required(key, value)
    }

    /// The raw entries of a table, or nothing.
    pub(crate) fn entries(&mut self, key: &'static str) -> Result<Option<&'a Table>, DeviceError> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Table(table)) => Ok(Some(table)),
            Some(other) => Err(self.error(key, format!("must be a table, not {other}"))),
        }
    }

    /// An array of tables, empty if absent.
    pub(crate) fn tables(
        &mut self,
        key: &'static str,
    ) -> Result<Vec<TableReader<'a>>, DeviceError> {
        let Some(value) = self.value(key) else { return Ok(Vec::new()) };
        let Value::Array(items) = value else {
            return Err(self.error(key, "must be an array of tables"));
        };
        items
            .iter()
            .enumerate()
            .map(|(index, item)| match item {
                Value::Table(table) => Ok(TableReader::new(
                    self.file,
                    format!("[[{key}]] number {}", index + 1),
                    table,
                )),
                other => Err(self.error(key, format!("holds {other}, which is not a table"))),
            })
            .collect()
    }

    /// An array of numbers, empty if absent.
    pub(crate) fn numbers(&mut self, key: &'static str) -> Result<Vec<f64>, DeviceError> {
        let Some(value) = self.value(key) else { return Ok(Vec::new()) };
        let Value::Array(items) = value else {
            return Err(self.error(key, "must be an array of numbers"));
        };
        items
            .iter()
            .map(|item| match item {
                Value::Integer(value) => Ok(*value as f64),
                Value::Float(value) if value.is_finite() => Ok(*value),
                other => Err(self.error(key, format!("holds {other}, which is not a number"))),
            })
            .collect()
    }

    /// An array of non-negative whole numbers, empty if absent.
    pub(crate) fn wholes(&mut self, key: &'static str) -> Result<Vec<u64>, DeviceError> {
        self.numbers(key)?
            .into_iter()
            .map(|value| {
                if value >= 0.0 && value.fract() == 0.0 && value < 9e15 {
                    Ok(value as u64)
                } else {
                    Err(self.error(key, format!("holds {value}; whole numbers are needed")))
                }
            })
            .collect()
    }

    /// An array of pairs of numbers, empty if absent.
    pub(crate) fn pairs(&mut self, key: &'static str) -> Result<Vec<(f64, f64)>, DeviceError> {
        let Some(value) = self.value(key) else { return Ok(Vec::new()) };
        let Value::Array(items) = value else {
            return Err(self.error(key, "must be an array of pairs"));
        };
        let number = |value: &Value| match value {
            Value::Integer(value) => Some(*value as f64),
            Value::Float(value) if value.is_finite() => Some(*value),
            _ => None,
        };
        items
            .iter()
            .map(|item| {
                item.as_array()
                    .filter(|pair| pair.len() == 2)
                    .and_then(|pair| Some((number(&pair[0])?, number(&pair[1])?)))
                    .ok_or_else(|| {
                        self.error(key, format!("holds {item}, which is not a pair of numbers"))
                    })
            })
            .collect()
    }

    /// Refuses any key that no accessor asked for.
    pub(crate) fn finish(self) -> Result<(), DeviceError> {
        match self.table.keys().find(|key| !self.known.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => Err(DeviceError::Key {
                file: self.file.to_owned(),
                message: agewell_core::unknown_key_message(&self.place, key, &self.known),
            }),
        }
    }
}
