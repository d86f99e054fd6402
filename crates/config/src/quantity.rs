//! Forms of quantities: sizes, times and rates.

use agewell_core::{
    SECTOR_BYTES, SimDuration, parse_bytes, parse_bytes_per_second, parse_duration,
};
use serde_json::{Value, json};

use crate::Form;
use crate::form::{Number, Text, number};

/// A size in bytes, with its unit.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    unit_bytes: u64,
    low: u64,
    high: u64,
}

/// A size with its unit, such as `"8 KiB"`.
#[must_use]
pub fn size() -> Size {
    Size { unit_bytes: 1, low: 0, high: u64::MAX }
}

/// A size of one sector of 512 bytes or more, in whole ones.
#[must_use]
pub fn sectors() -> Size {
    Size { unit_bytes: SECTOR_BYTES, low: SECTOR_BYTES, high: u64::MAX }
}

impl Size {
    /// At least `low` bytes.
    #[must_use]
    pub fn from(self, low: u64) -> Self {
        Self { low, ..self }
    }

    /// At most `high` bytes.
    #[must_use]
    pub fn to(self, high: u64) -> Self {
        Self { high, ..self }
    }
}

impl Form for Size {
    type Value = u64;

    fn read(&self, given: &Value) -> Result<u64, String> {
        let text = Text.read(given)?;
        let bytes = parse_bytes(&text).map_err(|why| format!(": {why}"))?;
        if !bytes.is_multiple_of(self.unit_bytes) || (bytes < self.low && self.unit_bytes > 1) {
            return Err(format!(": must be a whole number of {}-byte sectors", self.unit_bytes));
        }
        if bytes < self.low {
            return Err(format!(": must be at least {} bytes", self.low));
        }
        if bytes > self.high {
            return Err(format!(": must be at most {} bytes", self.high));
        }
        Ok(bytes)
    }

    fn write(&self, value: &u64) -> Value {
        json!(format!("{value} B"))
    }

    fn describe(&self) -> String {
        if self.unit_bytes > 1 { "size, whole sectors of 512 bytes" } else { "size" }.to_owned()
    }

    fn schema(&self) -> Value {
        json!({"type": "string", "pattern": "^\\s*[0-9.]+\\s*[kKMGT]?i?B\\s*$"})
    }
}

/// A time, with its unit.
#[derive(Debug, Clone, Copy)]
pub struct Time {
    is_positive: bool,
}

/// A time with its unit, such as `"1 h"`.
#[must_use]
pub fn time() -> Time {
    Time { is_positive: false }
}

impl Time {
    /// Longer than nothing.
    #[must_use]
    pub fn positive(self) -> Self {
        Self { is_positive: true }
    }
}

impl Form for Time {
    type Value = SimDuration;

    fn read(&self, given: &Value) -> Result<SimDuration, String> {
        let text = Text.read(given)?;
        let time = parse_duration(&text).map_err(|why| format!(": {why}"))?;
        if self.is_positive && time == SimDuration::ZERO {
            return Err(": must be longer than nothing".to_owned());
        }
        Ok(time)
    }

    fn write(&self, value: &SimDuration) -> Value {
        json!(format!("{} ns", value.0))
    }

    fn describe(&self) -> String {
        "time".to_owned()
    }

    fn schema(&self) -> Value {
        json!({"type": "string", "pattern": "^\\s*[0-9.]+\\s*[a-z]+$"})
    }
}

/// A rate in bytes per second, with its unit.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    low: u64,
}

/// A rate with its unit, such as `"5 MB/s"`.
#[must_use]
pub fn rate() -> Rate {
    Rate { low: 1 }
}

impl Rate {
    /// At least `low` bytes per second.
    #[must_use]
    pub fn from(self, low: u64) -> Self {
        Self { low }
    }
}

impl Form for Rate {
    type Value = u64;

    fn read(&self, given: &Value) -> Result<u64, String> {
        let text = Text.read(given)?;
        match parse_bytes_per_second(&text) {
            Ok(rate) if rate >= self.low => Ok(rate),
            Ok(0) => Err(": must be more than nothing".to_owned()),
            Ok(_) => Err(format!(": must be at least {} bytes per second", self.low)),
            Err(why) => Err(format!(": {why}")),
        }
    }

    fn write(&self, value: &u64) -> Value {
        json!(format!("{value} B/s"))
    }

    fn describe(&self) -> String {
        "rate".to_owned()
    }

    fn schema(&self) -> Value {
        json!({"type": "string", "pattern": "/s$"})
    }
}

/// A time as a number of milliseconds, kept in whole nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Milliseconds(Number);

/// A time as a number of milliseconds, up to 1000 s.
#[must_use]
pub fn milliseconds() -> Milliseconds {
    Milliseconds(number(0.0, 1e6))
}

impl Form for Milliseconds {
    type Value = u64;

    fn read(&self, given: &Value) -> Result<u64, String> {
        self.0.read(given).map(|ms| (ms * 1e6).round() as u64)
    }

    fn write(&self, ns: &u64) -> Value {
        json!(*ns as f64 / 1e6)
    }

    fn describe(&self) -> String {
        "ms".to_owned()
    }

    fn schema(&self) -> Value {
        self.0.schema()
    }
}
