//! The client's sockets and connections, and the task that drives them.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use quiche::{Config, Connection, Header, RecvInfo};
use tokio::net::UdpSocket;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use weir_traffic_peers::quiche::{ID_LENGTH, offer_connection_ids};
use weir_traffic_peers::udp_socket;

use super::super::{Result, Setup};

/// The largest UDP payload by IPv4, and more.
const LARGEST: usize = 65_536;

/// A client's endpoint.
pub(super) struct Core {
    pub(super) config: RefCell<Config>,
    sockets: RefCell<Vec<Rc<UdpSocket>>>,
    pub(super) links: RefCell<Vec<Rc<Link>>>,
    /// Something has come, or the application has something to send.
    pub(super) wake: Notify,
    tasks: RefCell<Vec<AbortHandle>>,
}

/// A connection.
pub(super) struct Link {
    pub(super) quiche: RefCell<Connection>,
    /// Something may have changed.
    pub(super) changed: Notify,
}

impl Core {
    /// Begins to drive an endpoint.
    pub(super) fn start(setup: &Setup, config: Config) -> Result<Rc<Self>> {
        let core = Rc::new(Self {
            config: RefCell::new(config),
            sockets: RefCell::default(),
            links: RefCell::default(),
            wake: Notify::new(),
            tasks: RefCell::default(),
        });
        core.open(SocketAddr::new(setup.ip, 0))?;
        let driver = tokio::task::spawn_local(drive(Rc::clone(&core)));
        core.tasks.borrow_mut().push(driver.abort_handle());
        Ok(core)
    }

    /// Opens one more socket; gives its address.
    pub(super) fn open(self: &Rc<Self>, address: SocketAddr) -> Result<SocketAddr> {
        let socket = Rc::new(UdpSocket::from_std(udp_socket(address)?.into())?);
        let local = socket.local_addr()?;
        self.sockets.borrow_mut().push(Rc::clone(&socket));
        let reader = tokio::task::spawn_local(read(Rc::clone(self), socket, local));
        self.tasks.borrow_mut().push(reader.abort_handle());
        Ok(local)
    }

    /// The address of the newest socket.
    pub(super) fn address(&self) -> Result<SocketAddr> {
        let sockets = self.sockets.borrow();
        Ok(sockets.last().ok_or("no socket")?.local_addr()?)
    }

    /// Takes a connection in.
    pub(super) fn add(&self, connection: Connection) -> Rc<Link> {
        let link = Rc::new(Link {
            quiche: RefCell::new(connection),
            changed: Notify::new(),
        });
        self.links.borrow_mut().push(Rc::clone(&link));
        link
    }

    /// Ends all that runs.
    pub(super) fn stop(&self) {
        for task in self.tasks.borrow_mut().drain(..) {
            task.abort();
        }
    }

    /// Gives a datagram to its connection. What belongs to none is dropped.
    fn route(&self, datagram: &mut [u8], info: RecvInfo) {
        let Ok(header) = Header::from_slice(datagram, ID_LENGTH) else {
            return;
        };
        for link in self.links.borrow().iter() {
            let mut quiche = link.quiche.borrow_mut();
            if quiche.source_ids().any(|own| *own == header.dcid) {
                // An error closes the connection, which everyone who waits finds.
                let _ = quiche.recv(datagram, info);
                while quiche.path_event_next().is_some() {}
                while quiche.retired_scid_next().is_some() {}
                return;
            }
        }
    }

    /// Does what a connection has to do.
    async fn attend(&self, link: &Link, buffer: &mut [u8]) {
        {
            let mut quiche = link.quiche.borrow_mut();
            if quiche.timeout().is_some_and(|left| left.is_zero()) {
                quiche.on_timeout();
            }
            offer_connection_ids(&mut quiche, |_| {});
        }
        loop {
            let packet = link.quiche.borrow_mut().send(buffer);
            let Ok((length, info)) = packet else { break };
            let sockets = self.sockets.borrow().clone();
            let from = |socket: &&Rc<UdpSocket>| socket.local_addr().ok() == Some(info.from);
            if let Some(socket) = sockets.iter().find(from) {
                // A failure is a loss.
                let bytes = buffer.get(..length).unwrap_or_default();
                let _ = socket.send_to(bytes, info.to).await;
            }
        }
        link.changed.notify_waiters();
    }
}

async fn read(core: Rc<Core>, socket: Rc<UdpSocket>, local: SocketAddr) {
    let mut buffer = vec![0; LARGEST];
    loop {
        // A socket reports errors of earlier sends when it reads.
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
            continue;
        };
        let info = RecvInfo { from, to: local };
        core.route(buffer.get_mut(..length).unwrap_or_default(), info);
        core.wake.notify_one();
    }
}

async fn drive(core: Rc<Core>) {
    let mut buffer = vec![0; LARGEST];
    loop {
        let links = core.links.borrow().clone();
        let timeouts = links
            .iter()
            .filter_map(|link| link.quiche.borrow().timeout());
        let timeout = timeouts.min().unwrap_or(Duration::from_secs(3600));
        tokio::select! {
            () = tokio::time::sleep(timeout) => {}
            () = core.wake.notified() => {}
        }
        let links = core.links.borrow().clone();
        for link in &links {
            core.attend(link, &mut buffer).await;
        }
    }
}
