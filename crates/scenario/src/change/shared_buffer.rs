//! What can change of the memory that the ports of a switch share.

use serde::Serialize;
use weir_scenario_derive::Keys;
use weir_units::ByteSize;

use super::Misfit;
use crate::schema::Accepts;
use crate::{SharedBuffer, SharedLimit};

/// New values of a shared buffer, for packets that arrive from then on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Keys)]
#[keys(
    title = "[[changes]] set.shared_buffer",
    doc = "New values of the shared buffers of `switches`, for packets that arrive from then on. Packets that wait stay."
)]
pub struct SharedBufferChange {
    /// The size of the memory.
    #[key(accepts = Accepts::SIZE, absent = "as before")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<ByteSize>,
    /// How many times the free memory a port may hold, where it was `alpha` before.
    #[key(accepts = Accepts::Number(0.001, 1000.0), absent = "as before")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// How much a port may hold, where it was `per_port` before.
    #[key(accepts = Accepts::SIZE, absent = "as before")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_port: Option<ByteSize>,
}

impl SharedBufferChange {
    /// Returns the keys that are set, with their values as in a file.
    pub fn values(&self) -> Vec<(&'static str, String)> {
        let size = self.size.map(|size| ("size", size.to_string()));
        let alpha = self.alpha.map(|alpha| ("alpha", alpha.to_string()));
        let per_port = self.per_port.map(|size| ("per_port", size.to_string()));
        [size, alpha, per_port].into_iter().flatten().collect()
    }

    /// Changes the buffer of a switch.
    pub(super) fn apply_to(&self, buffer: &mut Option<SharedBuffer>) -> Result<(), Misfit> {
        let misfit = |key, conflict: &str, remedy: &str| {
            Err(Misfit {
                key,
                conflict: conflict.to_owned(),
                remedy: remedy.to_owned(),
            })
        };
        let key = self.values().first().map_or("size", |(key, _)| *key);
        let Some(buffer) = buffer else {
            return misfit(
                key,
                "the switch has no shared buffer",
                "give it `shared_buffer` from the start, or change the `buffer` of its ports' queues",
            );
        };
        buffer.size = self.size.unwrap_or(buffer.size);
        match (&mut buffer.limit, self.alpha, self.per_port) {
            (SharedLimit::Dynamic(alpha), new, None) => *alpha = new.unwrap_or(*alpha),
            (SharedLimit::Static(limit), None, new) => *limit = new.unwrap_or(*limit),
            (SharedLimit::Dynamic(_), _, Some(_)) => {
                return misfit(
                    "per_port",
                    "the switch has `alpha`",
                    "what can change: size, alpha",
                );
            }
            (SharedLimit::Static(_), Some(_), _) => {
                return misfit(
                    "alpha",
                    "the switch has `per_port`",
                    "what can change: size, per_port",
                );
            }
        }
        match buffer.limit {
            SharedLimit::Static(limit) if limit > buffer.size => misfit(
                key,
                &format!(
                    "`per_port`, {limit}, is then more than the whole buffer of {}",
                    buffer.size
                ),
                "set `per_port` up to `size`",
            ),
            _ => Ok(()),
        }
    }
}
