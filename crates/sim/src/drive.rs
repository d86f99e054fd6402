//! The drive under a layout, with its clock and its accounts.

mod disk;
mod flushes;
pub(crate) mod load;
mod simple_disk;
mod timing;
mod together;
mod zones;

pub(crate) use disk::TimedDisk;
pub(crate) use simple_disk::SimpleDisk;
pub(crate) use timing::serve;
pub(crate) use zones::Zones;
