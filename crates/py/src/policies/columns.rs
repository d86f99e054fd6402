//! Columns of Rust as arrays of NumPy, without a copy.

#![expect(unsafe_code, reason = "an array is told where its numbers lie and who keeps them there")]

use numpy::ndarray::ArrayView1;
use numpy::{Element, PyArray1, PyArrayMethods};
use pyo3::prelude::*;

/// An array that cannot be written to, of the numbers in `column`, which lies in `owner`.
///
/// Who owns it neither changes nor moves the numbers while anything but itself refers to the owner; see
/// [`is_unshared`].
pub(super) fn view<'py, T: Element>(
    column: &[T],
    owner: &Bound<'py, PyAny>,
) -> Bound<'py, PyArray1<T>> {
    // SAFETY: the array keeps the owner, which keeps the numbers where they are.
    let array = unsafe { PyArray1::borrow_from_array(&ArrayView1::from(column), owner.clone()) };
    drop(array.readwrite().make_nonwriteable());
    array
}

/// Whether nothing but `owner` itself refers to it, no array and nobody who kept it: then what it holds
/// may be taken from it.
pub(super) fn is_unshared(owner: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the owner is there, and the interpreter is held.
    unsafe { pyo3::ffi::Py_REFCNT(owner.as_ptr()) == 1 }
}
