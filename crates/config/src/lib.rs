//! Tables of configuration whose keys are declared once.
//!
//! A declaration ([`keys!`]) names a key, says what values it takes ([`Form`]), what stands when it is
//! absent, what it is for and where its default comes from. From it follow the strict reader
//! ([`Table`]), the table with every default filled in, the hint at the nearest key, the tables of
//! the documentation ([`Key::markdown`]) and a JSON Schema for editors ([`schema`]).

mod declaration;
mod document;
mod form;
mod nested;
mod quantity;
pub mod schema;
mod table;

pub use declaration::Keyed;
pub use document::{Key, KindOfTable, TableOfKeys};
pub use form::{
    Choice, Flag, Form, KeyForm, ListOf, Number, Optional, Or, Pair, Parsed, Required, Share, Text,
    Whole, Whole32, choice, count, flag, list, natural, number, pair, parsed, share, text, whole,
};
pub use nested::{TableOf, table_of};
pub use quantity::{Milliseconds, Rate, Size, Time, milliseconds, rate, sectors, size, time};
pub use table::{ConfigError, Table, read_table};
