//! Communication with the hosts: commands go to one host or to all, events come from any.

use std::os::unix::net::UnixStream as StdStream;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::LabError;
use crate::control::{AgentEvent, HostCommand, MessageError, decode, encode};

/// The control sockets of all hosts.
pub(super) struct Hosts {
    names: Vec<String>,
    orders: Vec<OwnedWriteHalf>,
    events: UnboundedReceiver<(usize, HostMessage)>,
}

/// A message from a host's socket.
pub(super) enum HostMessage {
    /// An event.
    Event(AgentEvent),
    /// An invalid message.
    Invalid(MessageError),
    /// The end of the stream.
    Closed,
}

impl Hosts {
    /// Reads events from these sockets of hosts with these names. Must be called within a tokio runtime.
    pub(super) fn new(names: Vec<String>, controls: Vec<StdStream>) -> Result<Self, LabError> {
        let (sender, events) = unbounded_channel();
        let mut orders = Vec::with_capacity(controls.len());
        for (host, control) in controls.into_iter().enumerate() {
            let stream = control
                .set_nonblocking(true)
                .and_then(|()| UnixStream::from_std(control));
            let stream = stream.map_err(LabError::system("listening to hosts"))?;
            let (read, write) = stream.into_split();
            orders.push(write);
            tokio::spawn(listen(host, read, sender.clone()));
        }
        Ok(Self {
            names,
            orders,
            events,
        })
    }

    /// Returns the number of hosts.
    pub(super) fn count(&self) -> usize {
        self.orders.len()
    }

    /// Returns a host's name.
    pub(super) fn name(&self, host: usize) -> String {
        self.names.get(host).cloned().unwrap_or_default()
    }

    /// Sends a command to one host. A closed socket is reported by [`next`](Self::next).
    pub(super) async fn send(&mut self, host: usize, order: &HostCommand) -> Result<(), LabError> {
        let line = encode(order).map_err(|source| LabError::Message {
            host: self.name(host),
            source,
        })?;
        self.write(host, &line).await;
        Ok(())
    }

    /// Sends a command to all hosts.
    pub(super) async fn send_all(&mut self, order: &HostCommand) -> Result<(), LabError> {
        let line = encode(order).map_err(|source| LabError::Message {
            host: "all hosts".to_owned(),
            source,
        })?;
        for host in 0..self.count() {
            self.write(host, &line).await;
        }
        Ok(())
    }

    async fn write(&mut self, host: usize, line: &[u8]) {
        if let Some(orders) = self.orders.get_mut(host) {
            let _ = orders.write_all(line).await;
        }
    }

    /// Receives the next message of any host.
    pub(super) async fn next(&mut self) -> Option<(usize, HostMessage)> {
        self.events.recv().await
    }
}

async fn listen(host: usize, read: OwnedReadHalf, sender: UnboundedSender<(usize, HostMessage)>) {
    let mut lines = BufReader::new(read);
    let mut line = Vec::new();
    loop {
        line.clear();
        let message = match lines.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => HostMessage::Closed,
            Ok(_) => match decode(&line) {
                Ok(event) => HostMessage::Event(event),
                Err(error) => HostMessage::Invalid(error),
            },
        };
        let is_over = !matches!(message, HostMessage::Event(_));
        // The receiver is gone, so nothing more can be delivered.
        if sender.send((host, message)).is_err() || is_over {
            return;
        }
    }
}
