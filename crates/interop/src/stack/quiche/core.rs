//! The client's connections, and the task that drives them over its sockets.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;

use quiche::{Config, Connection};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use weir_traffic_peers::quiche::{Driven, Port, Sockets, connect, expire, offer_connection_ids};

use super::super::{Result, Setup};

/// A client endpoint.
pub(super) struct ClientEndpoint {
    config: RefCell<Config>,
    /// The local address of new connections.
    local: Cell<SocketAddr>,
    /// Sockets that the driver has not added yet.
    ports: RefCell<Vec<Port>>,
    links: RefCell<Vec<ClientConnection>>,
    /// Notified when the application has something to send.
    pub(super) wake: Notify,
}

/// A connection.
#[derive(Clone)]
pub(super) struct ClientConnection {
    pub(super) quiche: Rc<RefCell<Connection>>,
    /// Notified after each step of the driver.
    pub(super) changed: Rc<Notify>,
}

impl Driven for ClientConnection {
    fn with<T>(&mut self, act: impl FnOnce(&mut Connection) -> T) -> T {
        act(&mut self.quiche.borrow_mut())
    }
}

impl ClientEndpoint {
    /// Starts a task that drives an endpoint until it is aborted.
    pub(super) fn start(setup: &Setup, config: Config) -> Result<(Rc<Self>, AbortHandle)> {
        let port = Port::bind(setup.bind())?;
        let core = Rc::new(Self {
            config: RefCell::new(config),
            local: Cell::new(port.address()),
            ports: RefCell::default(),
            links: RefCell::default(),
            wake: Notify::new(),
        });
        let driver = tokio::task::spawn_local(drive(Rc::clone(&core), Sockets::new(port)));
        Ok((core, driver.abort_handle()))
    }

    /// Opens a connection; `prepare` is called on it before its first packet.
    pub(super) fn connect(
        &self,
        to: SocketAddr,
        session: Option<&[u8]>,
        prepare: impl FnOnce(&mut Connection),
    ) -> Result<ClientConnection> {
        let mut config = self.config.borrow_mut();
        let mut connection = connect(&mut config, self.local.get(), to, session)?;
        prepare(&mut connection);
        let link = ClientConnection {
            quiche: Rc::new(RefCell::new(connection)),
            changed: Rc::default(),
        };
        self.links.borrow_mut().push(link.clone());
        self.wake.notify_one();
        Ok(link)
    }

    /// Returns the newest connection.
    pub(super) fn newest(&self) -> Option<ClientConnection> {
        self.links.borrow().last().cloned()
    }

    /// Opens another socket and returns its address.
    pub(super) fn open(&self) -> Result<SocketAddr> {
        let port = Port::bind(SocketAddr::new(self.local.get().ip(), 0))?;
        let local = port.address();
        self.ports.borrow_mut().push(port);
        self.local.set(local);
        Ok(local)
    }
}

async fn drive(core: Rc<ClientEndpoint>, mut sockets: Sockets) {
    loop {
        let mut links = core.links.borrow().clone();
        tokio::select! {
            // A socket reports errors of earlier sends when it receives; ignore them.
            _ = sockets.step(&mut links) => {}
            () = core.wake.notified() => {}
        }
        for port in core.ports.take() {
            sockets.add(port);
        }
        let links = core.links.borrow().clone();
        for mut link in links {
            link.with(attend);
            // A failed send counts as packet loss.
            let _ = sockets.flush(&mut link).await;
            link.changed.notify_waiters();
        }
    }
}

/// Handles path events, timers and new connection IDs of a connection.
fn attend(connection: &mut Connection) {
    while connection.path_event_next().is_some() {}
    while connection.retired_scid_next().is_some() {}
    // While the application keeps waking the driver, `Sockets::step` never waits for timers.
    expire(connection);
    offer_connection_ids(connection, |_| {});
}
