//! Options as Python hands them over.

use pyo3::PyResult;
use serde_json::{Map, Value};

use crate::error;

/// The options of a JSON object that were given: without those that are null.
pub(crate) fn options_given(options: &str) -> PyResult<Map<String, Value>> {
    let Ok(Value::Object(mut entries)) = serde_json::from_str::<Value>(options) else {
        return Err(error::input("the options are not a JSON object"));
    };
    entries.retain(|_, value| !value.is_null());
    Ok(entries)
}
