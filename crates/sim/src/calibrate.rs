//! Transfer times of a drive, measured before the first request: for policies, and for a log that
//! looks ahead.

mod calibration;
mod measure;

pub(crate) use calibration::calibrate;
pub(crate) use measure::measure;
