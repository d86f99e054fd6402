//! Words of a command line. The program is called by others, which say what is wrong more kindly; here what
//! is not known is refused.

use std::ffi::OsString;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

/// Why a command does not do what it was asked for: one line.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct CommandError {
    message: String,
    /// 2: what was asked for cannot be. 1: it failed.
    pub code: i32,
}

impl CommandError {
    /// It cannot be as it was asked for.
    pub(crate) fn input(message: impl Display) -> Self {
        Self { message: message.to_string(), code: 2 }
    }

    /// It failed.
    pub(crate) fn failed(message: impl Display) -> Self {
        Self { message: message.to_string(), code: 1 }
    }
}

/// See the module: options that begin with `-`, and paths between them.
#[derive(Debug)]
pub(crate) struct Words {
    words: std::vec::IntoIter<OsString>,
    pub(crate) paths: Vec<PathBuf>,
}

impl Words {
    pub(crate) fn new(words: impl IntoIterator<Item = OsString>) -> Self {
        let words: Vec<_> = words.into_iter().collect();
        Self { words: words.into_iter(), paths: Vec::new() }
    }

    pub(crate) fn command(&mut self) -> Result<String, CommandError> {
        let word = self.words.next().and_then(|word| word.into_string().ok());
        word.ok_or_else(|| CommandError::input(super::USAGE))
    }

    /// The next option; paths before it are put aside.
    pub(crate) fn option(&mut self) -> Option<String> {
        for word in self.words.by_ref() {
            match word.to_str() {
                Some(option) if option.starts_with('-') && option.len() > 1 => {
                    return Some(option.to_owned());
                }
                _ => self.paths.push(word.into()),
            }
        }
        None
    }

    /// The word behind `option`.
    pub(crate) fn value(&mut self, option: &str) -> Result<String, CommandError> {
        let word = self.words.next().and_then(|word| word.into_string().ok());
        word.ok_or_else(|| CommandError::input(format!("{option} wants a value")))
    }

    /// The number behind `option`.
    pub(crate) fn number<T: FromStr>(&mut self, option: &str) -> Result<T, CommandError> {
        let word = self.value(option)?;
        word.parse().map_err(|_| CommandError::input(format!("{option} {word}: not a number")))
    }

    /// As many paths as there must be; `what` they are.
    pub(crate) fn exactly<const N: usize>(self, what: &str) -> Result<[PathBuf; N], CommandError> {
        self.paths.try_into().map_err(|paths: Vec<PathBuf>| {
            CommandError::input(format!("{what} wanted, {} given", paths.len()))
        })
    }
}

/// That an option is not known.
pub(crate) fn unknown(option: &str) -> CommandError {
    CommandError::input(format!("there is no option {option}"))
}
