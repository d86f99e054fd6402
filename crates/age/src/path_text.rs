//! Names of files in the JSON that Python hands over.
//!
//! A name on Linux is any bytes but zero; JSON is Unicode. So a byte that is no part of UTF-8 text
//! stands there as a zero character and two hexadecimal digits (`path_text` in
//! `python/agewell/files/__init__.py` writes them): no name holds a zero byte, so that nothing else is
//! written so.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use serde::de::{Deserialize, Deserializer, Error};

/// One name, an optional one, or several.
pub(crate) trait Names: Sized {
    /// How they stand in JSON.
    type Text<'de>: Deserialize<'de>;

    /// The names of `text`; `None` if it is damaged.
    fn from_text(text: Self::Text<'_>) -> Option<Self>;
}

impl Names for PathBuf {
    type Text<'de> = String;

    fn from_text(text: String) -> Option<Self> {
        let mut parts = text.split('\0');
        let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
        for part in parts {
            let (digits, rest) = part.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            bytes.extend(rest.as_bytes());
        }
        Some(OsString::from_vec(bytes).into())
    }
}

impl Names for Option<PathBuf> {
    type Text<'de> = Option<String>;

    fn from_text(text: Option<String>) -> Option<Self> {
        text.map_or(Some(None), |text| PathBuf::from_text(text).map(Some))
    }
}

impl Names for Vec<PathBuf> {
    type Text<'de> = Vec<String>;

    fn from_text(text: Vec<String>) -> Option<Self> {
        text.into_iter().map(PathBuf::from_text).collect()
    }
}

/// For `#[serde(deserialize_with)]`.
pub(crate) fn read<'de, D: Deserializer<'de>, T: Names>(deserializer: D) -> Result<T, D::Error> {
    let text = T::Text::deserialize(deserializer)?;
    T::from_text(text).ok_or_else(|| D::Error::custom("the name of a file is damaged"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn any_bytes_come_through() {
        let cases: [(&str, &[u8]); 4] = [
            ("plain/name", b"plain/name"),
            ("\0ffbad\0fe\0fd", b"\xffbad\xfe\xfd"),
            ("\u{e9}\0e9", b"\xc3\xa9\xe9"),
            ("", b""),
        ];
        for (text, bytes) in cases {
            let path = PathBuf::from_text(text.to_owned()).expect("a name");
            assert_eq!(path.as_os_str().as_bytes(), bytes);
        }
        assert_eq!(PathBuf::from_text("x\0f".to_owned()), None);
        assert_eq!(PathBuf::from_text("x\0fg".to_owned()), None);
    }
}
