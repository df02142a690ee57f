//! The largest of the latest values.

use weir_units::{Duration, Time};

/// The largest value of the current period and of the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecentMax<T> {
    since: Time,
    current: T,
    earlier: T,
}

impl<T: Copy + Default + PartialOrd> RecentMax<T> {
    /// Takes a value. It counts for one to two `period`s.
    pub(crate) fn update(&mut self, now: Time, period: Duration, value: T) {
        let passed = now.since(self.since);
        if passed >= period {
            let is_next = passed < period * 2;
            *self = Self {
                since: now,
                earlier: if is_next { self.current } else { T::default() },
                current: value,
            };
        } else if value > self.current {
            self.current = value;
        }
    }

    /// Returns the largest value; the default without any.
    pub(crate) fn get(&self) -> T {
        if self.current < self.earlier {
            self.earlier
        } else {
            self.current
        }
    }
}
