//! tracepoint text.
use super::LineFormat;
use crate::error::Problem;
use crate::scene::Scene;
#[derive(Default)]
pub(crate) struct Tracepoint;
impl LineFormat for Tracepoint {
    fn parse(&mut self, _line: &[u8], _scene: &mut Scene) -> Result<(), Problem> {
        Err(Problem::new("tracepoint text is not read yet"))
    }
}
pub(crate) fn fit(_sample: &super::Sample<'_>) -> super::Sureness {
    super::Sureness::No
}
