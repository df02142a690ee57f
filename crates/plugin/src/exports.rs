//! The functions that a module exports, found and checked.

use wasmi::{AsContext, Instance, TypedFunc, WasmParams, WasmResults};

use crate::error::PluginError;

/// `on_ack`: times in nanoseconds, sizes in bytes, the delivery rate in bits per second, and flags.
pub(crate) type AckParameters = (i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i32);

/// The functions of an instance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exports {
    pub(crate) init: TypedFunc<(i64, i64), ()>,
    pub(crate) on_ack: TypedFunc<AckParameters, ()>,
    pub(crate) on_loss: TypedFunc<(i64, i64, i64, i64, i32), ()>,
    pub(crate) window: TypedFunc<(), i64>,
    pub(crate) rate: Option<TypedFunc<(), i64>>,
    pub(crate) wants_delivery: Option<TypedFunc<(), i32>>,
    pub(crate) on_sent: Option<TypedFunc<(i64, i64, i64), ()>>,
    pub(crate) on_spurious_loss: Option<TypedFunc<(i64, i64, i64), ()>>,
    pub(crate) on_idle_restart: Option<TypedFunc<i64, ()>>,
    pub(crate) on_deadline: Option<TypedFunc<(i64, i64), ()>>,
    pub(crate) on_packet_size: Option<TypedFunc<i64, ()>>,
}

impl Exports {
    /// Finds the functions of an instance.
    pub(crate) fn find(instance: &Instance, store: impl AsContext) -> Result<Self, PluginError> {
        let finder = Finder { instance, store };
        Ok(Self {
            init: finder.needed("init", "(packet_bytes: i64, seed: i64)")?,
            on_ack: finder.needed("on_ack", ACK)?,
            on_loss: finder.needed("on_loss", LOSS)?,
            window: finder.needed("window", "() -> i64")?,
            rate: finder.optional("rate", "() -> i64")?,
            wants_delivery: finder.optional("wants_delivery", "() -> i32")?,
            on_sent: finder.optional(
                "on_sent",
                "(now_ns: i64, size_bytes: i64, in_flight_bytes: i64)",
            )?,
            on_spurious_loss: finder.optional(
                "on_spurious_loss",
                "(now_ns: i64, lost_bytes: i64, newest_sent_ns: i64)",
            )?,
            on_idle_restart: finder.optional("on_idle_restart", "(now_ns: i64)")?,
            on_deadline: finder
                .optional("on_deadline", "(remaining_bytes: i64, time_left_ns: i64)")?,
            on_packet_size: finder.optional("on_packet_size", "(size_bytes: i64)")?,
        })
    }
}

const ACK: &str = "(now_ns: i64, acked_bytes: i64, ce_marked_bytes: i64, rtt_ns: i64, smoothed_rtt_ns: i64, \
                   min_rtt_ns: i64, prior_in_flight_bytes: i64, in_flight_bytes: i64, newest_sent_ns: i64, \
                   delivery_rate_bps: i64, flags: i32)";
const LOSS: &str =
    "(now_ns: i64, lost_bytes: i64, newest_sent_ns: i64, in_flight_bytes: i64, cause: i32)";

struct Finder<'i, S> {
    instance: &'i Instance,
    store: S,
}

impl<S: AsContext> Finder<'_, S> {
    fn needed<P: WasmParams, R: WasmResults>(
        &self,
        name: &'static str,
        signature: &'static str,
    ) -> Result<TypedFunc<P, R>, PluginError> {
        let found = self.optional(name, signature)?;
        found.ok_or(PluginError::Function { name, signature })
    }

    /// Finds a function that may be missing.
    fn optional<P: WasmParams, R: WasmResults>(
        &self,
        name: &'static str,
        signature: &'static str,
    ) -> Result<Option<TypedFunc<P, R>>, PluginError> {
        if self.instance.get_export(&self.store, name).is_none() {
            return Ok(None);
        }
        let found = self.instance.get_typed_func(&self.store, name);
        let found = found.map_err(|_| PluginError::Function { name, signature })?;
        Ok(Some(found))
    }
}
