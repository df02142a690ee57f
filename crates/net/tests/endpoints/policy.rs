//! A policy file decides the congestion controller of connections.

use std::net::SocketAddr;

use crate::support::{loopback, run, transport};
use weir_net::tls::{ClientTls, Identity, ServerTls};
use weir_net::{Connection, Endpoint};
use weir_scenario::parse_policy;

fn algorithm(connection: &Connection) -> &'static str {
    connection.stats().paths[0].algorithm
}

async fn connect(client: &Endpoint, server: SocketAddr) -> Connection {
    client.connect(server, "localhost").unwrap().await.unwrap()
}

#[test]
fn the_first_matching_rule_selects_the_congestion_control() {
    run(async {
        let identity = Identity::self_signed(["localhost"]).unwrap();
        let pin = identity.fingerprint();
        let tls = ServerTls::new(identity).build().unwrap();
        let builder = Endpoint::builder().transport(transport()).server(tls);
        let policy = "[[rules]]\nfrom = \"127.0.0.1/32\"\ncongestion = \"swift\"\n";
        let policy = parse_policy("server", policy).unwrap();
        let servers = [(); 3].map(|()| {
            let builder = builder.clone().policy(policy.clone());
            builder.bind(loopback()).unwrap()
        });
        let [first, second, third] = servers.each_ref().map(Endpoint::local_address);

        let policy = format!(
            "[[rules]]\nto_port = {}\npass = true\n\
             [[rules]]\nto_port = {}\ncongestion = {{ name = \"bbr\" }}\n\
             [[rules]]\nto = \"127.0.0.0/8\"\nfrom_port = \"1-65535\"\ncongestion = \"newreno\"\n",
            first.port(),
            second.port()
        );
        let client = Endpoint::builder()
            .transport(transport())
            .client(ClientTls::pinned(pin).build().unwrap())
            .policy(parse_policy("client", &policy).unwrap())
            .bind(loopback())
            .unwrap();
        let own = format!("{:?}", transport().congestion);
        // They live until the server has accepted one.
        let mut connections = Vec::new();
        for (server, expected) in [(first, &*own), (second, "bbr"), (third, "newreno")] {
            let connection = connect(&client, server).await;
            assert_eq!(algorithm(&connection), expected);
            connections.push(connection);
        }
        let [server, ..] = &servers;
        let accepted = server.accept().await.unwrap().await.unwrap();
        assert_eq!(algorithm(&accepted), "swift");
    });
}
