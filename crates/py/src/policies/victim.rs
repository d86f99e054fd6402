//! Which segment is collected, decided by a function of Python.

use std::sync::{Mutex, OnceLock, PoisonError};

use agewell_core::RandomStreams;
use agewell_log::policy::victim_policy::{CollectableSegments, VictimPolicy};
use numpy::PyArray1;
use pyo3::prelude::*;

use super::Function;
use super::columns::{is_unshared, view};

/// The segments that may be collected: arrays with a number a segment.
#[pyclass(frozen, name = "Segments", module = "agewell")]
pub(crate) struct SegmentsView {
    segments: Mutex<CollectableSegments>,
    utilization: OnceLock<Py<PyArray1<f64>>>,
    label: String,
}

impl SegmentsView {
    /// Looks at the columns, which nobody moves while there is an array of one.
    fn with<T>(&self, look: impl FnOnce(&mut CollectableSegments) -> T) -> T {
        look(&mut self.segments.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

type Whole<'py> = Bound<'py, PyArray1<i64>>;

#[pymethods]
impl SegmentsView {
    fn __len__(&self) -> usize {
        self.with(|segments| segments.len())
    }

    fn __repr__(&self) -> String {
        self.with(|segments| format!("<{} segments at write {}>", segments.len(), segments.clock))
    }

    #[getter]
    fn clock(&self) -> u64 {
        self.with(|segments| segments.clock)
    }

    #[getter]
    fn number<'py>(slf: &Bound<'py, Self>) -> Whole<'py> {
        slf.get().with(|segments| view(&segments.number, slf.as_any()))
    }

    #[getter]
    fn zone<'py>(slf: &Bound<'py, Self>) -> Whole<'py> {
        slf.get().with(|segments| view(&segments.zone, slf.as_any()))
    }

    #[getter]
    fn live<'py>(slf: &Bound<'py, Self>) -> Whole<'py> {
        slf.get().with(|segments| view(&segments.live, slf.as_any()))
    }

    #[getter]
    fn blocks<'py>(slf: &Bound<'py, Self>) -> Whole<'py> {
        slf.get().with(|segments| view(&segments.blocks, slf.as_any()))
    }

    #[getter]
    fn utilization<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        let shares = || {
            self.with(|segments| {
                let both = segments.live.iter().zip(&segments.blocks);
                let shares = both.map(|(live, blocks)| *live as f64 / *blocks as f64).collect();
                let array = PyArray1::from_vec(py, shares);
                drop(numpy::PyArrayMethods::readwrite(&array).make_nonwriteable());
                array.unbind()
            })
        };
        self.utilization.get_or_init(shares).bind(py).clone()
    }

    #[getter]
    fn age<'py>(slf: &Bound<'py, Self>) -> Whole<'py> {
        slf.get().with(|segments| view(&segments.age, slf.as_any()))
    }

    #[getter]
    fn opened<'py>(slf: &Bound<'py, Self>) -> Whole<'py> {
        slf.get().with(|segments| view(&segments.opened, slf.as_any()))
    }

    #[getter]
    fn sealed<'py>(slf: &Bound<'py, Self>) -> Whole<'py> {
        slf.get().with(|segments| view(&segments.sealed, slf.as_any()))
    }

    #[getter]
    fn sealing<'py>(slf: &Bound<'py, Self>) -> Whole<'py> {
        slf.get().with(|segments| view(&segments.sealing, slf.as_any()))
    }

    #[getter]
    fn log<'py>(slf: &Bound<'py, Self>) -> Whole<'py> {
        slf.get().with(|segments| view(&segments.log, slf.as_any()))
    }

    #[getter]
    fn cached<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyArray1<bool>> {
        slf.get().with(|segments| view(&segments.cached, slf.as_any()))
    }

    /// Positions drawn at random, from a stream that is the same in every run with the same seed.
    fn draw<'py>(&self, py: Python<'py>, count: usize) -> PyResult<Whole<'py>> {
        let drawn: Option<Vec<i64>> = self.with(|segments| {
            let there = segments.len();
            (there > 0).then(|| (0..count).map(|_| segments.draw(there) as i64).collect())
        });
        let over =
            || crate::error::input(format!("{}: draw after the decision was made", self.label));
        drawn.map(|drawn| PyArray1::from_vec(py, drawn)).ok_or_else(over)
    }
}

/// The policy that `function` is.
pub(super) fn policy(function: Function) -> Box<dyn VictimPolicy> {
    Box::new(Victim(function))
}

#[derive(Debug, Clone)]
struct Victim(Function);

const ANSWER: &str = "the position of a segment, such as segments.live.argmin(), or an array of \
                      numbers, one a segment, of which the highest is taken";

impl VictimPolicy for Victim {
    fn name(&self) -> String {
        self.0.name.clone()
    }

    fn choose(&mut self, segments: &mut CollectableSegments) -> Option<usize> {
        self.0.ask(|py| self.position(py, segments))
    }

    fn copied(&self) -> Box<dyn VictimPolicy> {
        Box::new(self.clone())
    }
}

impl Victim {
    fn position(&self, py: Python<'_>, segments: &mut CollectableSegments) -> PyResult<usize> {
        let nothing = CollectableSegments::none(RandomStreams::new(0).stream("nothing"));
        let shown = SegmentsView {
            segments: Mutex::new(std::mem::replace(segments, nothing)),
            utilization: OnceLock::new(),
            label: self.0.label.clone(),
        };
        let shown = Bound::new(py, shown)?;
        let answer = self.0.called.bind(py).call1((&shown,));
        // Whoever keeps an array keeps the columns; else they serve again.
        shown.get().with(|columns| {
            if is_unshared(shown.as_any()) {
                std::mem::swap(columns, segments);
            } else {
                segments.clone_from(columns);
            }
        });
        self.read(&answer?, segments)
    }

    fn read(&self, answer: &Bound<'_, PyAny>, segments: &CollectableSegments) -> PyResult<usize> {
        let count = segments.len();
        if let Some(position) = Function::whole(answer) {
            let known = usize::try_from(position).ok().filter(|position| *position < count);
            return known.ok_or_else(|| {
                self.0.wrong(format!(
                    "returned position {position}, and the {count} segments have those from 0 to {}",
                    count - 1
                ))
            });
        }
        let scores = self.0.array::<f64>(answer, count, "iuf", ANSWER)?;
        let scores = scores.as_slice()?;
        if let Some(place) = scores.iter().position(|score| score.is_nan()) {
            return Err(self.0.wrong(format!(
                "returned a score that is no number (NaN), that of position {place} of {count}"
            )));
        }
        Ok(segments.highest(scores).expect("there is a segment"))
    }
}
