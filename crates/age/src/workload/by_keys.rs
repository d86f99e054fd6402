//! Parameters whose keys are declared, where a request is read and written by `serde`.

/// What is absent has its default; what nobody knows is refused with the nearest key.
macro_rules! by_keys {
    ($($Parameters:ty),*) => {$(
        impl Default for $Parameters {
            fn default() -> Self {
                let none = serde_json::json!({});
                agewell_config::read_table::<Self>("", none).expect("every key has a default")
            }
        }

        impl serde::Serialize for $Parameters {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                <Self as agewell_config::Keyed>::resolved(self).serialize(serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $Parameters {
            fn deserialize<D: serde::Deserializer<'de>>(given: D) -> Result<Self, D::Error> {
                let value = serde_json::Value::deserialize(given)?;
                agewell_config::read_table::<Self>("parameters", value)
                    .map_err(serde::de::Error::custom)
            }
        }
    )*};
}

pub(super) use by_keys;
