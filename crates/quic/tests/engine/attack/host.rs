//! An endpoint with its connections and an application, without a network. Its memory and its work
//! per datagram are measured.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use weir_quic::{
    Connection, ConnectionError, ConnectionHandle, Direction, Endpoint, Event, Route, StreamId,
};
use weir_units::Time;
use weir_wire::Ecn;

/// The most bytes of an echo that the application buffers.
const MAX_ECHO: usize = 4 * 1024;

/// The cost of a call in allocations: time cannot be measured on a shared machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) allocations: u64,
}

pub(crate) struct Host {
    pub(crate) endpoint: Endpoint,
    pub(crate) connections: BTreeMap<ConnectionHandle, Connection>,
    pub(crate) closed: Vec<(ConnectionHandle, ConnectionError)>,
    pub(crate) address: SocketAddr,
    /// The memory of endpoint, connections and application buffers, in bytes.
    pub(crate) memory: i64,
    /// Whether the application reads data and sends it back.
    pub(crate) echoes: bool,
    echo: BTreeMap<(ConnectionHandle, StreamId), Vec<u8>>,
    buffer: Vec<u8>,
}

impl Host {
    pub(crate) fn new(endpoint: Endpoint, address: SocketAddr, echoes: bool) -> Self {
        Self {
            endpoint,
            connections: BTreeMap::new(),
            closed: Vec::new(),
            address,
            memory: 0,
            echoes,
            echo: BTreeMap::new(),
            buffer: Vec::with_capacity(70_000),
        }
    }

    /// Calls the engine, and counts its allocations and frees.
    pub(crate) fn measured<T>(&mut self, call: impl FnOnce(&mut Self) -> T) -> (T, Work) {
        let mut result = None;
        let info = allocation_counter::measure(|| {
            // The counter does not survive a panic that passes through it.
            result = Some(catch_unwind(AssertUnwindSafe(|| call(self))));
        });
        self.memory += info.bytes_current;
        let work = Work {
            allocations: info.count_total,
        };
        match result.expect("the call was made") {
            Ok(result) => (result, work),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Handles a datagram; returns the stateless reply, if any, and the cost.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        from: SocketAddr,
        datagram: &[u8],
    ) -> (Option<Vec<u8>>, Work) {
        let mut bytes = datagram.to_vec();
        let local = Some(self.address);
        let (reply, work) = self.measured(|host| {
            match host.endpoint.route(now, from, local, Ecn::Ect0, &mut bytes) {
                Route::Connection(handle) => {
                    if let Some(connection) = host.connections.get_mut(&handle) {
                        connection.handle_datagram(now, from, local, Ecn::Ect0, &mut bytes);
                        connection.end_batch(now);
                    }
                    None
                }
                Route::New(handle, connection) => {
                    host.connections.insert(handle, *connection);
                    None
                }
                Route::Reply(reply) => Some(reply),
                Route::Draining | Route::Drop => None,
                Route::Engine(_) | Route::EveryEngine(_) => panic!("there is one engine"),
                Route::Incoming(_) | Route::Kept => panic!("clients are accepted at once"),
            }
        });
        // The reply no longer belongs to the endpoint.
        self.memory -= reply.as_ref().map_or(0, |reply| reply.capacity() as i64);
        (reply, work)
    }

    /// Returns the datagrams that the connections send now, by address.
    pub(crate) fn transmit(&mut self, now: Time) -> Vec<(SocketAddr, Vec<u8>)> {
        let mut sent = Vec::new();
        let handles: Vec<_> = self.connections.keys().copied().collect();
        for handle in handles {
            loop {
                let mut buffer = std::mem::take(&mut self.buffer);
                buffer.clear();
                let (transmit, _) = self.measured(|host| {
                    let connection = host.connections.get_mut(&handle)?;
                    connection.poll_transmit(now, &mut buffer, 16)
                });
                if let Some(transmit) = &transmit {
                    let segment = transmit.segment_size.unwrap_or(transmit.size);
                    let datagrams = buffer.chunks(segment.max(1));
                    sent.extend(datagrams.map(|bytes| (transmit.remote, bytes.to_vec())));
                }
                self.buffer = buffer;
                if transmit.is_none() {
                    break;
                }
            }
        }
        self.take_events();
        sent
    }

    fn take_events(&mut self) {
        self.measured(|host| {
            for (handle, connection) in &mut host.connections {
                while let Some(event) = connection.poll_event() {
                    if let Event::Closed(error) = event {
                        host.echo.retain(|(owner, _), _| owner != handle);
                        host.closed.push((*handle, error));
                    }
                }
                while let Some(event) = connection.poll_endpoint_event() {
                    host.endpoint.handle_event(*handle, event);
                }
            }
            host.connections
                .retain(|_, connection| !connection.is_drained());
        });
    }

    /// Returns the time of the connections' next timer.
    pub(crate) fn timeout(&self) -> Option<Time> {
        self.connections
            .values()
            .filter_map(Connection::timeout)
            .min()
    }

    pub(crate) fn handle_timeouts(&mut self, now: Time) {
        self.measured(|host| {
            for connection in host.connections.values_mut() {
                if connection.timeout().is_some_and(|due| due <= now) {
                    connection.handle_timeout(now);
                }
            }
        });
    }

    /// Lets the application read and send back as much as possible, on all connections or on one.
    pub(crate) fn serve(&mut self, only: Option<ConnectionHandle>) {
        let handles: Vec<_> = self.connections.keys().copied().collect();
        for handle in handles {
            if self.echoes && only.is_none_or(|only| only == handle) {
                self.serve_one(handle);
            }
        }
    }

    fn serve_one(&mut self, handle: ConnectionHandle) {
        self.measured(|host| {
            let echo = &mut host.echo;
            let Some(connection) = host.connections.get_mut(&handle) else {
                return;
            };
            while connection.read_datagram().is_some() {}
            for direction in [Direction::Bidirectional, Direction::Unidirectional] {
                while let Some(id) = connection.accept(direction) {
                    echo.insert((handle, id), Vec::new());
                }
            }
            echo.retain(|(owner, id), pending| {
                *owner != handle || echo_on(connection, *id, pending)
            });
        });
    }
}

/// Reads available data and writes it back; `false` at the stream's end.
fn echo_on(connection: &mut Connection, id: StreamId, pending: &mut Vec<u8>) -> bool {
    let answers = id.direction() == Direction::Bidirectional;
    let ended = loop {
        if pending.len() >= MAX_ECHO {
            break false;
        }
        match connection.read(id, 16 * 1024) {
            Ok(Some(bytes)) if answers => {
                pending.extend_from_slice(&bytes);
            }
            Ok(Some(_)) => {}
            Ok(None) => break true,
            Err(weir_quic::ReadError::Blocked) => break false,
            Err(_) => {
                let _ = connection.reset(id, 1);
                return false;
            }
        }
    };
    if !answers {
        return !ended;
    }
    match connection.write(id, pending) {
        Ok(count) => {
            pending.drain(..count);
        }
        Err(weir_quic::WriteError::Blocked) => {}
        Err(_) => return false,
    }
    if ended && pending.is_empty() {
        let _ = connection.finish(id);
        return false;
    }
    true
}
