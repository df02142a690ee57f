//! The controller of one connection: an instance of a module.

use std::fmt;
use std::sync::Arc;

use wasmi::{TypedFunc, WasmParams};
use weir_congestion::{
    AckSample, Context, Controller, Deadline, LossCause, LossSample, PacketSent, PluginFailure,
    Snapshot, SpuriousLoss,
};
use weir_units::{ByteSize, Duration, Rate, Time};

use crate::error::{CallFailure, PluginError};
use crate::exports::{AckParameters, Exports};
use crate::instance::Instance;
use crate::module::Shared;

/// Flags of `on_ack`.
const ECE: i32 = 1;
const APP_LIMITED: i32 = 2;
const IS_RECOVERING: i32 = 4;
const ROUND_ENDED: i32 = 8;

/// An instance, and its last window and rate. After its first failure it is called no more, and these stay.
pub(crate) struct WasmController {
    shared: Arc<Shared>,
    instance: Option<Box<Instance>>,
    context: Context,
    window: ByteSize,
    rate: Option<Rate>,
    wants_delivery: bool,
    /// Whether it has handled an event, so that another instance has another state.
    is_used: bool,
}

impl WasmController {
    /// Creates a controller; one that cannot be built has failed.
    pub(crate) fn new(shared: &Arc<Shared>, context: &Context) -> Self {
        Self::try_new(shared, context).unwrap_or_else(|error| {
            shared.failure.record(PluginFailure {
                seed: context.seed,
                at: None,
                message: error.to_string(),
            });
            Self::blank(shared, context)
        })
    }

    fn blank(shared: &Arc<Shared>, context: &Context) -> Self {
        Self {
            shared: Arc::clone(shared),
            instance: None,
            context: *context,
            window: context.packet_size.max(ByteSize::from_bytes(1)),
            rate: None,
            wants_delivery: false,
            is_used: false,
        }
    }

    /// Creates a controller.
    pub(crate) fn try_new(shared: &Arc<Shared>, context: &Context) -> Result<Self, PluginError> {
        let mut instance = Instance::new(&shared.module)?;
        for (name, value) in &shared.parameters {
            instance.set(name, *value)?;
        }
        let mut controller = Self::blank(shared, context);
        let parameters = (bytes(context.packet_size), context.seed as i64);
        let started = instance.call(instance.exports.init, parameters);
        let started = started.and_then(|()| controller.read(&mut instance));
        let wants = started.and_then(|()| match instance.exports.wants_delivery {
            None => Ok(0),
            Some(wants) => instance.call(wants, ()),
        });
        controller.wants_delivery = wants.map_err(|failure| PluginError::Call {
            function: "init".to_owned(),
            failure,
        })? != 0;
        controller.instance = Some(Box::new(instance));
        Ok(controller)
    }

    /// Reads the window and the rate of an instance.
    fn read(&mut self, instance: &mut Instance) -> Result<(), CallFailure> {
        let window = instance.call(instance.exports.window, ())?;
        self.window = match u64::try_from(window) {
            Ok(0) | Err(_) => return Err(CallFailure::Window(window)),
            Ok(_) if window == i64::MAX => ByteSize::MAX,
            Ok(bytes) => ByteSize::from_bytes(bytes),
        };
        if let Some(rate) = instance.exports.rate {
            let rate = instance.call(rate, ())?;
            self.rate = match u64::try_from(rate) {
                Ok(0) => None,
                Ok(rate) => Some(Rate::from_bits_per_second(rate)),
                Err(_) => return Err(CallFailure::Rate(rate)),
            };
        }
        Ok(())
    }

    /// Handles an event: calls the instance, and reads the window and the rate.
    #[inline]
    fn handle(
        &mut self,
        function: &str,
        at: Option<Time>,
        call: impl FnOnce(&mut Instance) -> Result<(), CallFailure>,
    ) {
        let Some(mut instance) = self.instance.take() else {
            return;
        };
        self.is_used |= at.is_some();
        let done = call(&mut instance).and_then(|()| self.read(&mut instance));
        match done {
            Ok(()) => self.instance = Some(instance),
            Err(failure) => self.fail(at, format!("`{function}`: {failure}")),
        }
    }

    /// Handles an event for which a module may have a function.
    #[inline]
    fn offer<P: WasmParams>(
        &mut self,
        name: &str,
        at: Option<Time>,
        function: impl FnOnce(&Exports) -> Option<TypedFunc<P, ()>>,
        event: P,
    ) {
        let instance = self.instance.as_ref();
        if let Some(function) = instance.and_then(|instance| function(&instance.exports)) {
            self.handle(name, at, |instance| instance.call(function, event));
        }
    }

    #[cold]
    fn fail(&self, at: Option<Time>, message: String) {
        self.shared.failure.record(PluginFailure {
            seed: self.context.seed,
            at,
            message,
        });
    }
}

impl fmt::Debug for WasmController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WasmController")
            .field("context", &self.context)
            .field("window", &self.window)
            .field("rate", &self.rate)
            .finish_non_exhaustive()
    }
}

impl Controller for WasmController {
    fn name(&self) -> &'static str {
        "wasm"
    }

    fn wants_delivery(&self) -> bool {
        self.wants_delivery
    }

    fn on_sent(&mut self, sent: &PacketSent) {
        let event = (nanos(sent.now), bytes(sent.size), bytes(sent.in_flight));
        self.offer("on_sent", Some(sent.now), |exports| exports.on_sent, event);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        let event = acknowledgment(ack);
        let call = |instance: &mut Instance| instance.call(instance.exports.on_ack, event);
        self.handle("on_ack", Some(ack.now), call);
    }

    fn on_loss(&mut self, loss: &LossSample) {
        let cause = match loss.cause {
            LossCause::Acks => 0,
            LossCause::Nak => 1,
            LossCause::Timeout => 2,
        };
        let event = (
            nanos(loss.now),
            bytes(loss.lost),
            nanos(loss.newest_sent),
            bytes(loss.in_flight),
            cause,
        );
        let call = |instance: &mut Instance| instance.call(instance.exports.on_loss, event);
        self.handle("on_loss", Some(loss.now), call);
    }

    fn on_spurious_loss(&mut self, spurious: &SpuriousLoss) {
        let event = (
            nanos(spurious.now),
            bytes(spurious.bytes),
            nanos(spurious.newest_sent),
        );
        self.offer(
            "on_spurious_loss",
            Some(spurious.now),
            |exports| exports.on_spurious_loss,
            event,
        );
    }

    fn on_idle_restart(&mut self, now: Time) {
        self.offer(
            "on_idle_restart",
            Some(now),
            |exports| exports.on_idle_restart,
            nanos(now),
        );
    }

    fn on_deadline(&mut self, deadline: Option<Deadline>) {
        let event = deadline.map_or((-1, -1), |deadline| {
            (bytes(deadline.remaining), span(deadline.time_left))
        });
        self.is_used = true;
        self.offer("on_deadline", None, |exports| exports.on_deadline, event);
    }

    fn on_packet_size(&mut self, size: ByteSize) {
        self.context.packet_size = size;
        self.offer(
            "on_packet_size",
            None,
            |exports| exports.on_packet_size,
            bytes(size),
        );
    }

    fn window(&self) -> ByteSize {
        self.window
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.rate
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            phase: "wasm",
            ..Snapshot::default()
        }
    }

    /// Returns another instance. The state of one that has handled events cannot be read: its copy has failed.
    fn clone_box(&self) -> Box<dyn Controller> {
        if self.is_used {
            self.fail(
                None,
                "a connection that has begun cannot be copied".to_owned(),
            );
            return Box::new(Self::blank(&self.shared, &self.context));
        }
        Box::new(Self::new(&self.shared, &self.context))
    }
}

fn acknowledgment(ack: &AckSample) -> AckParameters {
    let flag = |is_set: bool, flag: i32| if is_set { flag } else { 0 };
    let flags = flag(ack.ece, ECE)
        | flag(ack.app_limited, APP_LIMITED)
        | flag(ack.is_recovering, IS_RECOVERING)
        | flag(ack.round_ended, ROUND_ENDED);
    let rate = ack.delivery.map(|sample| sample.rate.bits_per_second());
    (
        nanos(ack.now),
        bytes(ack.acked),
        bytes(ack.ce_marked),
        ack.rtt.map_or(-1, span),
        span(ack.smoothed_rtt),
        span(ack.min_rtt),
        bytes(ack.prior_in_flight),
        bytes(ack.in_flight),
        nanos(ack.newest_sent),
        rate.map_or(-1, clamped),
        flags,
    )
}

fn bytes(size: ByteSize) -> i64 {
    clamped(size.bytes())
}

fn nanos(time: Time) -> i64 {
    clamped(time.as_nanos())
}

fn span(span: Duration) -> i64 {
    clamped(span.as_nanos())
}

/// Amounts beyond the range of signed numbers are the largest of these.
fn clamped(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}
