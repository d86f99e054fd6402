//! One type for whichever model a device file describes, dispatched without a virtual call.

use agewell_core::{BlockRequest, Sector, SectorCount, SimDuration, SimTime};

use crate::{
    Device, DeviceKind, DeviceParameters, Flash, LayoutAdvice, Mechanical, Moment, Refused,
    Service, Simple, Zoned,
};

/// A device of any modelled kind.
#[derive(Debug, Clone)]
pub enum DeviceModel {
    /// Access time and bandwidth.
    Simple(Simple),
    /// Arm, platter, buffer and bus; boxed because it is a hundred times the size.
    Mechanical(Box<Mechanical>),
    /// A drive that is written zone by zone.
    Zoned(Box<Zoned>),
    /// Dies behind channels and a translation layer.
    Flash(Box<Flash>),
}

impl DeviceModel {
    /// The device that `parameters` describe, at rest.
    #[must_use]
    pub fn new(parameters: &DeviceParameters) -> Self {
        match &parameters.kind {
            DeviceKind::Simple(simple) => {
                let capacity = SectorCount(parameters.capacity_sectors);
                DeviceModel::Simple(Simple::new(simple, capacity))
            }
            DeviceKind::Mechanical(mechanical) => {
                DeviceModel::Mechanical(Box::new(Mechanical::new(mechanical)))
            }
            DeviceKind::Zoned(zoned) => DeviceModel::Zoned(Box::new(Zoned::new(zoned))),
            DeviceKind::Flash(flash) => DeviceModel::Flash(Box::new(Flash::new(flash))),
        }
    }
}

/// Calls the same method on whichever model it is.
macro_rules! each {
    ($self:expr, $model:ident => $call:expr) => {
        match $self {
            DeviceModel::Simple($model) => $call,
            DeviceModel::Mechanical($model) => $call,
            DeviceModel::Zoned($model) => $call,
            DeviceModel::Flash($model) => $call,
        }
    };
}

impl Device for DeviceModel {
    fn capacity(&self) -> SectorCount {
        each!(self, model => model.capacity())
    }

    fn cylinders(&self) -> u32 {
        each!(self, model => model.cylinders())
    }

    fn cylinder_of(&self, sector: Sector) -> u32 {
        each!(self, model => model.cylinder_of(sector))
    }

    fn current_cylinder(&self) -> u32 {
        each!(self, model => model.current_cylinder())
    }

    fn serve(&mut self, issue: SimTime, request: &BlockRequest) -> Service {
        each!(self, model => model.serve(issue, request))
    }

    fn queue_depth(&self) -> u32 {
        each!(self, model => model.queue_depth())
    }

    fn serve_together(
        &mut self,
        issue: SimTime,
        requests: &[BlockRequest],
        services: &mut Vec<Service>,
    ) {
        each!(self, model => model.serve_together(issue, requests, services));
    }

    fn prefill(&mut self, first: Sector, sectors: SectorCount) {
        each!(self, model => model.prefill(first, sectors));
    }

    fn layout_advice(&self) -> LayoutAdvice {
        each!(self, model => model.layout_advice())
    }

    fn check(&self, request: &BlockRequest) -> Result<(), Refused> {
        each!(self, model => model.check(request))
    }

    fn moment(&self, issue: SimTime) -> Moment {
        each!(self, model => model.moment(issue))
    }

    fn positioning(&self, moment: &Moment, request: &BlockRequest) -> SimDuration {
        each!(self, model => model.positioning(moment, request))
    }

    fn positioning_at_least(&self, moment: &Moment, cylinders: u32) -> SimDuration {
        each!(self, model => model.positioning_at_least(moment, cylinders))
    }

    fn buffered_cylinders(&self, moment: &Moment, visit: &mut dyn FnMut(u32)) {
        each!(self, model => model.buffered_cylinders(moment, visit));
    }
}
