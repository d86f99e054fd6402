//! Which open log blocks go to, decided by a function of Python.

use agewell_log::policy::placement::{BlocksToPlace, CollectedSegment, PlacementPolicy};
use numpy::PyArray1;
use pyo3::prelude::*;

use super::Function;
use super::columns::{is_unshared, view};

/// Blocks that are placed together: arrays with a number a block.
#[pyclass(frozen, name = "Blocks", module = "agewell")]
pub(crate) struct BlocksView {
    blocks: std::sync::Mutex<BlocksToPlace>,
}

impl BlocksView {
    fn with<T>(&self, look: impl FnOnce(&mut BlocksToPlace) -> T) -> T {
        look(&mut self.blocks.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn of_segment<T>(&self, number: impl FnOnce(CollectedSegment) -> T) -> Option<T> {
        self.with(|blocks| blocks.from).map(number)
    }
}

#[pymethods]
impl BlocksView {
    fn __len__(&self) -> usize {
        self.with(|blocks| blocks.len())
    }

    fn __repr__(&self) -> String {
        self.with(|blocks| {
            let from = if blocks.from.is_some() { "collected" } else { "written" };
            format!("<{} {from} blocks at write {}>", blocks.len(), blocks.clock)
        })
    }

    #[getter]
    fn clock(&self) -> u64 {
        self.with(|blocks| blocks.clock)
    }

    #[getter]
    fn number<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyArray1<i64>> {
        slf.get().with(|blocks| view(&blocks.block, slf.as_any()))
    }

    #[getter]
    fn age<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyArray1<i64>> {
        slf.get().with(|blocks| view(&blocks.age, slf.as_any()))
    }

    #[getter]
    fn is_collected(&self) -> bool {
        self.with(|blocks| blocks.from.is_some())
    }

    #[getter]
    fn segment_log(&self) -> Option<u8> {
        self.of_segment(|segment| segment.log)
    }

    #[getter]
    fn segment_blocks(&self) -> Option<u32> {
        self.of_segment(|segment| segment.blocks)
    }

    #[getter]
    fn segment_live(&self) -> Option<u32> {
        self.of_segment(|segment| segment.live)
    }

    #[getter]
    fn segment_opened(&self) -> Option<u64> {
        self.of_segment(|segment| segment.opened)
    }

    #[getter]
    fn segment_sealed(&self) -> Option<u64> {
        self.of_segment(|segment| segment.sealed)
    }
}

/// The policy that `function` is.
pub(super) fn policy(function: Function) -> Box<dyn PlacementPolicy> {
    Box::new(Placement(function))
}

#[derive(Debug, Clone)]
struct Placement(Function);

const ANSWER: &str = "the number of a log, or an array of them, one a block";

impl PlacementPolicy for Placement {
    fn name(&self) -> String {
        self.0.name.clone()
    }

    fn place(&mut self, blocks: &mut BlocksToPlace, last: u8, chosen: &mut [u8]) {
        if let Some(placed) = self.0.ask(|py| self.logs_of(py, blocks, last)) {
            chosen.copy_from_slice(&placed);
        }
    }

    fn copied(&self) -> Box<dyn PlacementPolicy> {
        Box::new(self.clone())
    }
}

impl Placement {
    fn logs_of(&self, py: Python<'_>, blocks: &mut BlocksToPlace, last: u8) -> PyResult<Vec<u8>> {
        let shown = BlocksView { blocks: std::sync::Mutex::new(std::mem::take(blocks)) };
        let shown = Bound::new(py, shown)?;
        let answer = self.0.called.bind(py).call1((&shown,));
        shown.get().with(|columns| {
            if is_unshared(shown.as_any()) {
                std::mem::swap(columns, blocks);
            } else {
                blocks.clone_from(columns);
            }
        });
        let (answer, count) = (answer?, blocks.len());
        let log = |named: i64| {
            u8::try_from(named).ok().filter(|log| *log <= last).ok_or_else(|| {
                self.0.wrong(format!(
                    "returned log {named}, and the logs are those from 0 to {last}: layout.logs says how \
                     many"
                ))
            })
        };
        if let Some(named) = Function::whole(&answer) {
            return Ok(vec![log(named)?; count]);
        }
        let named = self.0.array::<i64>(&answer, count, "iub", ANSWER)?;
        named.as_slice()?.iter().map(|named| log(*named)).collect()
    }
}
