//! `[switches.NAME.shared_buffer]`: memory shared by the ports of a switch.

use serde::Serialize;
use weir_scenario_derive::Keys;
use weir_units::ByteSize;

use crate::document::Reported;
use crate::schema::{Accepts, Fields};

/// The key `shared_buffer` of a switch or of all of them.
#[derive(Clone, Copy, Debug, Default, Keys)]
pub(super) struct SharedMemory {
    /// Memory shared by the switch's ports.
    #[key(
        accepts = Accepts::Other("a table with `size` and `alpha` or `per_port`"),
        absent = "each port has the buffer of its queue to itself",
        read = SharedBuffer::read(at, ())
    )]
    pub(super) shared_buffer: Option<SharedBuffer>,
}

/// Memory shared by the ports of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Keys)]
#[keys(
    title = "[switches.NAME.shared_buffer], [star.shared_buffer], \
             [leaf_spine.shared_buffer] and [fat_tree.shared_buffer]",
    doc = "Memory that the ports of a switch share. A packet is dropped when there is no room in its \
           queue's own buffer, none in the shared one, or the port holds more than its share."
)]
pub struct SharedBuffer {
    /// The size of the memory.
    #[key(accepts = Accepts::SIZE)]
    pub size: ByteSize,
    /// The limit of each port, in addition to the limit of its queue.
    #[key(keys = LimitKeys, by = SharedLimit::read(fields, size?))]
    #[serde(flatten)]
    pub limit: SharedLimit,
}

/// The maximum share of one port.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum SharedLimit {
    /// A fixed size.
    #[serde(rename = "per_port")]
    Static(ByteSize),
    /// This many times the free memory: dynamic thresholds (Choudhury and Hahne 1998).
    #[serde(rename = "alpha")]
    Dynamic(f64),
}

/// The keys of a limit; exactly one is written.
#[derive(Keys)]
struct LimitKeys {
    /// A port may hold this many times the free memory (Choudhury and Hahne 1998); instead of
    /// `per_port`.
    #[key(accepts = Accepts::Number(0.001, 1000.0), absent = "`per_port` decides")]
    alpha: Option<f64>,
    /// A port may hold this much; instead of `alpha`.
    #[key(accepts = Accepts::SIZE, absent = "`alpha` decides")]
    per_port: Option<ByteSize>,
}

impl SharedLimit {
    fn read(fields: &Fields<'_>, size: ByteSize) -> Result<Self, Reported> {
        let keys = LimitKeys::read_keys(fields, ())?;
        match (keys.alpha, keys.per_port) {
            (Some(alpha), None) => Ok(Self::Dynamic(alpha)),
            (None, Some(limit)) if limit > size => Err(fields.error_position("per_port").conflict(
                format!("{limit} is more than the whole buffer of {size}"),
                "set `per_port` up to `size`",
            )),
            (None, Some(limit)) => Ok(Self::Static(limit)),
            _ => Err(fields.at.conflict(
                "one of `alpha` and `per_port` must say what a port may hold",
                "write one of them",
            )),
        }
    }
}
