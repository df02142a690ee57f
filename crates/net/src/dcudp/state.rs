//! DCUDP as the driver's protocol, and the state shared by its handles.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Waker;

use bytes::BytesMut;
use weir_dcudp::{Connection as Engine, ConnectionHandle, EndpointEvent, Event};
use weir_units::{ByteSize, Duration, Time};
use weir_wire::{BatchContents, Transmit};

use super::error::DcudpError;
use super::owned_buffers::OwnedBuffers;
use crate::clock::LazyNow;
use crate::protocol::{DatagramMeta, Protocol, Route};

/// How often a connection is checked while its socket is full.
const WHILE_FULL: Duration = Duration::from_millis(1);

/// A DCUDP connection behind its lock.
pub(super) type SharedDcudpConnection = crate::shared_connection::SharedConnection<DcudpState>;
/// The state shared by an endpoint's handles, connections and driver.
pub(super) type Shared = crate::shared::SharedEndpoint<DcudpState, SharedDcudpConnection>;

/// A connection's engine and the state around it.
pub(crate) struct DcudpState {
    pub(super) engine: Engine,
    /// How the connection ended, if it has.
    pub(super) end: Option<Result<(), DcudpError>>,
    /// The tasks that read and that write.
    pub(super) reader: Option<Waker>,
    pub(super) writer: Option<Waker>,
    /// Tasks that wait for the handshake or for the connection's end.
    pub(super) watchers: Vec<Waker>,
}

impl DcudpState {
    fn wake_all(&mut self, woken: &mut Vec<Waker>) {
        woken.extend(self.reader.take());
        woken.extend(self.writer.take());
        woken.append(&mut self.watchers);
    }

    /// Releases the connection for the application: `finished` data are still delivered, anything
    /// else is aborted. Returns whether that changes anything.
    pub(super) fn release(&mut self, now: Time, finished: bool) -> bool {
        if self.end.is_some() {
            return false;
        }
        if finished {
            self.engine.close(now);
        } else {
            self.engine.abort(now, 0);
        }
        true
    }

    /// Fails where the connection is over, with the reason.
    pub(super) fn check_open(&self) -> Result<(), DcudpError> {
        match &self.end {
            Some(Err(error)) => Err(error.clone()),
            Some(Ok(())) | None => Ok(()),
        }
    }
}

impl Protocol for DcudpState {
    type Endpoint = weir_dcudp::Endpoint;
    type Engine = Engine;
    type Undecided = Infallible;
    type EndpointEvent = EndpointEvent;
    type Settings = ();
    type Buffers = OwnedBuffers;
    type Key = (SocketAddr, [u8; 4]);

    fn new(engine: Box<Engine>) -> Self {
        Self {
            engine: *engine,
            end: None,
            reader: None,
            writer: None,
            watchers: Vec::new(),
        }
    }

    /// The sender, and the destination connection name in the packet; zero names none.
    fn key(arrival: &DatagramMeta, datagram: &[u8]) -> Option<Self::Key> {
        let name = datagram.get(12..16)?.first_chunk().copied()?;
        (name != [0; 4]).then_some((arrival.remote, name))
    }

    fn route(
        endpoint: &mut Self::Endpoint,
        now: Time,
        arrival: &DatagramMeta,
        datagram: &mut [u8],
    ) -> Route<Engine, Infallible> {
        match endpoint.route(now, arrival.remote, arrival.local, datagram) {
            weir_dcudp::Route::Connection(handle) => Route::Connection(handle.0),
            weir_dcudp::Route::New(handle, engine) => Route::New(handle.0, engine),
            weir_dcudp::Route::Reply(reply) => Route::Reply(reply),
            weir_dcudp::Route::Drop => Route::Drop,
        }
    }

    fn on_undecided(_: &Arc<Shared>, undecided: Infallible) {
        match undecided {}
    }

    fn stop_serving(endpoint: &mut Self::Endpoint) {
        if endpoint.set_server(None).is_err() {
            tracing::error!("a server without settings has none to be wrong");
        }
    }

    fn on_endpoint_event(endpoint: &mut Self::Endpoint, index: usize, event: EndpointEvent) {
        endpoint.handle_event(ConnectionHandle(index), event);
    }

    fn is_last(event: EndpointEvent) -> bool {
        event == EndpointEvent::Drained
    }

    fn poll_endpoint_event(&mut self) -> Option<EndpointEvent> {
        self.engine.poll_endpoint_event()
    }

    fn handle_datagram(&mut self, now: Time, arrival: &DatagramMeta, datagram: BytesMut) {
        (self.engine).handle_datagram(now, arrival.remote, arrival.ecn, datagram);
    }

    fn end_batch(&mut self, _: Time) {}

    fn poll_transmit<'b>(
        &'b mut self,
        now: Time,
        buffer: &'b mut Vec<u8>,
        max_datagrams: usize,
    ) -> Option<(Transmit, BatchContents<'b>)> {
        (self.engine).poll_transmit_in_place(now, buffer, max_datagrams)
    }

    fn is_worth_keeping(&self, _: &Transmit) -> bool {
        true
    }

    /// The interface can never carry the packet: the connection ends.
    fn on_too_large(&mut self, now: Time, transmit: &Transmit) {
        let size = transmit.segment_size.unwrap_or(transmit.size);
        let error = DcudpError::PacketTooLarge {
            remote: transmit.remote,
            size: ByteSize::from_bytes(size as u64),
        };
        self.end.get_or_insert(Err(error));
        self.engine.abort(now, 0);
    }

    fn timeout(&self, now: &mut LazyNow<'_>, is_blocked: bool) -> Option<Time> {
        let next = self.engine.timeout()?;
        if is_blocked {
            // The pacer is ready, but the socket is full: that wakes the driver by itself.
            return Some(next.max(now.get() + WHILE_FULL));
        }
        Some(next)
    }

    fn handle_timeout(&mut self, now: Time, _: &mut Vec<Waker>) {
        if self.engine.timeout().is_some_and(|next| next <= now) {
            self.engine.handle_timeout(now);
        }
    }

    fn take_events(&mut self, _: &mut LazyNow<'_>, woken: &mut Vec<Waker>) -> bool {
        while let Some(event) = self.engine.poll_event() {
            match event {
                Event::Connected => woken.append(&mut self.watchers),
                Event::Readable => woken.extend(self.reader.take()),
                Event::Writable => woken.extend(self.writer.take()),
                Event::Mode(mode) => tracing::trace!(?mode, "the sender's mode changed"),
                Event::Closed(cause) => {
                    let remote = self.engine.remote();
                    let error = cause.map(|cause| DcudpError::new(remote, cause));
                    self.end.get_or_insert(error.map_or(Ok(()), Err));
                    self.wake_all(woken);
                }
            }
        }
        false
    }

    fn on_removed(&mut self, woken: &mut Vec<Waker>) {
        self.wake_all(woken);
    }

    fn on_driver_ended(&mut self, woken: &mut Vec<Waker>) {
        self.end.get_or_insert(Err(DcudpError::EndpointGone));
        self.wake_all(woken);
    }

    fn close_unused(&mut self, now: Time) -> bool {
        self.release(now, false)
    }

    fn is_reply_due(&self) -> bool {
        false
    }
}
