//! Paths as text: what is not UTF-8, and the per cent sign, as `%` and two hexadecimal digits.

use std::fmt::Write;

use serde::{Deserialize, Deserializer, Serializer, de::Error};

pub(crate) fn serialize<S: Serializer>(path: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&to_text(path))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    from_text(&text).ok_or_else(|| D::Error::custom(format!("'{text}' is no path of a plan")))
}

fn to_text(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for part in path.utf8_chunks() {
        text.push_str(&part.valid().replace('%', "%25"));
        for byte in part.invalid() {
            write!(text, "%{byte:02x}").expect("text takes all that is written to it");
        }
    }
    text
}

fn from_text(text: &str) -> Option<Vec<u8>> {
    let mut path = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        if *first != b'%' {
            path.push(*first);
            rest = behind;
            continue;
        }
        let digits = std::str::from_utf8(behind.get(..2)?).ok()?;
        path.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &behind[2..];
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        /// Any name comes back from its text.
        #[test]
        fn any_bytes_come_back(path in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(super::from_text(&super::to_text(&path)), Some(path));
        }
    }

    #[test]
    fn cut_escapes_are_refused() {
        assert_eq!(super::from_text("a%2"), None);
        assert_eq!(super::from_text("%zz"), None);
    }
}
