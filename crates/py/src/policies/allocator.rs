//! Which free place is written next, decided by a function of Python.

use std::sync::OnceLock;

use agewell_layout::write_anywhere::{Allocator, Choice, Heading, View};
use agewell_log::free_places::FreePlaces;
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;

use super::Function;

/// The places of a disk, and which of them are free.
#[pyclass(frozen, name = "Places", module = "agewell")]
pub(crate) struct FreePlacesView {
    free: FreePlaces,
    head: u32,
    last_written: u32,
    is_upwards: bool,
    array: OnceLock<Py<PyArray1<bool>>>,
}

#[pymethods]
impl FreePlacesView {
    fn __len__(&self) -> usize {
        self.free.places() as usize
    }

    fn __repr__(&self) -> String {
        let (free, places) = (self.free.free(), self.free.places());
        format!("<{free} of {places} places free, head at {}>", self.head)
    }

    #[getter]
    fn head(&self) -> u32 {
        self.head
    }

    #[getter]
    fn last_written(&self) -> u32 {
        self.last_written
    }

    #[getter]
    fn is_upwards(&self) -> bool {
        self.is_upwards
    }

    /// Whether each place is free.
    #[getter]
    fn free<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<bool>> {
        let all = || {
            let free = (0..self.free.places()).map(|place| self.free.is_free(place)).collect();
            let array = PyArray1::from_vec(py, free);
            drop(array.readwrite().make_nonwriteable());
            array.unbind()
        };
        self.array.get_or_init(all).bind(py).clone()
    }

    /// The first free place from `place` on, if there is one.
    fn at_or_after(&self, place: i64) -> Option<u32> {
        let from = place.clamp(0, i64::from(u32::MAX)) as u32;
        (from < self.free.places()).then(|| self.free.at_or_after(from)).flatten()
    }

    /// The last free place up to `place`, if there is one.
    fn at_or_before(&self, place: i64) -> Option<u32> {
        let last = i64::from(self.free.places()) - 1;
        (place >= 0).then(|| self.free.at_or_before(place.min(last) as u32)).flatten()
    }
}

/// The policy that `function` is.
pub(super) fn policy(function: Function) -> Box<dyn Allocator> {
    Box::new(Search(function))
}

#[derive(Debug, Clone)]
struct Search(Function);

impl Allocator for Search {
    fn name(&self) -> String {
        self.0.name.clone()
    }

    fn choose(&mut self, view: View<'_>) -> Option<Choice> {
        self.0.ask(|py| self.place(py, view))
    }

    fn copied(&self) -> Box<dyn Allocator> {
        Box::new(self.clone())
    }
}

impl Search {
    fn place(&self, py: Python<'_>, view: View<'_>) -> PyResult<Choice> {
        let shown = FreePlacesView {
            free: view.free.clone(),
            head: view.head,
            last_written: view.last_written,
            is_upwards: view.heading == Heading::Up,
            array: OnceLock::new(),
        };
        let answer = self.0.called.bind(py).call1((shown,))?;
        let both = answer.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>();
        let (place, direction) = match &both {
            Ok((place, direction)) => (Function::whole(place), Function::whole(direction)),
            Err(_) => (Function::whole(&answer), Some(1)),
        };
        let heading = match direction {
            Some(1) => Some(Heading::Up),
            Some(-1) => Some(Heading::Down),
            _ => None,
        };
        let (Some(place), Some(heading)) = (place, heading) else {
            let given = answer.repr()?;
            return Err(self.0.wrong(format!(
                "returned {given}; return the number of a free place, or a pair of it and the direction \
                 in which those beside it are filled, 1 or -1"
            )));
        };
        let end = view.free.places();
        match u32::try_from(place).ok().filter(|place| view.free.is_free(*place)) {
            Some(place) => Ok(Choice { place, heading, end }),
            None if (0..i64::from(end)).contains(&place) => {
                Err(self.0.wrong(format!("returned place {place}, which is not free")))
            }
            None => Err(self.0.wrong(format!(
                "returned place {place}, and the disk has those from 0 to {}",
                end - 1
            ))),
        }
    }
}
