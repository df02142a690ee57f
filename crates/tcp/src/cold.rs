//! Cold state: apart from what every segment needs, so that this takes few cache lines.

use std::ops::{Deref, DerefMut};

/// Cold state, which most connections never need. It takes a pointer until it is changed for the first time.
#[derive(Clone, Debug)]
pub(crate) struct Cold<T>(Option<Box<T>>);

/// A type with one value that all states begin with.
pub(crate) trait Initial: Clone + 'static {
    /// Returns that value.
    fn initial() -> &'static Self;
}

impl<T> Cold<T> {
    /// Returns a state with the initial value.
    pub(crate) const fn new() -> Self {
        Self(None)
    }

    /// Returns the state to be changed, if it has been changed before.
    #[inline]
    pub(crate) fn changed(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }

    /// Returns the state to its initial value.
    pub(crate) fn reset(&mut self) {
        self.0 = None;
    }

    /// Returns whether the state has never been changed.
    #[inline]
    pub(crate) fn is_initial(&self) -> bool {
        self.0.is_none()
    }
}

impl<T: Initial> Deref for Cold<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or_else(|| T::initial())
    }
}

impl<T: Initial> DerefMut for Cold<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_with(|| Box::new(T::initial().clone()))
    }
}
