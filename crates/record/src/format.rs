//! The descriptions that the kernel gives of its trace records: `events/*/*/format` and
//! `events/header_page`.
//!
//! Where a field is differs between kernels, so it is read and not known. Source: Linux
//! `Documentation/trace/events.rst`, section 3.

use std::collections::BTreeMap;

use crate::page::PageLayout;

/// Where a field is in its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// First byte.
    pub offset: usize,
    /// Length.
    pub bytes: usize,
}

/// How the records of one event are made up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFormat {
    /// The number at the front of each.
    pub id: u16,
    fields: BTreeMap<String, Field>,
}

/// More than any record is long; a description beyond that is damaged. Chosen by us.
const RECORD_BYTES_MAX: usize = 1 << 16;

/// `field:unsigned int nr_sector; offset:24; size:4; signed:0;`, with tabs, as name and place.
fn field(line: &str) -> Option<(String, Field)> {
    let line =
        line.trim().strip_prefix("field:").or_else(|| line.trim().strip_prefix("field: "))?;
    let mut parts = line.split(';').map(str::trim);
    let declared = parts.next()?;
    let name = declared.split('[').next()?.split_whitespace().next_back()?;
    // `__data_loc char[] cmd` has its brackets before the name.
    let name = if declared.starts_with("__data_loc") {
        declared.split_whitespace().next_back()?
    } else {
        name
    };
    let mut number = |key: &str| -> Option<usize> {
        parts.next()?.strip_prefix(key)?.parse().ok().filter(|&number| number < RECORD_BYTES_MAX)
    };
    let offset = number("offset:")?;
    let bytes = number("size:")?;
    Some((name.to_owned(), Field { offset, bytes }))
}

impl EventFormat {
    /// Reads a `format` file.
    ///
    /// # Errors
    /// If it has no number or a field that cannot be read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"));
        let id = id.and_then(|id| id.trim().parse().ok()).ok_or("there is no line 'ID: NUMBER'")?;
        let mut fields = BTreeMap::new();
        for line in text.lines().filter(|line| line.trim_start().starts_with("field:")) {
            let (name, place) =
                field(line).ok_or_else(|| format!("cannot be understood: '{}'", line.trim()))?;
            fields.insert(name, place);
        }
        Ok(Self { id, fields })
    }

    /// Where the field called `name` is.
    ///
    /// # Errors
    /// If there is none, or it is not of `bytes` bytes where that is said.
    pub fn field(&self, name: &str, bytes: Option<usize>) -> Result<Field, String> {
        let field = self.fields.get(name).copied().ok_or(format!("there is no field '{name}'"))?;
        match bytes {
            Some(bytes) if bytes != field.bytes => {
                Err(format!("field '{name}' has {} bytes, not {bytes}", field.bytes))
            }
            _ => Ok(field),
        }
    }
}

impl PageLayout {
    /// Reads `events/header_page`.
    ///
    /// # Errors
    /// If it is not what kernels since 2.6.30 have there.
    pub fn parse(text: &str) -> Result<Self, String> {
        let fields: BTreeMap<String, Field> = text.lines().filter_map(field).collect();
        let find = |name: &str| {
            fields.get(name).copied().ok_or_else(|| format!("there is no field '{name}'"))
        };
        let layout = Self { commit: find("commit")?, data: find("data")? };
        if find("timestamp")? != (Field { offset: 0, bytes: 8 }) {
            return Err("the time is not the first eight bytes".to_owned());
        }
        if layout.commit.bytes != 4 && layout.commit.bytes != 8 {
            return Err(format!("field 'commit' has {} bytes", layout.commit.bytes));
        }
        Ok(layout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 6.18 has it, tabs included.
    const ISSUE: &str = "name: block_rq_issue\nID: 2104\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\
        \tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;\n\n\
        print fmt: \"%d,%d\", ((unsigned int) ((REC->dev) >> 20))\n";
    const PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    #[test]
    fn fields_are_found_by_their_names() {
        let format = EventFormat::parse(ISSUE).unwrap();
        assert_eq!(format.id, 2104);
        let place = |name| format.field(name, None).unwrap();
        assert_eq!(place("sector"), Field { offset: 16, bytes: 8 });
        assert_eq!(place("rwbs"), Field { offset: 34, bytes: 10 });
        assert_eq!(place("cmd"), Field { offset: 60, bytes: 4 });
        format.field("comm", None).unwrap_err();
        format.field("dev", Some(8)).unwrap_err();
    }

    #[test]
    fn damaged_descriptions_are_refused() {
        EventFormat::parse("").unwrap_err();
        EventFormat::parse(&ISSUE.replace("2104", "many")).unwrap_err();
        EventFormat::parse(&ISSUE.replace("offset:16", "offset:-1")).unwrap_err();
        EventFormat::parse(&ISSUE.replace("size:8", "size:99999999")).unwrap_err();
    }

    #[test]
    fn the_page_is_as_the_kernel_describes_it() {
        let layout = PageLayout::parse(PAGE).unwrap();
        assert_eq!(layout.commit, Field { offset: 8, bytes: 8 });
        assert_eq!(layout.page_bytes(), 4096);
        PageLayout::parse(&PAGE.replace("data", "else")).unwrap_err();
        PageLayout::parse(&PAGE.replace("size:8;\tsigned:1", "size:2;\tsigned:1")).unwrap_err();
    }
}
