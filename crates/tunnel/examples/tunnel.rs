//! A tunnel without the `weir` command: one destination, one server, one client.
//!
//! ```text
//! cargo run --example tunnel -- server 127.0.0.1:5204 127.0.0.1:6379 chain.pem key.pem
//! cargo run --example tunnel -- client 127.0.0.1:6380 127.0.0.1:6379 127.0.0.1:5204 FINGERPRINT
//! ```

use std::error::Error;
use std::num::{NonZeroU8, NonZeroUsize};

use weir_policy::{AccessPolicy, AccessRule};
use weir_tunnel::destination::Host;
use weir_tunnel::tls::{ClientTls, Identity, ServerTls};
use weir_tunnel::{
    APPLICATION_PROTOCOL, Access, Client, ClientOptions, Destination, KnownClientsConfig, Server,
    ServerOptions, Tunnel,
};
use weir_units::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["server", bind, to, chain, key] => server(bind, to, chain, key).await,
        ["client", listen, to, via, pin] => client(listen, to, via, pin).await,
        _ => Err("tunnel server BIND TO CHAIN KEY, or tunnel client LISTEN TO VIA PIN".into()),
    }
}

async fn server(bind: &str, to: &str, chain: &str, key: &str) -> Result<(), Box<dyn Error>> {
    let tls = ServerTls::new(Identity::from_files(chain, key)?)
        .application_protocols([APPLICATION_PROTOCOL])
        .known_peers(KnownClientsConfig::default());
    let server = Server::bind(ServerOptions {
        bind: bind.parse()?,
        credentials: tls.build()?,
        access: Access::new(AccessPolicy {
            rules: vec![rule(&to.parse()?)?],
        }),
        max_connections: 10_000,
        connect_timeout: Duration::from_secs(5),
        proxy_protocol: false,
        transparent: Vec::new(),
        udp: false,
        over_tcp: false,
        congestion: None,
        threads: NonZeroU8::MIN,
        state_directory: None,
        qlog: None,
        registry: None,
    })?;
    server.run().await;
    Ok(())
}

/// Returns a rule that lets everybody reach a destination.
fn rule(to: &Destination) -> Result<AccessRule, Box<dyn Error>> {
    let (address, host) = match to.host() {
        Host::Address(address) => (Some(address.to_string().parse()?), None),
        Host::Name(name) => (None, Some(name.parse()?)),
    };
    Ok(AccessRule {
        line: 0,
        clients: Vec::new(),
        from: Vec::new(),
        to: address.into_iter().collect(),
        hosts: host.into_iter().collect(),
        to_ports: vec![to.port().to_string().parse()?],
        allow: true,
    })
}

async fn client(listen: &str, to: &str, via: &str, pin: &str) -> Result<(), Box<dyn Error>> {
    let tls = ClientTls::pinned(pin.parse()?).application_protocols([APPLICATION_PROTOCOL]);
    let client = Client::bind(ClientOptions {
        tunnels: vec![Tunnel {
            listen: listen.parse()?,
            to: to.parse()?,
            via: via.parse()?,
            udp: false,
        }],
        redirected: None,
        credentials: tls.build()?,
        server_name: None,
        local: Vec::new(),
        connections: NonZeroUsize::MIN,
        over_tcp: false,
        congestion: None,
        threads: NonZeroU8::MIN,
        qlog: None,
        registry: None,
    })?;
    client.run().await;
    Ok(())
}
