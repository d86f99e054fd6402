//! Block requests at times of their own: through remapping and a queue onto a device.

mod intake;
mod load;
pub mod remap;
pub mod replay;
mod run;
mod source;
pub mod synthetic;
pub(crate) mod tables;
mod values;

pub(crate) use run::{Run, run};
