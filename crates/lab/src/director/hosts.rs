//! Talking to the hosts: orders go to one or to all, events come from any.

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
    heard: UnboundedReceiver<(usize, HostMessage)>,
}

/// What a host's socket gives.
pub(super) enum HostMessage {
    /// A message.
    Event(AgentEvent),
    /// Something that is none.
    Nonsense(MessageError),
    /// Nothing any more.
    Closed,
}

impl Hosts {
    /// Listens to hosts of these names by these sockets. Must be called within a tokio runtime.
    pub(super) fn new(names: Vec<String>, controls: Vec<StdStream>) -> Result<Self, LabError> {
        let (said, heard) = unbounded_channel();
        let mut orders = Vec::with_capacity(controls.len());
        for (host, control) in controls.into_iter().enumerate() {
            let stream = control
                .set_nonblocking(true)
                .and_then(|()| UnixStream::from_std(control));
            let stream = stream.map_err(LabError::system("listening to hosts"))?;
            let (read, write) = stream.into_split();
            orders.push(write);
            tokio::spawn(listen(host, read, said.clone()));
        }
        Ok(Self {
            names,
            orders,
            heard,
        })
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.orders.len()
    }

    /// A host's name.
    pub(super) fn name(&self, host: usize) -> String {
        self.names.get(host).cloned().unwrap_or_default()
    }

    /// Tells one host. That one is gone shows where its events are heard.
    pub(super) async fn tell(&mut self, host: usize, order: &HostCommand) -> Result<(), LabError> {
        let line = encode(order).map_err(|source| LabError::Message {
            host: self.name(host),
            source,
        })?;
        self.write(host, &line).await;
        Ok(())
    }

    /// Tells all hosts.
    pub(super) async fn tell_all(&mut self, order: &HostCommand) -> Result<(), LabError> {
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

    /// The next thing that any of them says.
    pub(super) async fn next(&mut self) -> Option<(usize, HostMessage)> {
        self.heard.recv().await
    }
}

async fn listen(host: usize, read: OwnedReadHalf, said: UnboundedSender<(usize, HostMessage)>) {
    let mut lines = BufReader::new(read);
    let mut line = Vec::new();
    loop {
        line.clear();
        let heard = match lines.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => HostMessage::Closed,
            Ok(_) => match decode(&line) {
                Ok(event) => HostMessage::Event(event),
                Err(error) => HostMessage::Nonsense(error),
            },
        };
        let is_over = !matches!(heard, HostMessage::Event(_));
        // Where nobody listens any more there is nothing to say.
        if said.send((host, heard)).is_err() || is_over {
            return;
        }
    }
}
