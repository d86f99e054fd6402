//! A table of keys as the value of a key.

use std::marker::PhantomData;

use serde_json::Value;

use crate::{Form, Keyed, TableOfKeys, read_table, schema};

/// A table with the keys of `K`.
#[derive(Debug, Clone, Copy)]
pub struct TableOf<K>(PhantomData<K>);

/// A table with the keys of `K`.
#[must_use]
pub fn table_of<K: Keyed>() -> TableOf<K> {
    TableOf(PhantomData)
}

impl<K: Keyed<Value: Clone>> Form for TableOf<K> {
    type Value = K::Value;

    fn read(&self, given: &Value) -> Result<K::Value, String> {
        // What is wrong stands behind the name of this key.
        read_table::<K>("", given.clone()).map_err(|why| why.to_string())
    }

    fn write(&self, value: &K::Value) -> Value {
        K::resolved(value)
    }

    fn describe(&self) -> String {
        "table".to_owned()
    }

    fn schema(&self) -> Value {
        schema::of_table(&TableOfKeys::plain("", K::keys()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{count, list, text};

    crate::keys! {
        /// A kind of files.
        struct FileKind {
            /// what it holds
            name: String = "name" text().required();
            /// files
            files: u32 = "files" count().or(1);
        }
    }

    #[test]
    fn tables_in_a_list_are_read_strictly_and_written_back() {
        let form = list(table_of::<FileKind>());
        let kinds = form.read(&json!([{"name": "mail"}, {"name": "output", "files": 3}])).unwrap();
        let mail = FileKind { name: "mail".to_owned(), files: 1 };
        assert_eq!(kinds, [mail, FileKind { name: "output".to_owned(), files: 3 }]);
        assert_eq!(form.read(&form.write(&kinds)).unwrap(), kinds);
        let wrong = form.read(&json!([{"name": "mail", "fils": 2}])).unwrap_err();
        assert_eq!(wrong, ": unknown key 'fils'; did you mean 'files'?");
        assert_eq!(form.schema()["items"]["additionalProperties"], json!(false));
    }
}
