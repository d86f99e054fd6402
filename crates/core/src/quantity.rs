//! Sizes, times and rates as people write them: `8 KiB`, `15 ms`, `5 MB/s`.
//!
//! `KB`, `MB`, `GB`, `TB` are powers of 1000; `KiB`, `MiB`, `GiB`, `TiB` powers of 1024. A number
//! without a unit is refused: a bare number that changes meaning by context is how units go wrong.

use crate::SimDuration;

/// Why a quantity could not be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// No number at the front.
    #[error("'{0}' does not begin with a number; write for example '{1}'")]
    NoNumber(String, &'static str),
    /// A unit that is missing or not one of the kind asked for.
    #[error("'{0}' has no unit that fits; use one of {1}")]
    Unit(String, &'static str),
    /// Does not fit, or is not a whole number of the base unit.
    #[error("'{0}' is not a whole number of {1} between 0 and 2^63")]
    Range(String, &'static str),
}

const BYTE_UNITS: &[(&str, f64)] = &[
    ("B", 1.0),
    ("KB", 1e3),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
];

const TIME_UNITS: &[(&str, f64)] = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("min", 60e9),
    ("h", 3600e9),
    ("d", 86400e9),
    ("day", 86400e9),
    ("days", 86400e9),
];

/// Bytes from text such as `8 KiB` or `1.3 GB`.
///
/// # Errors
/// If there is no number, no byte unit, or the result is not a whole number of bytes.
pub fn parse_bytes(text: &str) -> Result<u64, QuantityError> {
    let value = scaled(text, BYTE_UNITS, "8 KiB", "B, KB, MB, GB, TB, KiB, MiB, GiB, TiB")?;
    whole(text, value, "bytes")
}

/// A rate from text such as `5 MB/s`, in bytes per second.
///
/// # Errors
/// As [`parse_bytes`]; the text must end in `/s`.
pub fn parse_bytes_per_second(text: &str) -> Result<u64, QuantityError> {
    const UNITS: &str = "B/s, KB/s, MB/s, GB/s, KiB/s, MiB/s, GiB/s";
    let size = text
        .trim()
        .strip_suffix("/s")
        .ok_or_else(|| QuantityError::Unit(text.to_owned(), UNITS))?;
    let value = scaled(size, BYTE_UNITS, "5 MB/s", UNITS)?;
    whole(text, value, "bytes per second")
}

/// A duration from text such as `15 ms` or `7 days`.
///
/// # Errors
/// If there is no number, no time unit, or the result is not a whole number of nanoseconds.
pub fn parse_duration(text: &str) -> Result<SimDuration, QuantityError> {
    parse_duration_ns(text).map(SimDuration)
}

/// As [`parse_duration`], in plain nanoseconds.
///
/// # Errors
/// As [`parse_duration`].
pub fn parse_duration_ns(text: &str) -> Result<u64, QuantityError> {
    let value = scaled(text, TIME_UNITS, "15 ms", "ns, us, ms, s, min, h, d")?;
    whole(text, value, "nanoseconds")
}

fn scaled(
    text: &str,
    units: &[(&str, f64)],
    example: &'static str,
    names: &'static str,
) -> Result<f64, QuantityError> {
    let trimmed = text.trim();
    let split = trimmed
        .find(|character: char| !(character.is_ascii_digit() || character == '.'))
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let number: f64 =
        number.parse().map_err(|_| QuantityError::NoNumber(text.to_owned(), example))?;
    let unit = unit.trim();
    units
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, factor)| number * factor)
        .ok_or_else(|| QuantityError::Unit(text.to_owned(), names))
}

fn whole(text: &str, value: f64, unit: &'static str) -> Result<u64, QuantityError> {
    // A product such as 1.1 * 1e6 misses its integer by rounding alone; anything further off is a
    // real fraction.
    let rounded = value.round();
    let tolerance = rounded.abs() * 1e-12;
    if (value - rounded).abs() > tolerance || !(0.0..9.22e18).contains(&rounded) {
        return Err(QuantityError::Range(text.to_owned(), unit));
    }
    Ok(rounded as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_and_binary_prefixes_differ() {
        assert_eq!(parse_bytes("8 KiB"), Ok(8192));
        assert_eq!(parse_bytes("8KB"), Ok(8000));
        assert_eq!(parse_bytes("1.3 GB"), Ok(1_300_000_000));
        assert_eq!(parse_bytes_per_second("5 MB/s"), Ok(5_000_000));
    }

    #[test]
    fn times_reach_from_nanoseconds_to_days() {
        assert_eq!(parse_duration_ns("15 ms"), Ok(15_000_000));
        assert_eq!(parse_duration_ns("1.1 ms"), Ok(1_100_000));
        assert_eq!(parse_duration_ns("7 days"), Ok(604_800_000_000_000));
    }

    #[test]
    fn a_bare_number_a_wrong_unit_and_a_fraction_are_refused() {
        assert!(matches!(parse_bytes("8192"), Err(QuantityError::Unit(..))));
        assert!(matches!(parse_bytes("8 ms"), Err(QuantityError::Unit(..))));
        assert!(matches!(parse_duration_ns("0.5 ns"), Err(QuantityError::Range(..))));
        assert!(matches!(parse_bytes("-1 KB"), Err(QuantityError::NoNumber(..))));
        assert!(matches!(parse_bytes_per_second("5 MB"), Err(QuantityError::Unit(..))));
    }
}
