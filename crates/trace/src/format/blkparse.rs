//! blkparse text.
use super::LineFormat;
use crate::error::Problem;
use crate::scene::Scene;
#[derive(Default)]
pub(crate) struct Blkparse;
impl LineFormat for Blkparse {
    fn parse(&mut self, _line: &[u8], _scene: &mut Scene) -> Result<(), Problem> {
        Err(Problem::new("blkparse text is not read yet"))
    }
}
