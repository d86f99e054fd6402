//! blktrace.
use super::RowReader;
use crate::error::TraceError;
use crate::scene::Scene;
use crate::source::Source;
use std::path::{Path, PathBuf};
pub(crate) struct Blktrace;
impl Blktrace {
    pub(crate) fn new(_path: &Path) -> Result<Self, TraceError> {
        Err(TraceError::Usage("blktrace is not read yet".to_owned()))
    }
}
impl RowReader for Blktrace {
    fn fill(&mut self, _source: &mut Source, _scene: &mut Scene) -> Result<bool, TraceError> {
        Ok(false)
    }
}
pub(crate) fn first_of_set(_path: &Path) -> Option<PathBuf> {
    None
}
pub(crate) fn fit(_sample: &super::Sample<'_>) -> super::Sureness {
    super::Sureness::No
}
