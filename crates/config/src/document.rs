//! What a key is, for the documentation and for editors.

use serde_json::Value;

use crate::KeyForm;

/// A key of a table.
#[derive(Debug, Clone)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub help: String,
    /// What may be given, in Markdown.
    pub values: String,
    /// What stands when it is absent, in Markdown.
    pub default: String,
    /// Where the default comes from, if it is not plain.
    pub source: &'static str,
    /// Whether it must be there.
    pub is_required: bool,
    /// What may be given, as a JSON Schema.
    pub schema: Value,
}

impl Key {
    /// The key `name` of the form `form`.
    #[must_use]
    pub fn new<F: KeyForm>(
        name: &'static str,
        form: &F,
        help: &'static str,
        source: &'static str,
    ) -> Self {
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut schema = form.schema();
        schema["description"] = Value::String(help.clone());
        Self {
            name,
            help,
            values: form.describe(),
            default: form.describe_absent(),
            source,
            is_required: form.is_required(),
            schema,
        }
    }

    /// The same key where its absence means what `absent` says.
    #[must_use]
    pub fn with_default(mut self, absent: &str) -> Self {
        absent.clone_into(&mut self.default);
        if let Some(schema) = self.schema.as_object_mut() {
            schema.remove("default");
        }
        self
    }

    /// `keys` as a table in Markdown.
    #[must_use]
    pub fn markdown(keys: &[Self]) -> String {
        let has_sources = keys.iter().any(|key| !key.source.is_empty());
        let mut text = String::from("| key | what | values | default |");
        text.push_str(if has_sources {
            " source |\n|---|---|---|---|---|\n"
        } else {
            "\n|---|---|---|---|\n"
        });
        let rows = keys.iter().map(|key| {
            let source = if has_sources { format!(" {} |", key.source) } else { String::new() };
            let cells = [key.help.as_str(), &key.values, &key.default];
            let cells = cells.map(|cell| cell.replace('|', "\\|")).join(" | ");
            format!("| `{}` | {cells} |{source}\n", key.name)
        });
        text.extend(rows);
        text
    }
}

/// One kind of a table, such as `kind = "lfs"` of `[layout]`.
#[derive(Debug, Clone)]
pub struct KindOfTable {
    /// Its name.
    pub name: &'static str,
    /// Its keys, `kind` apart.
    pub keys: Vec<Key>,
}

/// A table of a configuration.
#[derive(Debug, Clone)]
pub struct TableOfKeys {
    /// Its name.
    pub name: &'static str,
    /// Whether it must be there.
    pub is_required: bool,
    /// Its kinds; one without a name where it has none.
    pub kinds: Vec<KindOfTable>,
    /// Whether it may hold more than its keys, which somebody else checks.
    pub is_open: bool,
}

impl TableOfKeys {
    /// A table that may be absent, without kinds.
    #[must_use]
    pub fn plain(name: &'static str, keys: Vec<Key>) -> Self {
        let kinds = vec![KindOfTable { name: "", keys }];
        Self { name, is_required: false, kinds, is_open: false }
    }
}
