//! What values a key takes: how they are read, written and described.

use std::fmt::Display;
use std::str::FromStr;

use agewell_core::nearest;
use serde_json::{Value, json};

/// What a value looks like.
pub trait Form: Sized {
    /// The value once it is read.
    type Value: Clone;

    /// Reads what was given.
    ///
    /// # Errors
    /// What is wrong with it, to stand right behind the name of the key.
    fn read(&self, given: &Value) -> Result<Self::Value, String>;

    /// The value as it would be given.
    fn write(&self, value: &Self::Value) -> Value;

    /// What may be given, in a few words of Markdown.
    fn describe(&self) -> String;

    /// The same as a JSON Schema.
    fn schema(&self) -> Value;

    /// A key of this form that must be there.
    fn required(self) -> Required<Self> {
        Required(self)
    }

    /// A key of this form that is `default` when it is absent.
    fn or(self, default: Self::Value) -> Or<Self> {
        Or { form: self, default }
    }

    /// A key of this form that may be absent.
    fn optional(self) -> Optional<Self> {
        Optional { form: self, absent: "none" }
    }

    /// A key of this form that may be absent, which means what `absent` says.
    fn or_else(self, absent: &'static str) -> Optional<Self> {
        Optional { form: self, absent }
    }
}

/// The form of a key: that of its values, and what its absence means.
pub trait KeyForm {
    /// The value once it is read.
    type Value;

    /// Reads what was given.
    ///
    /// # Errors
    /// What is wrong with it, to stand right behind the name of the key.
    fn read(&self, given: &Value) -> Result<Self::Value, String>;

    /// What stands when the key is absent; nothing if it must be there.
    fn absent(&self) -> Option<Self::Value>;

    /// The value as it would be given; nothing if the key is left out.
    fn write(&self, value: &Self::Value) -> Option<Value>;

    /// What may be given, in a few words of Markdown.
    fn describe(&self) -> String;

    /// What stands when the key is absent, in a few words of Markdown.
    fn describe_absent(&self) -> String;

    /// What may be given, as a JSON Schema.
    fn schema(&self) -> Value;

    /// Whether the key must be there.
    fn is_required(&self) -> bool {
        self.absent().is_none()
    }
}

/// A key that must be there.
#[derive(Debug, Clone)]
pub struct Required<F>(F);

impl<F: Form> KeyForm for Required<F> {
    type Value = F::Value;

    fn read(&self, given: &Value) -> Result<Self::Value, String> {
        self.0.read(given)
    }

    fn absent(&self) -> Option<Self::Value> {
        None
    }

    fn write(&self, value: &Self::Value) -> Option<Value> {
        Some(self.0.write(value))
    }

    fn describe(&self) -> String {
        self.0.describe()
    }

    fn describe_absent(&self) -> String {
        "required".to_owned()
    }

    fn schema(&self) -> Value {
        self.0.schema()
    }
}

/// A key with a default.
#[derive(Debug, Clone)]
pub struct Or<F: Form> {
    form: F,
    default: F::Value,
}

impl<F: Form> KeyForm for Or<F> {
    type Value = F::Value;

    fn read(&self, given: &Value) -> Result<Self::Value, String> {
        self.form.read(given)
    }

    fn absent(&self) -> Option<Self::Value> {
        Some(self.default.clone())
    }

    fn write(&self, value: &Self::Value) -> Option<Value> {
        Some(self.form.write(value))
    }

    fn describe(&self) -> String {
        self.form.describe()
    }

    fn describe_absent(&self) -> String {
        format!("`{}`", as_people_write(&self.form.write(&self.default)))
    }

    fn schema(&self) -> Value {
        let mut schema = self.form.schema();
        schema["default"] = people_value(&self.form.write(&self.default));
        schema
    }
}

/// A key that may be absent.
#[derive(Debug, Clone)]
pub struct Optional<F> {
    form: F,
    absent: &'static str,
}

impl<F: Form> KeyForm for Optional<F> {
    type Value = Option<F::Value>;

    fn read(&self, given: &Value) -> Result<Self::Value, String> {
        self.form.read(given).map(Some)
    }

    fn absent(&self) -> Option<Self::Value> {
        Some(None)
    }

    fn write(&self, value: &Self::Value) -> Option<Value> {
        value.as_ref().map(|value| self.form.write(value))
    }

    fn describe(&self) -> String {
        self.form.describe()
    }

    fn describe_absent(&self) -> String {
        self.absent.to_owned()
    }

    fn schema(&self) -> Value {
        self.form.schema()
    }
}

pub(crate) fn wrong(expected: impl Display, found: &Value) -> String {
    format!(" must be {expected}, found {found}")
}

/// A value as people write it: sizes and times in the largest unit that divides them.
fn people_value(value: &Value) -> Value {
    let Value::String(text) = value else { return value.clone() };
    let units: &[(&str, u64)] = match text.rsplit_once(' ').map(|(_, unit)| unit) {
        Some("B") => {
            &[("GiB", 1 << 30), ("MiB", 1 << 20), ("MB", 1_000_000), ("KiB", 1 << 10), ("B", 1)]
        }
        Some("ns") => &[
            ("d", 86_400_000_000_000),
            ("h", 3_600_000_000_000),
            ("min", 60_000_000_000),
            ("s", 1_000_000_000),
            ("ms", 1_000_000),
            ("us", 1_000),
            ("ns", 1),
        ],
        _ => return value.clone(),
    };
    let number = text.split_once(' ').and_then(|(number, _)| number.parse::<u64>().ok());
    let Some(number) = number else { return value.clone() };
    if number == 0 {
        return json!(if text.ends_with("ns") { "0 s" } else { "0 B" });
    }
    let fits = units.iter().find(|(_, size)| number.is_multiple_of(*size));
    let (unit, size) = fits.expect("one divides all");
    json!(format!("{} {unit}", number / size))
}

/// A value as it stands in a TOML file.
fn as_people_write(value: &Value) -> String {
    people_value(value).to_string()
}

/// True or false.
#[derive(Debug, Clone, Copy)]
pub struct Flag;

/// True or false.
#[must_use]
pub fn flag() -> Flag {
    Flag
}

impl Form for Flag {
    type Value = bool;

    fn read(&self, given: &Value) -> Result<bool, String> {
        given.as_bool().ok_or_else(|| wrong("true or false", given))
    }

    fn write(&self, value: &bool) -> Value {
        json!(value)
    }

    fn describe(&self) -> String {
        "`true`, `false`".to_owned()
    }

    fn schema(&self) -> Value {
        json!({"type": "boolean"})
    }
}

/// A whole number.
#[derive(Debug, Clone, Copy)]
pub struct Whole {
    low: u64,
    high: u64,
}

/// A whole number that is not negative.
#[must_use]
pub fn whole() -> Whole {
    Whole { low: 0, high: u64::MAX }
}

impl Whole {
    /// At least `low`.
    #[must_use]
    pub fn from(self, low: u64) -> Self {
        Self { low, ..self }
    }

    /// At most `high`.
    #[must_use]
    pub fn to(self, high: u64) -> Self {
        Self { high, ..self }
    }
}

fn read_whole(given: &Value, low: u64, high: u64) -> Result<u64, String> {
    let number = given.as_u64().ok_or_else(|| wrong("a whole number", given))?;
    if (low..=high).contains(&number) {
        return Ok(number);
    }
    Err(match (low, high) {
        (_, u64::MAX) => format!(": must be at least {low}"),
        (_, UNBOUNDED) if number < low => format!(": must be at least {low}"),
        (_, UNBOUNDED) => ": must be below 2^32".to_owned(),
        _ => format!(": must be from {low} to {high}"),
    })
}

/// The largest number of 32 bits, which is no bound that anybody chose.
const UNBOUNDED: u64 = u32::MAX as u64;

fn describe_whole(low: u64, high: u64) -> String {
    match (low, high) {
        (0, UNBOUNDED | u64::MAX) => "whole number".to_owned(),
        (_, UNBOUNDED | u64::MAX) => format!("whole number, {low} or more"),
        _ => format!("{low} to {high}"),
    }
}

fn whole_schema(low: u64, high: u64) -> Value {
    let mut schema = json!({"type": "integer", "minimum": low});
    if high != u64::MAX {
        schema["maximum"] = json!(high);
    }
    schema
}

impl Form for Whole {
    type Value = u64;

    fn read(&self, given: &Value) -> Result<u64, String> {
        read_whole(given, self.low, self.high)
    }

    fn write(&self, value: &u64) -> Value {
        json!(value)
    }

    fn describe(&self) -> String {
        describe_whole(self.low, self.high)
    }

    fn schema(&self) -> Value {
        whole_schema(self.low, self.high)
    }
}

/// A whole number of 32 bits.
#[derive(Debug, Clone, Copy)]
pub struct Whole32 {
    low: u32,
    high: u32,
}

/// A whole number of 32 bits, from 0.
#[must_use]
pub fn natural() -> Whole32 {
    Whole32 { low: 0, high: u32::MAX }
}

/// A whole number of 32 bits, from 1.
#[must_use]
pub fn count() -> Whole32 {
    Whole32 { low: 1, high: u32::MAX }
}

impl Whole32 {
    /// At least `low`.
    #[must_use]
    pub fn from(self, low: u32) -> Self {
        Self { low, ..self }
    }

    /// At most `high`.
    #[must_use]
    pub fn to(self, high: u32) -> Self {
        Self { high, ..self }
    }
}

impl Form for Whole32 {
    type Value = u32;

    fn read(&self, given: &Value) -> Result<u32, String> {
        read_whole(given, u64::from(self.low), u64::from(self.high)).map(|number| number as u32)
    }

    fn write(&self, value: &u32) -> Value {
        json!(value)
    }

    fn describe(&self) -> String {
        describe_whole(u64::from(self.low), u64::from(self.high))
    }

    fn schema(&self) -> Value {
        whole_schema(u64::from(self.low), u64::from(self.high))
    }
}

/// A number.
#[derive(Debug, Clone, Copy)]
pub struct Number {
    low: f64,
    high: f64,
}

/// A number from `low` to `high`.
#[must_use]
pub fn number(low: f64, high: f64) -> Number {
    Number { low, high }
}

impl Form for Number {
    type Value = f64;

    fn read(&self, given: &Value) -> Result<f64, String> {
        match given.as_f64() {
            Some(number) if (self.low..=self.high).contains(&number) => Ok(number),
            _ => Err(wrong(format_args!("a number from {} to {}", self.low, self.high), given)),
        }
    }

    fn write(&self, value: &f64) -> Value {
        json!(value)
    }

    fn describe(&self) -> String {
        format!("{} to {}", self.low, self.high)
    }

    fn schema(&self) -> Value {
        json!({"type": "number", "minimum": self.low, "maximum": self.high})
    }
}

/// A share above nothing and up to all, in per cent or as a number.
#[derive(Debug, Clone, Copy)]
pub struct Share;

/// A share: `"90 %"`, or 0.9.
#[must_use]
pub fn share() -> Share {
    Share
}

impl Form for Share {
    type Value = f64;

    fn read(&self, given: &Value) -> Result<f64, String> {
        let share = match given {
            Value::String(text) => {
                let percent = text.trim().strip_suffix('%');
                percent.and_then(|number| number.trim().parse::<f64>().ok()).map(|pct| pct / 100.0)
            }
            other => other.as_f64(),
        };
        match share {
            Some(share) if share > 0.0 && share <= 1.0 => Ok(share),
            _ => Err(wrong("a share above nothing and up to all, such as \"90 %\" or 0.9", given)),
        }
    }

    fn write(&self, value: &f64) -> Value {
        json!(value)
    }

    fn describe(&self) -> String {
        "share above 0: `0.9` or `\"90 %\"`".to_owned()
    }

    fn schema(&self) -> Value {
        json!({"anyOf": [
            {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
            {"type": "string", "pattern": "%\\s*$"},
        ]})
    }
}

/// A string.
#[derive(Debug, Clone, Copy)]
pub struct Text;

/// A string.
#[must_use]
pub fn text() -> Text {
    Text
}

impl Form for Text {
    type Value = String;

    fn read(&self, given: &Value) -> Result<String, String> {
        given.as_str().map(str::to_owned).ok_or_else(|| wrong("a string", given))
    }

    fn write(&self, value: &String) -> Value {
        json!(value)
    }

    fn describe(&self) -> String {
        "text".to_owned()
    }

    fn schema(&self) -> Value {
        json!({"type": "string"})
    }
}

/// A list of values of one form.
#[derive(Debug, Clone, Copy)]
pub struct ListOf<F>(F);

/// A list of values that `form` takes.
#[must_use]
pub fn list<F: Form>(form: F) -> ListOf<F> {
    ListOf(form)
}

impl<F: Form> Form for ListOf<F> {
    type Value = Vec<F::Value>;

    fn read(&self, given: &Value) -> Result<Vec<F::Value>, String> {
        let Value::Array(values) = given else {
            return Err(wrong(format_args!("a list ({})", self.describe()), given));
        };
        values.iter().map(|value| self.0.read(value)).collect()
    }

    fn write(&self, value: &Vec<F::Value>) -> Value {
        value.iter().map(|value| self.0.write(value)).collect()
    }

    fn describe(&self) -> String {
        format!("list of {}", self.0.describe())
    }

    fn schema(&self) -> Value {
        json!({"type": "array", "items": self.0.schema()})
    }
}

/// Two values, each of its form, as a list.
#[derive(Debug, Clone, Copy)]
pub struct Pair<A, B>(A, B);

/// A list of two: one that `first` takes and one that `second` does.
#[must_use]
pub fn pair<A: Form, B: Form>(first: A, second: B) -> Pair<A, B> {
    Pair(first, second)
}

impl<A: Form, B: Form> Form for Pair<A, B> {
    type Value = (A::Value, B::Value);

    fn read(&self, given: &Value) -> Result<Self::Value, String> {
        match given.as_array().map(Vec::as_slice) {
            Some([first, second]) => Ok((self.0.read(first)?, self.1.read(second)?)),
            _ => Err(wrong(format_args!("two values ({})", self.describe()), given)),
        }
    }

    fn write(&self, (first, second): &Self::Value) -> Value {
        json!([self.0.write(first), self.1.write(second)])
    }

    fn describe(&self) -> String {
        format!("`[a, b]` (a: {}; b: {})", self.0.describe(), self.1.describe())
    }

    fn schema(&self) -> Value {
        json!({"type": "array", "prefixItems": [self.0.schema(), self.1.schema()],
               "minItems": 2, "maxItems": 2})
    }
}

/// One of several names.
#[derive(Debug, Clone)]
pub struct Choice<T>(Vec<(&'static str, T)>);

/// One of `names`, each with what it means.
#[must_use]
pub fn choice<T: Copy>(names: &[(&'static str, T)]) -> Choice<T> {
    Choice(names.to_vec())
}

impl<T: Copy + PartialEq> Form for Choice<T> {
    type Value = T;

    fn read(&self, given: &Value) -> Result<T, String> {
        let text = Text.read(given)?;
        let found = self.0.iter().find(|(name, _)| *name == text);
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let names: Vec<&str> = self.0.iter().map(|(name, _)| *name).collect();
            let hint = match nearest(&text, &names) {
                Some(near) => format!("did you mean '{near}'?"),
                None => format!("use one of {}", names.join(", ")),
            };
            format!(" = '{text}' is not known; {hint}")
        })
    }

    fn write(&self, value: &T) -> Value {
        let found = self.0.iter().find(|(_, meaning)| meaning == value);
        json!(found.expect("every choice stands in its table of names").0)
    }

    fn describe(&self) -> String {
        let names: Vec<String> = self.0.iter().map(|(name, _)| format!("`\"{name}\"`")).collect();
        names.join(", ")
    }

    fn schema(&self) -> Value {
        let names: Vec<&str> = self.0.iter().map(|(name, _)| *name).collect();
        json!({"enum": names})
    }
}

/// A text that means something.
#[derive(Debug, Clone, Copy)]
pub struct Parsed<T> {
    description: &'static str,
    meaning: std::marker::PhantomData<T>,
}

/// A text that `T` is parsed from; `description` says what it looks like.
#[must_use]
pub fn parsed<T>(description: &'static str) -> Parsed<T> {
    Parsed { description, meaning: std::marker::PhantomData }
}

impl<T: FromStr<Err: Display> + Display + Clone> Form for Parsed<T> {
    type Value = T;

    fn read(&self, given: &Value) -> Result<T, String> {
        Text.read(given)?.parse().map_err(|why| format!(": {why}"))
    }

    fn write(&self, value: &T) -> Value {
        json!(value.to_string())
    }

    fn describe(&self) -> String {
        self.description.to_owned()
    }

    fn schema(&self) -> Value {
        json!({"type": "string"})
    }
}
