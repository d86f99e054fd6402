//! Errors in a device description.
//!
//! Every variant carries the file and the key or line, so that the message alone is enough to find the fault.

use std::path::PathBuf;

/// Why a device could not be loaded or imported.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The file could not be read.
    #[error("{}: cannot read the device file: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The text is not TOML.
    #[error("{file}: not a TOML file: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// The parser's message, on one line.
        message: String,
    },
    /// A key that is unknown, missing, of the wrong type, out of range or at odds with others.
    #[error("{file}: {message}")]
    Key {
        /// The file.
        file: String,
        /// Which key, what is wrong and what would be right.
        message: String,
    },
    /// A parameter file of another tool that could not be understood.
    #[error("{file}: line {line}: {message}")]
    Import {
        /// The file.
        file: String,
        /// Line, counted from 1.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
    /// A model name that is not in the catalogue.
    #[error("no device '{name}' in {catalogue}: {hint}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// Where it was looked for.
        catalogue: String,
        /// The nearest known name, or all of them.
        hint: String,
    },
}
