//! UDP flows over the datagrams of a DCQUIC connection (RFC 9221).
//!
//! A flow has a stream, whose header says where it goes, and which lasts as long as the flow. Each
//! datagram begins with the number of that stream, 8 bytes, big-endian.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use rustc_hash::FxHashMap;
use socket2::SockRef;
use tokio::net::UdpSocket;
use weir_net::Connection;

use crate::counters::ConnectionCounters;

/// A flow without datagrams ends after this time, as NATs have it (RFC 4787, section 4.3, asks for two
/// minutes).
pub(crate) const IDLE: Duration = Duration::from_secs(120);
/// Datagrams of a connection that wait for their flow: they overtake the stream that begins it.
const EARLY: usize = 64;
/// The bytes in front of the application's own.
const PREFIX: usize = 8;
/// The largest UDP payload (RFC 768).
pub(crate) const LARGEST: usize = 65_535;

/// The flows of a connection.
#[derive(Debug, Default)]
pub(crate) struct Flows(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    flows: FxHashMap<u64, Arc<Flow>>,
    early: VecDeque<(u64, Bytes)>,
}

/// A flow's end at this side.
#[derive(Debug)]
pub(crate) struct Flow {
    socket: Arc<UdpSocket>,
    /// The application; `None` for a socket that is connected to the destination.
    application: Option<SocketAddr>,
    counters: Arc<ConnectionCounters>,
    used: AtomicBool,
}

impl Flow {
    pub(crate) fn new(
        socket: Arc<UdpSocket>,
        application: Option<SocketAddr>,
        counters: Arc<ConnectionCounters>,
    ) -> Self {
        Self {
            socket,
            application,
            counters,
            used: AtomicBool::new(true),
        }
    }

    /// Sends an application's datagram to the peer; one that is too long for the path is dropped.
    pub(crate) fn send(&self, connection: &Connection, number: u64, payload: &[u8]) {
        self.used.store(true, Ordering::Relaxed);
        let mut datagram = BytesMut::with_capacity(PREFIX + payload.len());
        datagram.put_u64(number);
        datagram.extend_from_slice(payload);
        match connection.send_datagram(datagram.freeze()) {
            Ok(()) => self.counters.datagrams_sent.add(1),
            Err(_) => self.counters.datagrams_dropped.add(1),
        }
    }

    /// Passes a datagram on; a full socket drops it, as networks do.
    fn deliver(&self, payload: &[u8]) {
        self.used.store(true, Ordering::Relaxed);
        // Not by tokio, which sends nothing before it has seen that a new socket can.
        let socket = SockRef::from(&*self.socket);
        let sent = match self.application {
            Some(address) => socket.send_to(payload, &address.into()),
            None => socket.send(payload),
        };
        match sent {
            Ok(_) => self.counters.datagrams_received.add(1),
            Err(_) => self.counters.datagrams_dropped.add(1),
        }
    }

    /// Waits until no datagram has come in either direction for [`IDLE`], at most twice that.
    pub(crate) async fn idle(&self) {
        while self.used.swap(false, Ordering::Relaxed) {
            tokio::time::sleep(IDLE).await;
        }
    }
}

impl Flows {
    /// Adds a flow, and delivers what has come for it before.
    pub(crate) fn insert(&self, number: u64, flow: Arc<Flow>) {
        let mut inner = self.lock();
        let early = std::mem::take(&mut inner.early);
        let (own, others): (VecDeque<_>, VecDeque<_>) =
            (early.into_iter()).partition(|(early, _)| *early == number);
        inner.early = others;
        inner.flows.insert(number, flow.clone());
        drop(inner);
        for (_, payload) in own {
            flow.deliver(&payload);
        }
    }

    pub(crate) fn remove(&self, number: u64) {
        self.lock().flows.remove(&number);
    }

    /// Delivers the datagrams of a connection until it ends.
    pub(crate) async fn receive(&self, connection: &Connection) {
        while let Ok(mut datagram) = connection.read_datagram().await {
            if datagram.len() < PREFIX {
                continue;
            }
            let payload = datagram.split_off(PREFIX);
            let mut number = [0; PREFIX];
            number.copy_from_slice(&datagram);
            let number = u64::from_be_bytes(number);
            let mut inner = self.lock();
            match inner.flows.get(&number).cloned() {
                Some(flow) => {
                    drop(inner);
                    flow.deliver(&payload);
                }
                None => {
                    // The oldest give way, so that a peer cannot fill the memory.
                    inner.early.push_back((number, payload));
                    if inner.early.len() > EARLY {
                        inner.early.pop_front();
                    }
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
