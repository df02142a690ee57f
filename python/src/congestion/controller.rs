//! The controller of one connection: an object of a Python class.

use std::sync::Arc;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyString};
use weir_congestion::{
    AckSample, Context, Controller, Deadline, LossSample, PacketSent, Snapshot, SpuriousLoss,
};
use weir_units::{ByteSize, Rate, Time};

use super::{PythonAlgorithm, events};

/// An object, and its last window and rate. After its first exception it is called no more, and these stay.
#[derive(Debug)]
pub(crate) struct PythonController {
    algorithm: Arc<PythonAlgorithm>,
    object: Option<Object>,
    context: Context,
    window: ByteSize,
    rate: Option<Rate>,
    wants_delivery: bool,
}

/// Which of an object's methods is called, if it has it.
type Method = fn(&Object) -> Option<&Py<PyAny>>;

/// An object with its bound methods.
#[derive(Debug)]
struct Object {
    itself: Py<PyAny>,
    on_ack: Py<PyAny>,
    on_loss: Py<PyAny>,
    on_sent: Option<Py<PyAny>>,
    on_spurious_loss: Option<Py<PyAny>>,
    on_idle_restart: Option<Py<PyAny>>,
    on_deadline: Option<Py<PyAny>>,
    on_packet_size: Option<Py<PyAny>>,
    /// Whether it sets a rate.
    has_rate: bool,
}

impl Object {
    fn new(itself: Bound<'_, PyAny>) -> PyResult<Self> {
        let needed = |name: &str| {
            itself.getattr(name).map(Bound::unbind).map_err(|_| {
                let message = format!("it has no method `{name}`");
                PyAttributeError::new_err(message)
            })
        };
        let optional = |name: &str| {
            itself
                .getattr_opt(name)
                .map(|found| found.map(Bound::unbind))
        };
        Ok(Self {
            on_ack: needed("on_ack")?,
            on_loss: needed("on_loss")?,
            on_sent: optional("on_sent")?,
            on_spurious_loss: optional("on_spurious_loss")?,
            on_idle_restart: optional("on_idle_restart")?,
            on_deadline: optional("on_deadline")?,
            on_packet_size: optional("on_packet_size")?,
            has_rate: itself.hasattr("rate_bps")?,
            itself: itself.unbind(),
        })
    }
}

impl PythonController {
    pub(super) fn new(py: Python<'_>, algorithm: &Arc<PythonAlgorithm>, context: &Context) -> Self {
        let mut controller = Self {
            algorithm: Arc::clone(algorithm),
            object: None,
            context: *context,
            window: context.packet_size.max(ByteSize::from_bytes(1)),
            rate: None,
            wants_delivery: false,
        };
        let built = algorithm.class.bind(py).call1((events::Context {
            packet: context.packet_size,
            seed: context.seed,
            is_paced: context.is_paced,
        },));
        let taken = built.and_then(|object| controller.take(object));
        controller.check(py, None, taken);
        controller
    }

    /// Takes an object, and its window and rate.
    fn take(&mut self, object: Bound<'_, PyAny>) -> PyResult<()> {
        let py = object.py();
        self.wants_delivery = match object.getattr_opt("wants_delivery")? {
            Some(wants) => wants.is_truthy()?,
            None => false,
        };
        self.object = Some(Object::new(object)?);
        self.read(py)
    }

    /// Reads the window and the rate after an event.
    fn read(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(object) = &self.object else {
            return Ok(());
        };
        let itself = object.itself.bind(py);
        self.window = window(&itself.getattr(intern!(py, "window_bytes"))?)?;
        if object.has_rate {
            self.rate = rate(&itself.getattr(intern!(py, "rate_bps"))?)?;
        }
        Ok(())
    }

    /// Records a failure, after which the object is called no more.
    fn check(&mut self, py: Python<'_>, at: Option<Time>, done: PyResult<()>) {
        if let Err(error) = done {
            self.object = None;
            self.algorithm.fail(py, self.context.seed, at, error);
        }
    }

    /// Calls a method that the object may have, and reads the window and the rate.
    fn call<'e, E: IntoPyObject<'e>>(
        &mut self,
        py: Python<'e>,
        at: Option<Time>,
        method: Method,
        event: E,
    ) {
        let Some(method) = self.object.as_ref().and_then(method) else {
            return;
        };
        let event = event.into_bound_py_any(py);
        let done = event.and_then(|event| method.bind(py).call1((event,)));
        let done = done.and_then(|_| self.read(py));
        self.check(py, at, done);
    }
}

impl Controller for PythonController {
    fn name(&self) -> &'static str {
        "python"
    }

    fn wants_delivery(&self) -> bool {
        self.wants_delivery
    }

    fn on_sent(&mut self, sent: &PacketSent) {
        if self
            .object
            .as_ref()
            .is_none_or(|object| object.on_sent.is_none())
        {
            return;
        }
        let event = events::Sent {
            now: sent.now,
            size: sent.size,
            in_flight: sent.in_flight,
        };
        Python::attach(|py| self.call(py, Some(sent.now), |object| object.on_sent.as_ref(), event));
    }

    fn on_ack(&mut self, ack: &AckSample) {
        let event = events::Ack(*ack);
        Python::attach(|py| self.call(py, Some(ack.now), |object| Some(&object.on_ack), event));
    }

    fn on_loss(&mut self, loss: &LossSample) {
        let event = events::Loss {
            now: loss.now,
            lost: loss.lost,
            newest_sent: loss.newest_sent,
            cause: Some(loss.cause),
            in_flight: Some(loss.in_flight),
        };
        Python::attach(|py| self.call(py, Some(loss.now), |object| Some(&object.on_loss), event));
    }

    fn on_spurious_loss(&mut self, spurious: &SpuriousLoss) {
        let event = events::Loss {
            now: spurious.now,
            lost: spurious.bytes,
            newest_sent: spurious.newest_sent,
            cause: None,
            in_flight: None,
        };
        let method: Method = |object| object.on_spurious_loss.as_ref();
        Python::attach(|py| self.call(py, Some(spurious.now), method, event));
    }

    fn on_idle_restart(&mut self, now: Time) {
        let method: Method = |object| object.on_idle_restart.as_ref();
        Python::attach(|py| self.call(py, Some(now), method, now.as_nanos()));
    }

    fn on_deadline(&mut self, deadline: Option<Deadline>) {
        let method: Method = |object| object.on_deadline.as_ref();
        let event = deadline.map(|deadline| events::Deadline {
            remaining: deadline.remaining,
            left: deadline.time_left,
        });
        Python::attach(|py| self.call(py, None, method, event));
    }

    fn on_packet_size(&mut self, size: ByteSize) {
        self.context.packet_size = size;
        let method: Method = |object| object.on_packet_size.as_ref();
        Python::attach(|py| self.call(py, None, method, size.bytes()));
    }

    fn window(&self) -> ByteSize {
        self.window
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.rate
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            phase: "python",
            ..Snapshot::default()
        }
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Python::attach(|py| {
            let mut copy = Self {
                algorithm: Arc::clone(&self.algorithm),
                object: None,
                ..*self
            };
            if let Some(object) = &self.object {
                let deep = py.import("copy").and_then(|copy| copy.getattr("deepcopy"));
                let object = deep.and_then(|deep| deep.call1((&object.itself,)));
                let taken = object.and_then(|object| copy.take(object));
                copy.check(py, None, taken);
            }
            Box::new(copy)
        })
    }
}

/// Converts a window in bytes: an int, or a float, of which infinity is an unbounded window.
fn window(value: &Bound<'_, PyAny>) -> PyResult<ByteSize> {
    let bytes = amount(value, "window_bytes")?;
    match bytes {
        Some(bytes) if bytes >= 1.0 => Ok(ByteSize::from_bytes(whole(value, bytes)?)),
        _ => Err(PyValueError::new_err(format!(
            "`window_bytes` is {}: it must be at least 1, and math.inf without a limit",
            text(value)
        ))),
    }
}

/// Converts a rate in bits per second: an int or a float, or None.
fn rate(value: &Bound<'_, PyAny>) -> PyResult<Option<Rate>> {
    if value.is_none() {
        return Ok(None);
    }
    match amount(value, "rate_bps")? {
        Some(rate) if rate >= 1.0 => Ok(Some(Rate::from_bits_per_second(whole(value, rate)?))),
        _ => Err(PyValueError::new_err(format!(
            "`rate_bps` is {}: it must be at least 1, or None to leave pacing to the transport",
            text(value)
        ))),
    }
}

/// Returns a number, if it is one and not NaN.
fn amount(value: &Bound<'_, PyAny>, attribute: &str) -> PyResult<Option<f64>> {
    if !value.is_instance_of::<PyInt>()
        && !value.is_instance_of::<PyFloat>()
        && !value.hasattr("__float__")?
    {
        return Err(PyTypeError::new_err(format!(
            "`{attribute}` is {}: it must be a number",
            text(value)
        )));
    }
    let number: f64 = value.extract()?;
    Ok(Some(number).filter(|number| !number.is_nan()))
}

/// Returns the whole number, exactly if it is an int.
fn whole(value: &Bound<'_, PyAny>, number: f64) -> PyResult<u64> {
    match value.cast_exact::<PyInt>() {
        Ok(int) => Ok(int.extract::<u64>().unwrap_or(u64::MAX)),
        Err(_) => Ok(number as u64),
    }
}

fn text(value: &Bound<'_, PyAny>) -> String {
    let text = value
        .repr()
        .map(|text: Bound<'_, PyString>| text.to_string());
    text.unwrap_or_else(|_| "no value".to_owned())
}
