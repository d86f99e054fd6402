//! The syntax of DiskSim's parameter files (libparam): blocks of `key = value`, lists, comments, `source` files.

use std::path::{Path, PathBuf};

use crate::DeviceError;

/// A value with the line it stands on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Value {
    pub(super) line: usize,
    pub(super) kind: ValueKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ValueKind {
    /// A number, a word or a file name.
    Word(String),
    /// `[a, b, c]`
    List(Vec<Value>),
    /// `type name { key = value, ... }`
    Block(Block),
    /// `source FILE`
    Source(String),
}

/// `type name { key = value, ... }`
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Block {
    pub(super) file: PathBuf,
    pub(super) line: usize,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) entries: Vec<(String, Value)>,
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    Mark(char),
}

struct Parser<'a> {
    file: &'a Path,
    tokens: Vec<(usize, Token)>,
    at: usize,
}

/// An error at `line` of `file`.
pub(super) fn error(file: &Path, line: usize, message: impl Into<String>) -> DeviceError {
    DeviceError::Import { file: file.display().to_string(), line, message: message.into() }
}

/// Every top-level block of the file at `path`.
pub(super) fn read_blocks(path: &Path) -> Result<Vec<Block>, DeviceError> {
    let text = agewell_core::read_bounded(path, agewell_core::TEXT_BYTES_MAX)
        .map_err(|source| DeviceError::Read { path: path.to_owned(), source })?;
    let text = String::from_utf8_lossy(&text);
    let mut parser = Parser { file: path, tokens: tokens(path, &text)?, at: 0 };
    let mut blocks = Vec::new();
    while parser.at < parser.tokens.len() {
        blocks.push(parser.top_level_block()?);
    }
    if blocks.is_empty() {
        return Err(error(path, 1, "holds no parameter block"));
    }
    Ok(blocks)
}

fn tokens(file: &Path, text: &str) -> Result<Vec<(usize, Token)>, DeviceError> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let line = line.split('#').next().unwrap_or("");
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            if first.is_whitespace() {
                rest = &rest[first.len_utf8()..];
            } else if "{}[]=,".contains(first) {
                found.push((number, Token::Mark(first)));
                rest = &rest[1..];
            } else if first == '"' {
                let Some(end) = rest[1..].find('"') else {
                    return Err(error(file, number, "a quoted text does not end on its line"));
                };
                found.push((number, Token::Word(rest[1..=end].to_owned())));
                rest = &rest[end + 2..];
            } else {
                let end = rest
                    .find(|letter: char| letter.is_whitespace() || "{}[]=,\"".contains(letter))
                    .unwrap_or(rest.len());
                found.push((number, Token::Word(rest[..end].to_owned())));
                rest = &rest[end..];
            }
        }
    }
    Ok(found)
}

impl Parser<'_> {
    fn line(&self) -> usize {
        let last = self.tokens.last().map_or(1, |token| token.0);
        self.tokens.get(self.at).map_or(last, |token| token.0)
    }

    fn fail<T>(&self, message: impl Into<String>) -> Result<T, DeviceError> {
        Err(error(self.file, self.line(), message))
    }

    fn peek_mark(&self, mark: char) -> bool {
        matches!(self.tokens.get(self.at), Some((_, Token::Mark(found))) if *found == mark)
    }

    fn take_mark(&mut self, mark: char) -> bool {
        let found = self.peek_mark(mark);
        self.at += usize::from(found);
        found
    }

    /// The words up to the next mark.
    fn words(&mut self) -> Vec<String> {
        let mut words = Vec::new();
        while let Some((_, Token::Word(word))) = self.tokens.get(self.at) {
            words.push(word.clone());
            self.at += 1;
        }
        words
    }

    fn describe(&self) -> String {
        match self.tokens.get(self.at) {
            Some((_, Token::Word(word))) => format!("'{word}'"),
            Some((_, Token::Mark(mark))) => format!("'{mark}'"),
            None => "the end of the file".to_owned(),
        }
    }

    fn top_level_block(&mut self) -> Result<Block, DeviceError> {
        let words = self.words();
        if words.is_empty() {
            return self.fail(format!("a block is expected, not {}", self.describe()));
        }
        self.block(&words)
    }

    fn block(&mut self, words: &[String]) -> Result<Block, DeviceError> {
        let line = self.line();
        if !self.take_mark('{') {
            return self.fail(format!(
                "'{{' is expected after '{}', not {}",
                words.join(" "),
                self.describe()
            ));
        }
        let mut entries: Vec<(String, Value)> = Vec::new();
        loop {
            if self.take_mark('}') {
                break;
            }
            if self.take_mark(',') {
                continue;
            }
            let key = self.words().join(" ");
            if key.is_empty() {
                return self.fail(format!("a parameter name is expected, not {}", self.describe()));
            }
            if !self.take_mark('=') {
                return self
                    .fail(format!("'=' is expected after '{key}', not {}", self.describe()));
            }
            if entries.iter().any(|(known, _)| *known == key) {
                return self.fail(format!("'{key}' is given twice"));
            }
            let value = self.value(&key)?;
            entries.push((key, value));
        }
        Ok(Block {
            file: self.file.to_owned(),
            line,
            kind: words[0].clone(),
            name: words.get(1).cloned().unwrap_or_default(),
            entries,
        })
    }

    fn value(&mut self, key: &str) -> Result<Value, DeviceError> {
        let line = self.line();
        if self.take_mark('[') {
            let mut items = Vec::new();
            loop {
                if self.take_mark(']') {
                    break;
                }
                if self.take_mark(',') {
                    continue;
                }
                items.push(self.value(key)?);
            }
            return Ok(Value { line, kind: ValueKind::List(items) });
        }
        let words = self.words();
        let kind = match words.as_slice() {
            [] => return self.fail(format!("'{key}' has no value, only {}", self.describe())),
            [word, file] if word == "source" => ValueKind::Source(file.clone()),
            words if self.peek_mark('{') => ValueKind::Block(self.block(words)?),
            words => ValueKind::Word(words.join(" ")),
        };
        Ok(Value { line, kind })
    }
}

impl Block {
    /// The value of `key`, if given.
    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.entries.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    fn wrong(&self, value: &Value, key: &str, wanted: &str) -> DeviceError {
        let found = match &value.kind {
            ValueKind::Word(word) => format!("'{word}'"),
            ValueKind::List(_) => "a list".to_owned(),
            ValueKind::Block(_) => "a block".to_owned(),
            ValueKind::Source(file) => format!("the file {file}"),
        };
        error(&self.file, value.line, format!("'{key}' must be {wanted}, not {found}"))
    }

    /// An error for a key that must be there.
    pub(super) fn missing(&self, key: &str) -> DeviceError {
        error(&self.file, self.line, format!("block '{}' has no '{key}'", self.kind))
    }

    /// A number, if given.
    pub(super) fn optional_number(&self, key: &str) -> Result<Option<f64>, DeviceError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        self.as_number(value, key).map(Some)
    }

    fn as_number(&self, value: &Value, key: &str) -> Result<f64, DeviceError> {
        let ValueKind::Word(word) = &value.kind else {
            return Err(self.wrong(value, key, "a number"));
        };
        word.parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
            .ok_or_else(|| self.wrong(value, key, "a number"))
    }

    /// A number.
    pub(super) fn number(&self, key: &str) -> Result<f64, DeviceError> {
        self.optional_number(key)?.ok_or_else(|| self.missing(key))
    }

    /// A whole number that is not negative.
    pub(super) fn whole(&self, key: &str) -> Result<u64, DeviceError> {
        let value = self.get(key).ok_or_else(|| self.missing(key))?;
        self.as_whole(value, key)
    }

    fn as_whole(&self, value: &Value, key: &str) -> Result<u64, DeviceError> {
        let number = self.as_number(value, key)?;
        if number < 0.0 || number.fract() != 0.0 || number > 9e15 {
            return Err(self.wrong(value, key, "a whole number that is not negative"));
        }
        Ok(number as u64)
    }

    /// A word, if given.
    pub(super) fn optional_word(&self, key: &str) -> Result<Option<&str>, DeviceError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value { kind: ValueKind::Word(word), .. }) => Ok(Some(word)),
            Some(value) => Err(self.wrong(value, key, "a word")),
        }
    }

    /// The items of a list, empty if not given.
    pub(super) fn list(&self, key: &str) -> Result<&[Value], DeviceError> {
        match self.get(key) {
            None => Ok(&[]),
            Some(Value { kind: ValueKind::List(items), .. }) => Ok(items),
            Some(value) => Err(self.wrong(value, key, "a list")),
        }
    }

    /// A list of numbers, empty if not given.
    pub(super) fn numbers(&self, key: &str) -> Result<Vec<f64>, DeviceError> {
        self.list(key)?.iter().map(|item| self.as_number(item, key)).collect()
    }

    /// A list of whole numbers, empty if not given.
    pub(super) fn wholes(&self, key: &str) -> Result<Vec<u64>, DeviceError> {
        self.list(key)?.iter().map(|item| self.as_whole(item, key)).collect()
    }

    /// A block given in place, from a file, or by the name of one of `others`.
    pub(super) fn block(&self, key: &str, others: &[Block]) -> Result<Block, DeviceError> {
        let value = self.get(key).ok_or_else(|| self.missing(key))?;
        match &value.kind {
            ValueKind::Block(block) => Ok(block.clone()),
            ValueKind::Source(name) => {
                let path = beside(&self.file, name);
                let blocks = read_blocks(&path).map_err(|cause| match cause {
                    DeviceError::Read { path, source } => error(
                        &self.file,
                        value.line,
                        format!("'{key}' needs {}, which cannot be read: {source}", path.display()),
                    ),
                    other => other,
                })?;
                Ok(blocks.into_iter().next().expect("a file with no block is an error"))
            }
            ValueKind::Word(name) => {
                others.iter().find(|block| block.name == *name).cloned().ok_or_else(|| {
                    self.wrong(value, key, "a block, or the name of one in this file")
                })
            }
            ValueKind::List(_) => Err(self.wrong(value, key, "a block")),
        }
    }
}

/// The file `name` beside `file`.
pub(super) fn beside(file: &Path, name: &str) -> PathBuf {
    file.parent().unwrap_or(Path::new("")).join(name)
}
