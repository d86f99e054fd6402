//! JSON Schemas of configurations.

use serde_json::{Map, Value, json};

use crate::{KindOfTable, TableOfKeys};

/// The draft that schemas here are written to.
pub const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The schema of a configuration of these tables.
#[must_use]
pub fn of_tables(title: &str, tables: &[TableOfKeys]) -> Value {
    let properties: Map<String, Value> =
        tables.iter().map(|table| (table.name.to_owned(), of_table(table))).collect();
    let required: Vec<&str> =
        tables.iter().filter(|table| table.is_required).map(|table| table.name).collect();
    json!({
        "title": title,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// The schema of one table.
#[must_use]
pub fn of_table(table: &TableOfKeys) -> Value {
    let kinds: Vec<Value> = table.kinds.iter().map(|kind| of_kind(table, kind)).collect();
    match <[Value; 1]>::try_from(kinds) {
        Ok([only]) => only,
        Err(kinds) => json!({ "oneOf": kinds }),
    }
}

fn of_kind(table: &TableOfKeys, kind: &KindOfTable) -> Value {
    let mut properties = Map::new();
    let mut required: Vec<&str> = Vec::new();
    if !kind.name.is_empty() {
        properties.insert("kind".to_owned(), json!({ "const": kind.name }));
        required.push("kind");
    }
    for key in &kind.keys {
        properties.insert(key.name.to_owned(), key.schema.clone());
        if key.is_required {
            required.push(key.name);
        }
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": table.is_open,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Form, Key, count, text};

    #[test]
    fn kinds_are_told_apart_by_name_and_strangers_are_refused() {
        let kind = |name, keys| KindOfTable { name, keys };
        let table = TableOfKeys {
            name: "workload",
            is_required: true,
            kinds: vec![
                kind("none", Vec::new()),
                kind("file", vec![Key::new("path", &text().required(), "a file", "")]),
            ],
            is_open: false,
        };
        let run = TableOfKeys::plain("run", vec![Key::new("seed", &count().or(1), "a seed", "")]);
        let schema = of_tables("an experiment", &[table, run]);
        assert_eq!(schema["required"], json!(["workload"]));
        let kinds = &schema["properties"]["workload"]["oneOf"];
        assert_eq!(kinds[0]["required"], json!(["kind"]));
        assert_eq!(kinds[1]["required"], json!(["kind", "path"]));
        assert_eq!(kinds[1]["properties"]["kind"], json!({"const": "file"}));
        assert_eq!(schema["properties"]["run"]["properties"]["seed"]["default"], json!(1));
        assert_eq!(schema["properties"]["run"]["additionalProperties"], json!(false));
    }
}
