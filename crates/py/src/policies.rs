//! Policies of a simulation that are functions of Python.
//!
//! A simulation runs without the interpreter and takes hold of it for a decision alone. What a function
//! raises, and what is wrong with its answer, is kept until the simulation next says how far it is, and
//! stops it there; until then the policies of the configuration decide.

mod allocator;
mod columns;
mod placement;
mod victim;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use agewell_sim::Policies;
use numpy::{PyArrayMethods, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::error;

pub(crate) use allocator::FreePlacesView;
pub(crate) use placement::BlocksView;
pub(crate) use victim::SegmentsView;

/// What went wrong in a function, if anything did; shared by all policies of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failure(Arc<Failed>);

#[derive(Debug, Default)]
struct Failed {
    has: AtomicBool,
    what: Mutex<Option<PyErr>>,
}

impl Failure {
    fn has_happened(&self) -> bool {
        self.0.has.load(Ordering::Relaxed)
    }

    fn set(&self, what: PyErr) {
        self.0.has.store(true, Ordering::Relaxed);
        // The first says what was wrong.
        let mut kept = self.0.what.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get_or_insert(what);
    }

    /// # Errors
    /// With what went wrong, once.
    pub(crate) fn check(&self) -> PyResult<()> {
        if !self.has_happened() {
            return Ok(());
        }
        let what = self.0.what.lock().unwrap_or_else(PoisonError::into_inner).take();
        what.map_or(Ok(()), Err)
    }
}

/// A function of Python that decides something.
#[derive(Debug, Clone)]
struct Function {
    called: Arc<Py<PyAny>>,
    /// What results call it.
    name: String,
    /// What messages call it.
    label: String,
    failure: Failure,
}

impl Function {
    /// Lets `decide` call the function, unless one has failed before.
    fn ask<T>(&self, decide: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
        if self.failure.has_happened() {
            return None;
        }
        // Signals reach Python only while it holds the interpreter.
        let decided = Python::attach(|py| {
            py.check_signals()?;
            decide(py)
        });
        decided.map_err(|what| self.failure.set(what)).ok()
    }

    /// An error about what the function returned.
    fn wrong(&self, what: impl std::fmt::Display) -> PyErr {
        error::input(format!("{}: {what}", self.label))
    }

    /// The whole number that `answer` is, if it is one and no truth value.
    fn whole(answer: &Bound<'_, PyAny>) -> Option<i64> {
        if answer.is_instance_of::<PyBool>() || answer.is_none() {
            return None;
        }
        let is_array = answer.cast::<PyUntypedArray>().is_ok_and(|array| array.ndim() > 0);
        if is_array { None } else { answer.extract().ok() }
    }

    /// `answer` as an array of `count` numbers, of which the kind is one of `kinds`: NumPy's letters.
    fn array<'py, T: numpy::Element>(
        &self,
        answer: &Bound<'py, PyAny>,
        count: usize,
        kinds: &str,
        of: &str,
    ) -> PyResult<PyReadonlyArray1<'py, T>> {
        let expected = || format!("return {of}");
        let Ok(array) = answer.cast::<PyUntypedArray>() else {
            let kind = answer.get_type().name()?;
            return Err(self.wrong(format!("returned {kind}; {}", expected())));
        };
        if array.ndim() != 1 || array.len() != count {
            let shape = array.shape();
            return Err(self.wrong(format!(
                "returned an array of shape {shape:?} where there are {count}; {}",
                expected()
            )));
        }
        let dtype = array.dtype();
        let kind: String = dtype.getattr("kind")?.extract()?;
        if !kinds.contains(&kind) {
            return Err(self.wrong(format!("returned an array of {dtype}; {}", expected())));
        }
        let wanted = numpy::dtype::<T>(answer.py());
        let converted = answer.call_method1("astype", (wanted,))?;
        Ok(converted.cast::<numpy::PyArray1<T>>()?.readonly())
    }
}

/// Functions as Python hands them over: for each kind of policy the function, what results call it, and
/// what messages call it.
#[derive(FromPyObject, Default)]
#[pyo3(from_item_all)]
pub(crate) struct Functions {
    victim: Option<(Py<PyAny>, String, String)>,
    placement: Option<(Py<PyAny>, String, String)>,
    allocator: Option<(Py<PyAny>, String, String)>,
}

impl Functions {
    /// The policies that they are, and where what goes wrong with them will be found.
    pub(crate) fn into_policies(self) -> (Policies, Failure) {
        let failure = Failure::default();
        let function = |(function, name, label)| Function {
            called: Arc::new(function),
            name,
            label,
            failure: failure.clone(),
        };
        let policies = Policies {
            victim: self.victim.map(|given| victim::policy(function(given))),
            placement: self.placement.map(|given| placement::policy(function(given))),
            allocator: self.allocator.map(|given| allocator::policy(function(given))),
        };
        (policies, failure)
    }
}
