//! fio.
use super::LineFormat;
use crate::error::Problem;
use crate::scene::Scene;
#[derive(Default)]
pub(crate) struct FioIolog;
impl LineFormat for FioIolog {
    fn parse(&mut self, _line: &[u8], _scene: &mut Scene) -> Result<(), Problem> {
        Err(Problem::new("fio is not read yet"))
    }
}
pub(crate) fn fit(_sample: &super::Sample<'_>) -> super::Sureness {
    super::Sureness::No
}
