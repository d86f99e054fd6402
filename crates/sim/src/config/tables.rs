//! An experiment as the tables that it comes in.

use agewell_config::ConfigError;
use serde_json::{Value, json};

/// The tables of an experiment as they come, each of which may be absent.
pub struct Tables(serde_json::Map<String, Value>);

impl Tables {
    /// The tables of `value`, which may have these names.
    ///
    /// # Errors
    /// If it is no set of tables, or one has another name.
    pub fn of(value: Value, names: &[&str]) -> Result<Self, ConfigError> {
        let Value::Object(tables) = value else {
            return Err(ConfigError("an experiment is a set of tables".to_owned()));
        };
        match tables.keys().find(|name| !names.contains(&name.as_str())) {
            Some(stranger) => {
                Err(ConfigError(agewell_core::unknown_key_message("experiment", stranger, names)))
            }
            None => Ok(Self(tables)),
        }
    }

    /// The table `name`; an empty one if it is absent.
    pub fn take(&mut self, name: &str) -> Value {
        self.0.remove(name).unwrap_or_else(|| json!({}))
    }

    /// The table `name`.
    ///
    /// # Errors
    /// If it is absent; `example` shows what it might say.
    pub fn needed(&mut self, name: &str, example: &str) -> Result<Value, ConfigError> {
        self.0.remove(name).ok_or_else(|| {
            ConfigError(format!("experiment: table [{name}] is missing; say for example {example}"))
        })
    }
}
