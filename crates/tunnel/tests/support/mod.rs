//! A tunnel on loopback, and applications for its ends.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::num::{NonZeroU8, NonZeroUsize};

use sha2::{Digest as _, Sha256};
use tokio::io::copy;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use weir_net::tls::{ClientTls, Identity, ServerTls};
use weir_policy::{AccessPolicy, AccessRule};
use weir_tunnel::{
    APPLICATION_PROTOCOL, Access, Client, ClientOptions, Server, ServerOptions, Tunnel as Route,
    TunnelError,
};
use weir_units::Duration;

/// Any port of the loopback address.
pub(crate) fn loopback() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// A rule for all connections.
pub(crate) fn rule(allow: bool) -> AccessRule {
    AccessRule {
        line: 0,
        clients: Vec::new(),
        from: Vec::new(),
        to: Vec::new(),
        hosts: Vec::new(),
        to_ports: Vec::new(),
        allow,
    }
}

/// A policy that allows everything.
pub(crate) fn all() -> Access {
    Access::new(AccessPolicy {
        rules: vec![rule(true)],
    })
}

/// The options of a server on loopback.
pub(crate) fn server_options(identity: Identity, access: Access) -> ServerOptions {
    let tls = ServerTls::new(identity).application_protocols([APPLICATION_PROTOCOL]);
    ServerOptions {
        bind: loopback(),
        credentials: tls.build().unwrap(),
        access,
        max_connections: 1000,
        connect_timeout: Duration::from_secs(5),
        proxy_protocol: false,
        transparent: Vec::new(),
        udp: true,
        over_tcp: false,
        congestion: None,
        threads: NonZeroU8::MIN,
        state_directory: None,
        qlog: None,
        registry: None,
    }
}

/// The options of a client on loopback.
pub(crate) fn client_options(server: SocketAddr, pin: &Identity, to: SocketAddr) -> ClientOptions {
    let tls = ClientTls::pinned(pin.fingerprint()).application_protocols([APPLICATION_PROTOCOL]);
    ClientOptions {
        tunnels: vec![Route {
            listen: loopback(),
            to: to.to_string().parse().unwrap(),
            via: server.to_string().parse().unwrap(),
            udp: false,
        }],
        redirected: None,
        credentials: tls.build().unwrap(),
        server_name: None,
        local: Vec::new(),
        connections: NonZeroUsize::new(2).unwrap(),
        over_tcp: false,
        congestion: None,
        threads: NonZeroU8::MIN,
        qlog: None,
        registry: None,
    }
}

/// A client and a server that run until this is dropped.
pub(crate) struct Tunnel {
    /// Where applications connect to.
    pub(crate) address: SocketAddr,
    pub(crate) client: std::sync::Arc<Client>,
    pub(crate) server: std::sync::Arc<Server>,
    tasks: Vec<JoinHandle<()>>,
}

impl Tunnel {
    /// A tunnel to a destination.
    pub(crate) async fn to(destination: SocketAddr) -> Self {
        Self::with(destination, all()).await
    }

    /// A tunnel with a policy.
    pub(crate) async fn with(destination: SocketAddr, access: Access) -> Self {
        let identity = Identity::self_signed(["localhost"]).unwrap();
        let server = Server::bind(server_options(identity.clone(), access)).unwrap();
        let options = client_options(server.local_address(), &identity, destination);
        let client = Client::bind(options).unwrap();
        Self::run(client, server)
    }

    /// Runs both ends.
    pub(crate) fn run(client: Client, server: Server) -> Self {
        let (client, server) = (std::sync::Arc::new(client), std::sync::Arc::new(server));
        let (running, serving) = (client.clone(), server.clone());
        Self {
            address: client.local_addresses()[0],
            client,
            server,
            tasks: vec![
                tokio::spawn(async move { running.run().await }),
                tokio::spawn(async move { serving.run().await }),
            ],
        }
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Starts a server that sends back what it receives.
pub(crate) async fn echo_server() -> SocketAddr {
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut reader, mut writer) = tcp.split();
                let _ = copy(&mut reader, &mut writer).await;
            });
        }
    });
    address
}

/// Returns bytes without a pattern that a mistake could hide in.
pub(crate) fn random_bytes(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..count).map(|_| next()).collect()
}

/// Returns the SHA-256 of some bytes.
pub(crate) fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Binds again while another socket has the port that the first one was given, of UDP and TCP.
pub(crate) fn free<T>(mut bind: impl FnMut() -> Result<T, TunnelError>) -> T {
    loop {
        match bind() {
            Err(TunnelError::Listen { source, .. }) if source.kind() == ErrorKind::AddrInUse => {}
            bound => return bound.unwrap(),
        }
    }
}

/// Returns whether a DCQUIC connection of the client is ready.
pub(crate) fn is_ready(client: &Client) -> bool {
    let status = client.status();
    let mut connections = status.peers[0].connections.iter();
    connections.any(|connection| connection.state == "ready")
}

/// Waits until a condition holds.
pub(crate) async fn eventually(mut holds: impl FnMut() -> bool) {
    while !holds() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}
