//! Declaring the keys of a table.

use serde_json::{Map, Value};

use crate::{ConfigError, Key, Table};

/// Keys of a table, and what they are read into.
pub trait Keyed {
    /// What the keys are read into.
    type Value;

    /// Reads the keys; others in `table` are left for somebody else.
    ///
    /// # Errors
    /// If a value does not do, or a key is absent that must be there.
    fn read(table: &mut Table) -> Result<Self::Value, ConfigError>;

    /// Adds every key to `table`, as it would be given.
    fn resolve(value: &Self::Value, table: &mut Map<String, Value>);

    /// The keys, in their order.
    fn keys() -> Vec<Key>;

    /// Every key, as it would be given.
    #[must_use]
    fn resolved(value: &Self::Value) -> Value {
        let mut table = Map::new();
        Self::resolve(value, &mut table);
        Value::Object(table)
    }
}

/// Declares the keys of a table.
///
/// `struct NAME { ... }` makes a struct with a field for each key; `struct NAME for TYPE, ..BASE { ... }`
/// fills a struct that there is, whose other fields come from `BASE`. `struct NAME over BASE => TYPE { ... }`
/// does the same where each default is what `BASE` has there: a key needs no `or`, a field may be one
/// of an array, `flat FIELD: KEYS;` stands for the keys of another declaration, and `read_over` takes
/// the defaults of another base. Of each key: what it is for, as
/// its documentation; where its default comes from, in brackets, if it is not plain; its field; its
/// name; its form; what its absence means, behind `=>`, where the default is not what the reader fills in.
#[macro_export]
macro_rules! keys {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $Name:ident {
            $(
                $(#[doc = $help:literal])+
                $(<$source:literal>)?
                $field:ident: $type:ty = $key:literal $form:expr $(=> $absent:literal)?;
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        $visibility struct $Name {
            $(
                $(#[doc = $help])+
                pub $field: $type,
            )*
        }

        impl $crate::Keyed for $Name {
            type Value = Self;

            fn read(table: &mut $crate::Table) -> Result<Self, $crate::ConfigError> {
                Ok(Self { $($field: table.key($key, &$form)?,)* })
            }

            #[allow(unused_variables, reason = "a table may have no keys")]
            fn resolve(value: &Self, table: &mut serde_json::Map<String, serde_json::Value>) {
                $(
                    if let Some(written) = $crate::KeyForm::write(&$form, &value.$field) {
                        table.insert($key.to_owned(), written);
                    }
                )*
            }

            fn keys() -> Vec<$crate::Key> {
                vec![$(
                    $crate::Key::new($key, &$form, concat!($($help),+), concat!("" $(, $source)?))
                        $(.with_default($absent))?,
                )*]
            }
        }
    };
    (
        $(#[$meta:meta])*
        $visibility:vis struct $Name:ident for $Type:ident, ..$base:expr, {
            $(
                $(#[doc = $help:literal])+
                $(<$source:literal>)?
                $field:ident = $key:literal $form:expr $(=> $absent:literal)?;
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        $visibility struct $Name;

        impl $crate::Keyed for $Name {
            type Value = $Type;

            fn read(table: &mut $crate::Table) -> Result<$Type, $crate::ConfigError> {
                #[allow(clippy::needless_update, reason = "some tables have a key for each field")]
                Ok($Type { $($field: table.key($key, &$form)?,)* ..$base })
            }

            fn resolve(value: &$Type, table: &mut serde_json::Map<String, serde_json::Value>) {
                $(
                    if let Some(written) = $crate::KeyForm::write(&$form, &value.$field) {
                        table.insert($key.to_owned(), written);
                    }
                )*
            }

            fn keys() -> Vec<$crate::Key> {
                vec![$(
                    $crate::Key::new($key, &$form, concat!($($help),+), concat!("" $(, $source)?))
                        $(.with_default($absent))?,
                )*]
            }
        }
    };
    (
        $(#[$meta:meta])*
        $visibility:vis struct $Name:ident over $base:expr => $Type:ty {
            $(flat $group:ident: $Group:ident;)*
            $(
                $(#[doc = $help:literal])+
                $(<$source:literal>)?
                $field:ident $([$index:literal])? = $key:literal $form:expr $(=> $absent:literal)?;
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        $visibility struct $Name;

        impl $Name {
            /// Reads the keys; what is absent is as in `base`.
            #[allow(clippy::clone_on_copy, reason = "some fields are no plain numbers")]
            fn read_over(
                table: &mut $crate::Table,
                mut base: $Type,
            ) -> Result<$Type, $crate::ConfigError> {
                $(base.$group = <$Group as $crate::Keyed>::read(table)?;)*
                $(
                    let form = $crate::Form::or($form, base.$field $([$index])?.clone());
                    base.$field $([$index])? = table.key($key, &form)?;
                )*
                Ok(base)
            }
        }

        impl $crate::Keyed for $Name {
            type Value = $Type;

            fn read(table: &mut $crate::Table) -> Result<$Type, $crate::ConfigError> {
                Self::read_over(table, $base)
            }

            fn resolve(value: &$Type, table: &mut serde_json::Map<String, serde_json::Value>) {
                $(<$Group as $crate::Keyed>::resolve(&value.$group, table);)*
                $(
                    let written = $crate::Form::write(&$form, &value.$field $([$index])?);
                    table.insert($key.to_owned(), written);
                )*
            }

            #[allow(clippy::clone_on_copy, reason = "some fields are no plain numbers")]
            fn keys() -> Vec<$crate::Key> {
                let base: $Type = $base;
                let groups: Vec<Vec<$crate::Key>> = vec![$(<$Group as $crate::Keyed>::keys(),)*];
                let own = vec![$({
                    let form = $crate::Form::or($form, base.$field $([$index])?.clone());
                    $crate::Key::new($key, &form, concat!($($help),+), concat!("" $(, $source)?))
                        $(.with_default($absent))?
                },)*];
                groups.into_iter().flatten().chain(own).collect()
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Keyed;
    use crate::{Form, Table, choice, count, size, text};

    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Order {
        Place,
        Written,
    }

    crate::keys! {
        /// A layout.
        struct Layout {
            /// size of a block
            <"1999, section 5.2.2">
            block_bytes: u64 = "block_size" size().or(8192);
            /// how a buffer is sent,
            /// all at once
            order: Order = "order" choice(&[("place", Order::Place), ("written", Order::Written)])
                .or(Order::Place);
            /// a file
            path: Option<String> = "path" text().optional();
        }
    }

    #[derive(Debug, Clone, PartialEq)]
    struct Other {
        blocks: u32,
        rest: u32,
    }

    crate::keys! {
        /// Another.
        struct OtherKeys for Other, ..Other { blocks: 0, rest: 7 }, {
            /// live blocks
            blocks = "blocks" count().or(3);
        }
    }

    #[test]
    fn what_is_declared_is_read_and_written() {
        let given = json!({"block_size": "4 KiB", "order": "written"});
        let mut table = Table::new("[layout]", given).unwrap();
        let layout = Layout::read(&mut table).unwrap();
        table.finish().unwrap();
        assert_eq!(layout, Layout { block_bytes: 4096, order: Order::Written, path: None });
        let resolved = Layout::resolved(&layout);
        assert_eq!(resolved, json!({"block_size": "4096 B", "order": "written"}));
        let mut table = Table::new("[layout]", resolved).unwrap();
        assert_eq!(Layout::read(&mut table).unwrap(), layout);
    }

    #[test]
    fn a_struct_that_there_is_gets_the_rest_from_its_base() {
        let mut table = Table::new("[workload]", json!({})).unwrap();
        assert_eq!(OtherKeys::read(&mut table).unwrap(), Other { blocks: 3, rest: 7 });
        let mut table = Table::new("[workload]", json!({"blocks": 0})).unwrap();
        let error = OtherKeys::read(&mut table).unwrap_err().to_string();
        assert_eq!(error, "[workload]: blocks: must be at least 1");
    }

    #[derive(Debug, Clone, PartialEq)]
    struct Times {
        other: Other,
        after: [u32; 2],
        last: u32,
    }

    fn times(last: u32) -> Times {
        Times { other: Other { blocks: 0, rest: 0 }, after: [1, 2], last }
    }

    crate::keys! {
        /// Over a base.
        struct TimesKeys over times(9) => Times {
            flat other: OtherKeys;
            /// after a read
            after[0] = "after_read" count();
            /// after a write
            after[1] = "after_write" count();
            /// at last
            last = "last" count() => "as the first";
        }
    }

    #[test]
    fn what_is_absent_is_as_in_the_base_and_other_keys_stand_flat_among_its_own() {
        let mut table = Table::new("[times]", json!({"after_write": 5, "blocks": 4})).unwrap();
        let read = TimesKeys::read_over(&mut table, times(8)).unwrap();
        table.finish().unwrap();
        let other = Other { blocks: 4, rest: 7 };
        assert_eq!(read, Times { other, after: [1, 5], last: 8 });
        let resolved = TimesKeys::resolved(&read);
        assert_eq!(resolved, json!({"blocks": 4, "after_read": 1, "after_write": 5, "last": 8}));
        let keys = TimesKeys::keys();
        let shown: Vec<_> = keys.iter().map(|key| (key.name, key.default.as_str())).collect();
        let expected = [
            ("blocks", "`3`"),
            ("after_read", "`1`"),
            ("after_write", "`2`"),
            ("last", "as the first"),
        ];
        assert_eq!(shown, expected);
        assert_eq!(keys[3].schema.get("default"), None);
    }

    #[test]
    fn keys_say_what_they_are() {
        let keys = Layout::keys();
        assert_eq!(keys[0].default, "`\"8 KiB\"`");
        assert_eq!(keys[0].source, "1999, section 5.2.2");
        assert_eq!(keys[1].help, "how a buffer is sent, all at once");
        assert_eq!(keys[1].values, "`\"place\"`, `\"written\"`");
        assert_eq!(keys[2].default, "none");
    }
}
