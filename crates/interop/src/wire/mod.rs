//! The network between client and server: a forwarder on loopback that applies a rule to each
//! datagram and records it.
//!
//! The forwarder is a NAT: each client address has its own socket towards the server. A client that
//! migrates, or a rule that [rebinds](Verdict::Rebind), changes the address that the server sees.

use std::cell::{Cell, Ref, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quinn_udp::EcnCodepoint;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use weir_traffic_peers::Batch;

use crate::stack::Result;

mod packet;
mod port;
pub(crate) mod rule;

pub(crate) use packet::PacketKind;
use port::{Message, Port};

/// If this environment variable is set, all records are printed when the wire is dropped.
const TRACE: &str = "WEIR_INTEROP_TRACE";

/// The direction of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Toward {
    /// From a client to the server.
    Server,
    /// From the server to a client.
    Client,
}

/// A datagram received by the forwarder.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    /// The arrival time since the start of the forwarder.
    pub(crate) at: Duration,
    /// The direction.
    pub(crate) toward: Toward,
    /// The number of earlier datagrams in the same direction.
    pub(crate) number: usize,
    /// The client's address before NAT.
    pub(crate) client: SocketAddr,
    /// The ECN codepoint.
    pub(crate) ecn: Option<EcnCodepoint>,
    /// The UDP payload.
    pub(crate) bytes: Bytes,
}

/// The action on a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Forward.
    Pass,
    /// Drop.
    Lose,
    /// Change the byte at this index, modulo the length, and forward.
    Corrupt(usize),
    /// Forward with a CE mark if the datagram has an ECN codepoint.
    Mark,
    /// Forward after this delay. All delays must be equal: delayed datagrams stay in order.
    Delay(Duration),
    /// Move the client to a new port of this address in the NAT, and forward.
    Rebind(IpAddr),
}

/// Chooses the action for each datagram.
pub(crate) type Rule = Box<dyn FnMut(&Datagram) -> Verdict>;

/// A datagram, the action on it, and the client's address after NAT at the time.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) datagram: Datagram,
    pub(crate) verdict: Verdict,
    pub(crate) address_after_nat: SocketAddr,
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let datagram = &self.datagram;
        write!(
            f,
            "{:9.3} ms {} {:?} #{} {:?} {} bytes {:?} {:?}",
            datagram.at.as_secs_f64() * 1e3,
            self.address_after_nat,
            datagram.toward,
            datagram.number,
            PacketKind::of(&datagram.bytes),
            datagram.bytes.len(),
            datagram.ecn,
            self.verdict,
        )
    }
}

impl Record {
    /// Returns whether the datagram was forwarded.
    pub(crate) fn arrived(&self) -> bool {
        self.verdict != Verdict::Lose
    }
}

/// A running forwarder. It stops when this is dropped.
pub(crate) struct Wire {
    address: SocketAddr,
    server: Rc<Cell<SocketAddr>>,
    records: Rc<RefCell<Vec<Record>>>,
    task: AbortHandle,
}

impl Wire {
    /// Starts a forwarder to the server at `server`.
    ///
    /// # Errors
    /// Fails if no socket can be opened.
    pub(crate) fn lay(server: SocketAddr, rule: Rule) -> Result<Self> {
        let front = Rc::new(Port::bind(server.ip())?);
        let address = front.address();
        let records = Rc::default();
        let server = Rc::new(Cell::new(server));
        let (late, queue) = mpsc::unbounded_channel();
        let exchange = Forwarder {
            started: Instant::now(),
            server: Rc::clone(&server),
            front,
            lanes: HashMap::new(),
            counts: [0; 2],
            rule,
            records: Rc::clone(&records),
            late,
        };
        let task = tokio::task::spawn_local(exchange.run(queue)).abort_handle();
        Ok(Self {
            address,
            server,
            records,
            task,
        })
    }

    /// Returns the address that clients connect to.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Puts another server at the address that clients connect to.
    pub(crate) fn replace_server(&self, server: SocketAddr) {
        self.server.set(server);
    }

    /// Returns the records of all datagrams so far.
    pub(crate) fn records(&self) -> Ref<'_, [Record]> {
        Ref::map(self.records.borrow(), Vec::as_slice)
    }

    /// Counts the forwarded datagrams in one direction whose first packet is of this kind.
    pub(crate) fn count(&self, toward: Toward, kind: PacketKind) -> usize {
        let records = self.records();
        let arrived = records.iter().filter(|record| {
            record.arrived()
                && record.datagram.toward == toward
                && PacketKind::of(&record.datagram.bytes) == Some(kind)
        });
        arrived.count()
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
        if std::env::var_os(TRACE).is_some() {
            for record in self.records().iter() {
                eprintln!("{record}");
            }
        }
    }
}

/// The NAT mapping of one client.
struct NatMapping {
    port: Rc<Port>,
    reader: AbortHandle,
}

impl Drop for NatMapping {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// The state of the forwarder's task.
struct Forwarder {
    started: Instant,
    server: Rc<Cell<SocketAddr>>,
    front: Rc<Port>,
    lanes: HashMap<SocketAddr, NatMapping>,
    counts: [usize; 2],
    rule: Rule,
    records: Rc<RefCell<Vec<Record>>>,
    late: mpsc::UnboundedSender<Late>,
}

/// A datagram to be sent.
struct OutgoingDatagram {
    port: Rc<Port>,
    to: SocketAddr,
    ecn: Option<EcnCodepoint>,
    bytes: Bytes,
}

struct Late {
    due: Instant,
    departure: OutgoingDatagram,
}

impl Forwarder {
    async fn run(mut self, queue: mpsc::UnboundedReceiver<Late>) {
        let (answers, mut answered) = mpsc::unbounded_channel();
        let front = Rc::clone(&self.front);
        let mut batch = Batch::default();
        let delaying = tokio::task::spawn_local(deliver_late(queue)).abort_handle();
        let _guard = AbortOnDrop(delaying);
        loop {
            tokio::select! {
                received = front.receive(&mut batch) => {
                    // A socket reports errors of earlier sends, such as ECONNREFUSED, when it reads.
                    let Ok(messages) = received else { continue };
                    for message in messages {
                        let client = message.from;
                        self.forward(Toward::Server, client, message, &answers).await;
                    }
                }
                Some((client, message)) = answered.recv() => {
                    self.forward(Toward::Client, client, message, &answers).await;
                }
            }
        }
    }

    async fn forward(
        &mut self,
        toward: Toward,
        client: SocketAddr,
        message: Message,
        answers: &mpsc::UnboundedSender<(SocketAddr, Message)>,
    ) {
        let Ok(address_after_nat) = self.lane(client, answers) else {
            return;
        };
        let count = &mut self.counts[usize::from(toward == Toward::Client)];
        let datagram = Datagram {
            at: self.started.elapsed(),
            toward,
            number: *count,
            client,
            ecn: message.ecn,
            bytes: message.bytes,
        };
        *count += 1;
        let verdict = (self.rule)(&datagram);
        self.records.borrow_mut().push(Record {
            datagram: datagram.clone(),
            verdict,
            address_after_nat,
        });
        self.carry_out(verdict, datagram, answers).await;
    }

    async fn carry_out(
        &mut self,
        verdict: Verdict,
        datagram: Datagram,
        answers: &mpsc::UnboundedSender<(SocketAddr, Message)>,
    ) {
        let Some(lane) = self.lanes.get(&datagram.client) else {
            return;
        };
        let (port, to) = match datagram.toward {
            Toward::Server => (Rc::clone(&lane.port), self.server.get()),
            Toward::Client => (Rc::clone(&self.front), datagram.client),
        };
        let mut departure = OutgoingDatagram {
            port,
            to,
            ecn: datagram.ecn,
            bytes: datagram.bytes,
        };
        match verdict {
            Verdict::Pass => {}
            Verdict::Lose => return,
            Verdict::Corrupt(index) => departure.bytes = corrupted(&departure.bytes, index),
            Verdict::Mark => departure.ecn = departure.ecn.map(|_| EcnCodepoint::Ce),
            Verdict::Delay(delay) => {
                let due = Instant::now() + delay;
                // Fails only while the forwarder stops.
                let _ = self.late.send(Late { due, departure });
                return;
            }
            Verdict::Rebind(address) => {
                self.lanes.remove(&datagram.client);
                if let Ok(lane) = open(address, datagram.client, answers) {
                    if datagram.toward == Toward::Server {
                        departure.port = Rc::clone(&lane.port);
                    }
                    self.lanes.insert(datagram.client, lane);
                }
            }
        }
        departure.send().await;
    }

    /// Returns the client's address after NAT; creates a mapping if there is none.
    fn lane(
        &mut self,
        client: SocketAddr,
        answers: &mpsc::UnboundedSender<(SocketAddr, Message)>,
    ) -> Result<SocketAddr> {
        if let Some(lane) = self.lanes.get(&client) {
            return Ok(lane.port.address());
        }
        let lane = open(self.server.get().ip(), client, answers)?;
        let address_after_nat = lane.port.address();
        self.lanes.insert(client, lane);
        Ok(address_after_nat)
    }
}

impl OutgoingDatagram {
    async fn send(&self) {
        // A failed send counts as packet loss.
        let _ = self.port.send(self.to, self.ecn, &self.bytes).await;
    }
}

fn open(
    address: IpAddr,
    client: SocketAddr,
    answers: &mpsc::UnboundedSender<(SocketAddr, Message)>,
) -> Result<NatMapping> {
    let port = Rc::new(Port::bind(address)?);
    let reading = Rc::clone(&port);
    let answers = answers.clone();
    let reader = tokio::task::spawn_local(async move {
        let mut batch = Batch::default();
        while !answers.is_closed() {
            let Ok(messages) = reading.receive(&mut batch).await else {
                continue;
            };
            for message in messages {
                if answers.send((client, message)).is_err() {
                    return;
                }
            }
        }
    });
    Ok(NatMapping {
        port,
        reader: reader.abort_handle(),
    })
}

async fn deliver_late(mut queue: mpsc::UnboundedReceiver<Late>) {
    while let Some(late) = queue.recv().await {
        tokio::time::sleep_until(late.due.into()).await;
        late.departure.send().await;
    }
}

fn corrupted(bytes: &Bytes, index: usize) -> Bytes {
    let mut bytes = bytes.to_vec();
    let length = bytes.len().max(1);
    if let Some(byte) = bytes.get_mut(index % length) {
        *byte ^= 0x5a;
    }
    bytes.into()
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
