//! Bytes in requests: a number, or text with a unit such as `2 GiB`.

use agewell_core::parse_bytes;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// Either form.
#[derive(Deserialize)]
#[serde(untagged)]
enum Quantity {
    Number(u64),
    Text(String),
}

/// Reads bytes.
pub(super) fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let quantity = Quantity::deserialize(deserializer)
        .map_err(|_| D::Error::custom("bytes must be a whole number or text such as '2 GiB'"))?;
    match quantity {
        Quantity::Number(bytes) => Ok(bytes),
        Quantity::Text(text) => parse_bytes(&text).map_err(D::Error::custom),
    }
}
