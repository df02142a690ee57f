//! The quiche client.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use quiche::Config;
use tokio::task::AbortHandle;
use weir_traffic_peers::quiche::{took_early_data, why_over};

use super::super::key_log::KeyLines;
use super::super::{Client, Connection, ConnectionStatus, Local, Result, Setup};
use super::core::{ClientConnection, ClientEndpoint};
use super::{facts, log_keys};

pub(super) fn client(setup: &Setup, config: Config) -> Result<Box<dyn Client>> {
    let (core, driver) = ClientEndpoint::start(setup, config)?;
    Ok(Box::new(QuicheClient {
        core,
        driver,
        session: Rc::default(),
        key_log: setup.key_log.clone(),
    }))
}

struct QuicheClient {
    core: Rc<ClientEndpoint>,
    driver: AbortHandle,
    /// The newest session.
    session: Rc<RefCell<Option<Vec<u8>>>>,
    key_log: Option<Arc<KeyLines>>,
}

impl QuicheClient {
    fn begin(&self, to: SocketAddr) -> Result<QuicheConnection> {
        let session = self.session.borrow_mut().take();
        let prepare = |connection: &mut _| log_keys(connection, self.key_log.as_ref());
        let link = self.core.connect(to, session.as_deref(), prepare)?;
        Ok(QuicheConnection {
            core: Rc::clone(&self.core),
            link,
            session: Rc::clone(&self.session),
            next_stream: Cell::new(0),
        })
    }
}

impl Drop for QuicheClient {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Client for QuicheClient {
    fn connect(&self, to: SocketAddr) -> Local<'_, Result<Box<dyn Connection>>> {
        Box::pin(async move {
            let connection = self.begin(to)?;
            connection.established().await?;
            Ok(Box::new(connection) as Box<dyn Connection>)
        })
    }

    fn connect_early(
        &self,
        to: SocketAddr,
        data: Bytes,
    ) -> Local<'_, Result<(Box<dyn Connection>, Bytes)>> {
        Box::pin(async move {
            let connection = self.begin(to)?;
            // quiche builds the first flight when the driver sends it.
            connection.link.changed.notified().await;
            if !connection.link.quiche.borrow().is_in_early_data() {
                return Err("quiche has no session that allows early data".into());
            }
            let echoed = connection.echo(data).await?;
            connection.established().await?;
            Ok((Box::new(connection) as Box<dyn Connection>, echoed))
        })
    }

    fn migrate(&self) -> Local<'_, Result<()>> {
        Box::pin(async move {
            let local = self.core.open()?;
            let link = self.core.newest().ok_or("no connection")?;
            loop {
                let migrated = link.quiche.borrow_mut().migrate_source(local);
                match migrated {
                    Ok(_) => break,
                    // Wait until the server has issued connection IDs.
                    Err(quiche::Error::OutOfIdentifiers) => link.changed.notified().await,
                    Err(error) => return Err(error.into()),
                }
            }
            self.core.wake.notify_one();
            Ok(())
        })
    }
}

struct QuicheConnection {
    core: Rc<ClientEndpoint>,
    link: ClientConnection,
    session: Rc<RefCell<Option<Vec<u8>>>>,
    next_stream: Cell<u64>,
}

impl QuicheConnection {
    /// Waits for the driver's next step.
    async fn step(&self) -> Result<()> {
        if let Some(reason) = why_over(&self.link.quiche.borrow()) {
            return Err(reason.into());
        }
        self.core.wake.notify_one();
        self.link.changed.notified().await;
        Ok(())
    }

    async fn established(&self) -> Result<()> {
        while !self.link.quiche.borrow().is_established() {
            self.step().await?;
        }
        Ok(())
    }
}

impl Connection for QuicheConnection {
    fn echo(&self, data: Bytes) -> Local<'_, Result<Bytes>> {
        Box::pin(async move {
            let stream = self.next_stream.replace(self.next_stream.get() + 4);
            let mut transfer = Transfer {
                stream,
                left: data,
                ended: false,
                received: Vec::new(),
            };
            while !transfer.advance(&mut self.link.quiche.borrow_mut())? {
                self.step().await?;
            }
            // Reading has opened the flow-control window for the peer.
            self.core.wake.notify_one();
            Ok(transfer.received.into())
        })
    }

    fn datagram(&self, data: Bytes) -> Local<'_, Result<Bytes>> {
        Box::pin(async move {
            self.link.quiche.borrow_mut().dgram_send(&data)?;
            let mut buffer = vec![0; usize::from(u16::MAX)];
            loop {
                let received = self.link.quiche.borrow_mut().dgram_recv(&mut buffer);
                if let Ok(length) = received {
                    buffer.truncate(length);
                    return Ok(buffer.into());
                }
                self.step().await?;
            }
        })
    }

    fn update_keys(&self) -> Local<'_, Result<()>> {
        Box::pin(async { Err("quiche begins no key updates".into()) })
    }

    fn facts(&self) -> ConnectionStatus {
        let quiche = self.link.quiche.borrow();
        ConnectionStatus {
            early_data: Some(took_early_data(&quiche)),
            ..facts(&quiche)
        }
    }

    fn close(&self) {
        let mut quiche = self.link.quiche.borrow_mut();
        *self.session.borrow_mut() = quiche.session().map(<[u8]>::to_vec);
        // The connection may be closed already.
        let _ = quiche.close(true, 0, b"");
        self.core.wake.notify_one();
    }
}

/// An echo in progress.
struct Transfer {
    stream: u64,
    left: Bytes,
    /// All data are sent.
    ended: bool,
    received: Vec<u8>,
}

impl Transfer {
    /// Writes and reads as much as possible. Returns whether the echo is complete.
    fn advance(&mut self, quiche: &mut quiche::Connection) -> Result<bool> {
        if !self.ended {
            match quiche.stream_send(self.stream, &self.left, true) {
                Ok(taken) => {
                    self.ended = taken == self.left.len();
                    let _ = self.left.split_to(taken);
                }
                Err(quiche::Error::Done | quiche::Error::StreamLimit) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        let mut buffer = [0; 16 * 1024];
        loop {
            match quiche.stream_recv(self.stream, &mut buffer) {
                Ok((length, ended)) => {
                    self.received
                        .extend_from_slice(buffer.get(..length).unwrap_or_default());
                    if ended {
                        return Ok(true);
                    }
                }
                Err(quiche::Error::Done) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
    }
}
