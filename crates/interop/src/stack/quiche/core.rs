//! What client and server share: sockets, connections, and the task that drives them.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use quiche::{Config, Header, RecvInfo};
use tokio::net::UdpSocket;
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;
use weir_traffic_peers::quiche::ID_LENGTH;

use super::super::key_log::{KeyLines, KeyWriter};
use super::super::{Result, Setup};
use super::link::Link;

/// The largest UDP payload by IPv4, and more.
const LARGEST: usize = 65_536;

/// Takes a datagram that belongs to no connection; gives the connection that it begins.
pub(super) type Stranger = Box<dyn Fn(&Core, &Header<'_>, RecvInfo) -> Result<Option<Rc<Link>>>>;

/// An endpoint.
pub(super) struct Core {
    pub(super) config: RefCell<Config>,
    sockets: RefCell<Vec<Rc<UdpSocket>>>,
    pub(super) links: RefCell<Vec<Rc<Link>>>,
    /// The application has something to send.
    pub(super) wake: Notify,
    arrivals: mpsc::UnboundedSender<Arrival>,
    tasks: RefCell<Vec<AbortHandle>>,
    key_log: Option<Arc<KeyLines>>,
    /// Whether streams and datagrams are sent back.
    echoes: bool,
}

struct Arrival {
    info: RecvInfo,
    bytes: Vec<u8>,
}

impl Core {
    /// Begins to drive an endpoint; `None` for a client, which knows no strangers.
    pub(super) fn start(
        setup: &Setup,
        config: Config,
        stranger: Option<Stranger>,
    ) -> Result<Rc<Self>> {
        let (arrivals, arrived) = mpsc::unbounded_channel();
        let core = Rc::new(Self {
            config: RefCell::new(config),
            sockets: RefCell::default(),
            links: RefCell::default(),
            wake: Notify::new(),
            arrivals,
            tasks: RefCell::default(),
            key_log: setup.key_log.clone(),
            echoes: stranger.is_some(),
        });
        core.open(SocketAddr::new(setup.ip, 0))?;
        let driver = tokio::task::spawn_local(drive(Rc::clone(&core), arrived, stranger));
        core.tasks.borrow_mut().push(driver.abort_handle());
        Ok(core)
    }

    /// Opens one more socket; gives its address.
    pub(super) fn open(&self, address: SocketAddr) -> Result<SocketAddr> {
        let socket = std::net::UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        let socket = Rc::new(UdpSocket::from_std(socket)?);
        let local = socket.local_addr()?;
        self.sockets.borrow_mut().push(Rc::clone(&socket));
        let reader = tokio::task::spawn_local(read(socket, local, self.arrivals.clone()));
        self.tasks.borrow_mut().push(reader.abort_handle());
        Ok(local)
    }

    /// The address of the newest socket.
    pub(super) fn address(&self) -> Result<SocketAddr> {
        let sockets = self.sockets.borrow();
        Ok(sockets.last().ok_or("no socket")?.local_addr()?)
    }

    /// Takes a connection in.
    pub(super) fn add(&self, mut connection: quiche::Connection) -> Rc<Link> {
        if let Some(lines) = &self.key_log {
            connection.set_keylog(Box::new(KeyWriter(Arc::clone(lines))));
        }
        let link = Rc::new(Link::new(connection));
        self.links.borrow_mut().push(Rc::clone(&link));
        link
    }

    /// Ends all that runs.
    pub(super) fn stop(&self) {
        for task in self.tasks.borrow_mut().drain(..) {
            task.abort();
        }
    }

    /// Sends bytes that belong to no connection.
    pub(super) fn send_stateless(&self, to: SocketAddr, bytes: &[u8]) {
        if let Some(socket) = self.sockets.borrow().last() {
            // A failure is a loss.
            let _ = socket.try_send_to(bytes, to);
        }
    }

    fn route(&self, arrival: &mut Arrival, stranger: Option<&Stranger>) -> Result<()> {
        let header = Header::from_slice(&mut arrival.bytes, ID_LENGTH)?;
        let links = self.links.borrow().clone();
        let known = links.into_iter().find(|link| link.owns(&header.dcid));
        let link = match (known, stranger) {
            (Some(link), _) => Some(link),
            (None, Some(stranger)) => stranger(self, &header, arrival.info)?,
            (None, None) => None,
        };
        if let Some(link) = link {
            link.receive(&mut arrival.bytes, arrival.info);
        }
        Ok(())
    }

    async fn flush(&self, link: &Link) {
        let mut buffer = vec![0; LARGEST];
        while let Some((length, info)) = link.next_packet(&mut buffer) {
            let sockets = self.sockets.borrow().clone();
            let from = |socket: &&Rc<UdpSocket>| socket.local_addr().ok() == Some(info.from);
            if let Some(socket) = sockets.iter().find(from) {
                // A failure is a loss.
                let _ = socket
                    .send_to(buffer.get(..length).unwrap_or_default(), info.to)
                    .await;
            }
        }
    }
}

async fn read(socket: Rc<UdpSocket>, local: SocketAddr, arrivals: mpsc::UnboundedSender<Arrival>) {
    let mut buffer = vec![0; LARGEST];
    while !arrivals.is_closed() {
        // A socket reports errors of earlier sends when it reads.
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
            continue;
        };
        let info = RecvInfo { from, to: local };
        let bytes = buffer.get(..length).unwrap_or_default().to_vec();
        if arrivals.send(Arrival { info, bytes }).is_err() {
            return;
        }
    }
}

async fn drive(
    core: Rc<Core>,
    mut arrived: mpsc::UnboundedReceiver<Arrival>,
    stranger: Option<Stranger>,
) {
    let mut batch = Vec::new();
    loop {
        let links = core.links.borrow().clone();
        let timeout = links.iter().filter_map(|link| link.timeout()).min();
        let timeout = timeout.unwrap_or(Duration::from_secs(3600));
        tokio::select! {
            _ = arrived.recv_many(&mut batch, 64) => {}
            () = tokio::time::sleep(timeout) => {}
            () = core.wake.notified() => {}
        }
        for mut arrival in batch.drain(..) {
            // What is no packet of ours is dropped.
            let _ = core.route(&mut arrival, stranger.as_ref());
        }
        let links = core.links.borrow().clone();
        for link in &links {
            link.expire();
            if core.echoes {
                link.echo_all();
            }
            link.offer_connection_ids();
            core.flush(link).await;
            link.changed.notify_waiters();
        }
        if core.echoes {
            // A first packet that was changed on the way leaves one that is over at once, and its
            // client comes again with the same connection ID.
            core.links.borrow_mut().retain(|link| !link.is_closed());
        }
    }
}
