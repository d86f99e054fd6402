//! The text header of HP SRT traces: the machine, its disks with geometry and seek parameters,
//! their sections.
//!
//! `key = value;` at the top; values nest as `{ a, b }`, `( a b )` and `number -> { ... }`. What
//! the header says is kept as metadata and never needed to decode a record, except the sector size;
//! so a key that is absent or new is no error, while brackets that do not match are.

use std::collections::BTreeMap;

use crate::metadata::{DeviceDescription, DriveDescription, Partition};

/// A value of the header.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Text(String),
    List(Vec<Value>),
    /// `number -> value`.
    Entry(String, Box<Value>),
    /// `key = value`.
    Pair(String, Box<Value>),
}

/// What the header of an SRT trace says.
#[derive(Debug, Default)]
pub(crate) struct SrtHeader {
    pub(crate) fields: BTreeMap<String, String>,
    pub(crate) devices: Vec<DeviceDescription>,
}

/// Deeper nesting than any header has; a corrupt one must not exhaust the stack.
const DEPTH_MAX: usize = 16;

/// Parses the text before the form feed.
pub(crate) fn parse(text: &str) -> Result<SrtHeader, String> {
    let mut header = SrtHeader::default();
    let mut lines = text.lines();
    let title = lines.next().unwrap_or_default().trim();
    header.fields.insert("title".to_owned(), title.to_owned());
    let body: String = lines
        .filter(|line| !line.trim_start().starts_with('#'))
        .flat_map(|line| [line, "\n"])
        .collect();
    let tokens = tokens(&body);
    let mut position = 0;
    while position < tokens.len() {
        let key = &tokens[position];
        if tokens.get(position + 1).map(String::as_str) == Some("=") {
            position += 2;
            let start = position;
            let value = value(&tokens, &mut position, 0)?;
            // An unquoted value may be several words: tracedate = Sun May 18 11:04:05 2003
            let mut words = vec![plain(&value)];
            while position < tokens.len()
                && tokens[position] != ";"
                && tokens.get(position + 1).map(String::as_str) != Some("=")
            {
                words.push(tokens[position].clone());
                position += 1;
            }
            if key == "disks" {
                header.devices = devices(&value);
            } else if position > start {
                header.fields.insert(key.clone(), words.join(" "));
            }
        } else {
            position += 1;
        }
    }
    Ok(header)
}

fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                let quoted: String = characters.by_ref().take_while(|&next| next != '"').collect();
                tokens.push(quoted);
            }
            '{' | '}' | '(' | ')' | ',' | ';' | '=' => tokens.push(character.to_string()),
            '-' if characters.peek() == Some(&'>') => {
                characters.next();
                tokens.push("->".to_owned());
            }
            _ if character.is_whitespace() || character.is_control() => {}
            _ => {
                let mut word = character.to_string();
                while let Some(&next) = characters.peek() {
                    if next.is_whitespace() || "{}(),;=\"".contains(next) {
                        break;
                    }
                    word.push(next);
                    characters.next();
                }
                tokens.push(word);
            }
        }
    }
    tokens
}

fn value(tokens: &[String], position: &mut usize, depth: usize) -> Result<Value, String> {
    if depth > DEPTH_MAX {
        return Err(format!("brackets nest deeper than {DEPTH_MAX}"));
    }
    let Some(token) = tokens.get(*position) else {
        return Err("the header ends where a value should stand".to_owned());
    };
    *position += 1;
    let closing = match token.as_str() {
        "{" => "}",
        "(" => ")",
        "}" | ")" => return Err(format!("a '{token}' that closes nothing")),
        _ => return Ok(Value::Text(token.clone())),
    };
    let mut list = Vec::new();
    loop {
        match tokens.get(*position).map(String::as_str) {
            None => return Err(format!("a '{token}' is never closed")),
            Some(next) if next == closing => {
                *position += 1;
                return Ok(Value::List(list));
            }
            Some("," | ";") => *position += 1,
            Some(_) => {
                let first = value(tokens, position, depth + 1)?;
                let joint = tokens.get(*position).map(String::as_str);
                match (&first, joint) {
                    (Value::Text(key), Some("->")) => {
                        *position += 1;
                        let inner = value(tokens, position, depth + 1)?;
                        list.push(Value::Entry(key.clone(), Box::new(inner)));
                    }
                    (Value::Text(key), Some("=")) => {
                        *position += 1;
                        let mut inner = value(tokens, position, depth + 1)?;
                        // adaptor = 1 -> { ... }
                        if let (Value::Text(number), Some("->")) =
                            (&inner, tokens.get(*position).map(String::as_str))
                        {
                            let number = number.clone();
                            *position += 1;
                            let entry = value(tokens, position, depth + 1)?;
                            inner = Value::Entry(number, Box::new(entry));
                        }
                        list.push(Value::Pair(key.clone(), Box::new(inner)));
                    }
                    _ => list.push(first),
                }
            }
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::List(list) => list.iter().map(plain).collect::<Vec<_>>().join(" "),
        Value::Entry(key, inner) => format!("{key} -> {}", plain(inner)),
        Value::Pair(key, inner) => format!("{key} = {}", plain(inner)),
    }
}

fn find<'a>(list: &'a [Value], name: &str) -> Option<&'a Value> {
    list.iter().find_map(|value| match value {
        Value::Pair(key, inner) if key == name => Some(inner.as_ref()),
        _ => None,
    })
}

fn number<T: std::str::FromStr>(list: &[Value], name: &str) -> Option<T> {
    find(list, name).and_then(|value| plain(value).parse().ok())
}

fn devices(value: &Value) -> Vec<DeviceDescription> {
    let Value::List(list) = value else { return Vec::new() };
    let mut devices: Vec<DeviceDescription> = list
        .iter()
        .filter_map(|entry| match entry {
            Value::Entry(key, inner) => match inner.as_ref() {
                Value::List(fields) => key.parse().ok().map(|id| device(id, fields)),
                _ => None,
            },
            _ => None,
        })
        .collect();
    devices.sort_by_key(|device| device.id);
    devices.dedup_by_key(|device| device.id);
    devices
}

fn device(id: u32, fields: &[Value]) -> DeviceDescription {
    let mut drive = DriveDescription {
        model: find(fields, "disktype").map(plain),
        cylinders: number(fields, "ncyl"),
        heads: number(fields, "ntpc"),
        sectors_per_track: number(fields, "nspt"),
        sector_bytes: number(fields, "sectorsize"),
        rpm: number(fields, "rpm"),
        overhead_us: number(fields, "overhead"),
        head_switch_us: number(fields, "headswitch"),
        sector_skew: number(fields, "sectorskew"),
        read_characteristic: find(fields, "readchar").map(plain),
        immediate_report: find(fields, "immreport").map(|value| plain(value) == "TRUE"),
        bus: find(fields, "bustype").map(plain),
        ..DriveDescription::default()
    };
    if let Some(Value::List(list)) = find(fields, "seekparms") {
        drive.seek_parameters = list.iter().filter_map(|value| plain(value).parse().ok()).collect();
    }
    if let Some(Value::Entry(_, adaptor)) = find(fields, "adaptor")
        && let Value::List(list) = adaptor.as_ref()
    {
        drive.bus_mb_per_s = list.get(1).and_then(|value| plain(value).parse().ok());
    }
    let sector_bytes = u64::from(drive.sector_bytes.unwrap_or(512));
    let partitions = match find(fields, "sections") {
        Some(Value::List(sections)) => sections
            .iter()
            .filter_map(|section| match section {
                Value::Entry(key, inner) => match inner.as_ref() {
                    Value::List(fields) => {
                        key.parse().ok().map(|number| partition(number, fields, sector_bytes))
                    }
                    _ => None,
                },
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    };
    let name = format!("disk {id}");
    DeviceDescription { id, name, drive: Some(drive), partitions }
}

/// `size = (offset bytes)`, the offset in sectors of the drive.
fn partition(number: u32, fields: &[Value], sector_bytes: u64) -> Partition {
    let name = fields
        .iter()
        .find_map(|value| match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        })
        .unwrap_or_default();
    let size: Vec<u64> = match find(fields, "size") {
        Some(Value::List(list)) => {
            list.iter().filter_map(|value| plain(value).parse().ok()).collect()
        }
        _ => Vec::new(),
    };
    Partition {
        number,
        name,
        first_byte: size.first().copied().unwrap_or(0).saturating_mul(sector_bytes),
        bytes: size.get(1).copied().unwrap_or(0),
        records: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "$$TR_IOREC-1.3 (title)\nversion = 1.3;\ntracedate = \"Sat May 30 00:03:06 1992\";\n\
        disks = { 0 -> { disktype = hp335h, nspt = 113, ntpc = 8, ncyl = 1449, rpm = 4002,\n\
        seekparms = {616, 3450, 597, 10840, 12, 2500}, immreport = FALSE,\n\
        adaptor = 1 -> { hp_ib , 1.2 , 250 }, sectorsize = 256,\n\
        sections = { 8 -> { \"/\", size = (171760 291362816), blocksize = 8192 } } } };\n   8 \n";

    #[test]
    fn geometry_and_sections_are_found() {
        let header = parse(HEADER).expect("a header");
        assert_eq!(header.fields["tracedate"], "Sat May 30 00:03:06 1992");
        let device = &header.devices[0];
        let drive = device.drive.as_ref().expect("a drive");
        assert_eq!((drive.cylinders, drive.heads), (Some(1449), Some(8)));
        assert_eq!(drive.sector_bytes, Some(256));
        assert_eq!(drive.seek_parameters, [616.0, 3450.0, 597.0, 10840.0, 12.0, 2500.0]);
        assert_eq!(drive.bus_mb_per_s, Some(1.2));
        assert_eq!(device.partitions[0].name, "/");
        assert_eq!(device.partitions[0].first_byte, 171_760 * 256);
    }

    #[test]
    fn an_unquoted_date_keeps_its_words_and_open_brackets_are_refused() {
        let header = parse("x\ntracedate = Sun May 18 11:04:05 2003\n").expect("a header");
        assert_eq!(header.fields["tracedate"], "Sun May 18 11:04:05 2003");
        assert!(parse("x\ndisks = { 0 -> {\n").is_err());
        let deep = format!("x\na = {}\n", "{".repeat(100));
        assert!(parse(&deep).is_err());
    }
}
