//! What the data lie on, for estimates that know neither zones nor dies.

use super::mechanical::MechanicalParameters;
use super::simple::SimpleParameters;

/// What the data lie on, for estimates that know neither zones nor dies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Medium<'a> {
    /// As good as access time and bandwidth.
    Simple(SimpleParameters),
    /// Arm, platter, buffer and bus.
    Mechanical(&'a MechanicalParameters),
}
