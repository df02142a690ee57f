//! Real interfaces that fail, and addresses that change, between network namespaces: needs root,
//! and is skipped without.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration as Span;

use support::namespaces::Namespaces;
use support::{pattern, run, transport};
use weir_net::tls::{ClientTls, Fingerprint, Identity, ServerTls};
use weir_net::{
    ByteSize, Connection, Endpoint, EndpointBuilder, MoveCause, PathEvent, PathEvents,
    PathSnapshot, PathState, PathUpdate, TransportConfig,
};

const SIZE: usize = 20_000_000;
/// The server's address, reachable over any interface.
const SERVER: &str = "10.77.0.2:4433";

/// An echo server in its namespace, until the end of the test.
struct Server {
    fingerprint: Fingerprint,
    _stop: tokio::sync::oneshot::Sender<()>,
}

fn echo_server(namespaces: &Namespaces) -> Server {
    echo_server_at(namespaces, "0.0.0.0:4433", transport())
}

fn echo_server_at(
    namespaces: &Namespaces,
    address: &'static str,
    transport: TransportConfig,
) -> Server {
    let (tell, told) = mpsc::channel();
    let (stop, stopped) = tokio::sync::oneshot::channel();
    Namespaces::enter(&namespaces.server, move || {
        run(async {
            let identity = Identity::self_signed(["localhost"]).unwrap();
            let fingerprint = identity.fingerprint();
            let tls = ServerTls::new(identity).build().unwrap();
            let server = Endpoint::builder().transport(transport).server(tls);
            support::echo_streams(server.bind(address.parse().unwrap()).unwrap());
            tell.send(fingerprint).unwrap();
            // Ends with the test, by value or by panic.
            let _ = stopped.await;
        });
    });
    Server {
        fingerprint: told.recv().unwrap(),
        _stop: stop,
    }
}

fn client(server: &Server) -> EndpointBuilder {
    let tls = ClientTls::pinned(server.fingerprint).build().unwrap();
    Endpoint::builder().transport(transport()).client(tls)
}

/// Two interfaces, and the server's address behind both of them.
fn two_interfaces(test: &str) -> Option<Namespaces> {
    let namespaces = Namespaces::new(test)?;
    namespaces.in_server("address add 10.77.0.2/32 dev lo");
    for (name, number) in [("nic1", 1), ("nic2", 2)] {
        namespaces.join(name, number);
        let route = format!("route add 10.77.0.2 via 10.77.{number}.2 dev {name} metric {number}");
        namespaces.in_client(&route);
    }
    Some(namespaces)
}

fn one_interface(test: &str) -> Option<Namespaces> {
    let namespaces = Namespaces::new(test)?;
    namespaces.in_server("address add 10.77.0.2/32 dev lo");
    namespaces.join("nic1", 1);
    namespaces.in_client("route add 10.77.0.2 via 10.77.1.2");
    Some(namespaces)
}

async fn connected(client: &Endpoint) -> Connection {
    connected_to(client, SERVER).await
}

async fn connected_to(client: &Endpoint, server: &str) -> Connection {
    let server = server.parse().unwrap();
    client.connect(server, "localhost").unwrap().await.unwrap()
}

/// Waits for an event for which `pick` returns a value.
async fn wait_for<T>(events: &mut PathEvents, pick: impl Fn(PathEvent) -> Option<T>) -> T {
    loop {
        let update = events.next().await.expect("the connection is over");
        if let PathUpdate::Event(event) = update
            && let Some(picked) = pick(event)
        {
            return picked;
        }
    }
}

fn validated(event: PathEvent) -> Option<()> {
    matches!(event, PathEvent::Validated { .. }).then_some(())
}

fn moved(event: PathEvent) -> Option<MoveCause> {
    match event {
        PathEvent::Moved { cause, .. } => Some(cause),
        _ => None,
    }
}

async fn echo(connection: &Connection, seed: u64, size: usize) {
    let data = pattern(seed, size);
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    let sending = async {
        send.write_all(&data).await.unwrap();
        send.finish().unwrap();
    };
    let ((), received) = tokio::join!(sending, recv.read_to_end(size));
    assert!(received.unwrap() == data, "the echo differs");
}

/// Echoes `SIZE` bytes, and calls `disturb` when some of them have returned.
async fn echo_disturbed(connection: &Connection, disturb: impl FnOnce()) {
    let echoing = tokio::spawn({
        let connection = connection.clone();
        async move { echo(&connection, 7, SIZE).await }
    });
    let received = || connection.paths()[0].snapshot.bytes_received.bytes();
    let begin = received();
    while received() < begin + 3_000_000 {
        tokio::time::sleep(Span::from_millis(1)).await;
    }
    assert!(!echoing.is_finished());
    disturb();
    echoing.await.unwrap();
}

/// A client on both interfaces, each bound to its device, with a ready path on the second. The
/// migration monitor is off unless `proactive`.
async fn on_two_interfaces(server: &Server, proactive: bool) -> (Endpoint, Connection, PathEvents) {
    let mut transport = transport();
    transport.migration.proactive = proactive;
    let client = client(server)
        .transport(transport)
        .interface("nic1")
        .also_at_interface("10.77.2.1:0".parse().unwrap(), "nic2")
        .bind("10.77.1.1:0".parse().unwrap())
        .unwrap();
    let connection = connected(&client).await;
    let mut events = connection.path_events();
    if connection
        .paths()
        .iter()
        .all(|path| path.state != PathState::Ready)
    {
        wait_for(&mut events, validated).await;
    }
    (client, connection, events)
}

fn local(connection: &Connection) -> SocketAddr {
    connection.paths()[0].snapshot.local.unwrap()
}

fn a_failing_interface(test: &str, fail: fn(&Namespaces), restore: fn(&Namespaces)) {
    let Some(namespaces) = two_interfaces(test) else {
        return;
    };
    let server = echo_server(&namespaces);
    let name = namespaces.client.clone();
    let work = move || {
        run(async {
            let (client, connection, mut events) = on_two_interfaces(&server, false).await;
            let locals = client.local_addresses();
            assert_eq!(local(&connection), locals[0]);
            echo_disturbed(&connection, || fail(&namespaces)).await;
            assert_eq!(wait_for(&mut events, moved).await, MoveCause::AddressGone);
            assert_eq!(local(&connection), locals[1]);
            assert_eq!(client.local_addresses(), [locals[1]]);
            restore(&namespaces);
            // It is bound again and its path is ready again.
            wait_for(&mut events, validated).await;
            assert_eq!(client.local_addresses(), locals);
            connection.move_to_address(locals[0]).unwrap();
            echo(&connection, 8, 1_000_000).await;
            assert_eq!(local(&connection), locals[0]);
        });
    };
    Namespaces::enter(&name, work).join().unwrap();
}

#[test]
fn an_interface_without_carrier_is_closed_and_reopened() {
    a_failing_interface(
        "carrier",
        |namespaces| namespaces.in_server("link set nic1 down"),
        |namespaces| {
            namespaces.in_server("link set nic1 up");
        },
    );
}

#[test]
fn an_interface_set_down_is_closed_and_reopened() {
    a_failing_interface(
        "down",
        |namespaces| namespaces.in_client("link set nic1 down"),
        |namespaces| {
            namespaces.in_client("link set nic1 up");
            namespaces.in_client("route replace 10.77.0.2 via 10.77.1.2 dev nic1 metric 1");
        },
    );
}

#[test]
fn a_removed_interface_is_closed_and_reopened() {
    a_failing_interface(
        "removed",
        |namespaces| namespaces.in_client("link delete nic1"),
        |namespaces| {
            namespaces.join("nic1", 1);
            namespaces.in_client("route replace 10.77.0.2 via 10.77.1.2 dev nic1 metric 1");
        },
    );
}

#[test]
fn the_first_recovered_interface_is_used_after_both_fail() {
    let Some(namespaces) = two_interfaces("both") else {
        return;
    };
    let server = echo_server(&namespaces);
    let name = namespaces.client.clone();
    let work = move || {
        run(async {
            let (client, connection, mut events) = on_two_interfaces(&server, false).await;
            let locals = client.local_addresses();
            namespaces.in_server("link set nic1 down");
            wait_for(&mut events, moved).await;
            namespaces.in_server("link set nic2 down");
            // Nothing can be sent for a while.
            tokio::time::sleep(Span::from_millis(300)).await;
            namespaces.in_server("link set nic1 up");
            wait_for(&mut events, moved).await;
            assert_eq!(local(&connection), locals[0]);
            echo(&connection, 3, 1_000_000).await;
        });
    };
    Namespaces::enter(&name, work).join().unwrap();
}

#[test]
fn kernel_events_and_path_monitor_together_lose_no_data() {
    let Some(namespaces) = two_interfaces("monitor") else {
        return;
    };
    let server = echo_server(&namespaces);
    let name = namespaces.client.clone();
    let work = move || {
        run(async {
            let (client, connection, mut events) = on_two_interfaces(&server, true).await;
            let locals = client.local_addresses();
            echo_disturbed(&connection, || namespaces.in_server("link set nic1 down")).await;
            // Whichever noticed it first.
            let cause = wait_for(&mut events, moved).await;
            assert!(
                matches!(cause, MoveCause::AddressGone | MoveCause::Proactive),
                "{cause}"
            );
            assert_eq!(local(&connection), locals[1]);
        });
    };
    Namespaces::enter(&name, work).join().unwrap();
}

/// The operator's setting says that the fabric carries 8972 bytes, and our own interface does not.
#[test]
fn packets_shrink_to_the_interface_mtu() {
    let Some(namespaces) = one_interface("size") else {
        return;
    };
    let server = echo_server(&namespaces);
    let name = namespaces.client.clone();
    let work = move || {
        run(async {
            let mut transport = transport();
            transport.packet_size = Some(ByteSize::from_bytes(8972));
            let builder = client(&server).transport(transport);
            let client = builder.bind("10.77.1.1:0".parse().unwrap()).unwrap();
            let connection = connected(&client).await;
            echo(&connection, 1, 1_000_000).await;
            let mtu = connection.paths()[0].snapshot.mtu;
            assert!(mtu.bytes() < 1473, "{mtu}");
        });
    };
    Namespaces::enter(&name, work).join().unwrap();
}

/// A packet size that exceeds the MTU of every interface, as an operator may set it.
fn jumbo() -> TransportConfig {
    TransportConfig {
        packet_size: Some(ByteSize::from_bytes(9000)),
        ..transport()
    }
}

fn used(connection: &Connection) -> PathSnapshot {
    connection.paths().swap_remove(0).snapshot
}

/// The client's own interfaces all carry 9000 bytes, so that the server's limit decides.
fn a_server_at_all_addresses(test: &str, bind: &'static str) {
    let Some(namespaces) = Namespaces::new(test) else {
        return;
    };
    for (name, number) in [("nic1", 1), ("nic2", 2)] {
        namespaces.join(name, number);
        namespaces.in_client(&format!("link set {name} mtu 9000"));
    }
    namespaces.in_server("link set nic2 mtu 9000");
    let server = echo_server_at(&namespaces, bind, jumbo());
    let work = move || {
        run(async {
            let builder = client(&server).transport(jumbo());
            let client = builder.bind("0.0.0.0:0".parse().unwrap()).unwrap();
            for (server, size) in [("10.77.1.2:4433", 1472), ("10.77.2.2:4433", 8972)] {
                let connection = connected_to(&client, server).await;
                echo(&connection, 1, 1_000_000).await;
                let path = used(&connection);
                let sizes = (path.mtu.bytes(), path.mtu_limit.bytes());
                assert_eq!(sizes, (size, size), "{server}");
                assert_eq!(path.black_holes, 0);
            }
        });
    };
    Namespaces::enter(&namespaces.client, work).join().unwrap();
}

#[test]
fn a_wildcard_server_uses_the_mtu_of_the_addressed_interface() {
    a_server_at_all_addresses("accepts", "0.0.0.0:4433");
}

#[test]
fn a_dual_stack_server_uses_the_mtu_of_the_addressed_interface() {
    a_server_at_all_addresses("accepts6", "[::]:4433");
}

/// The server keeps to the smaller one's MTU, as the number of its packets shows.
#[test]
fn a_client_uses_the_mtu_of_each_interface() {
    let Some(namespaces) = two_interfaces("unequal") else {
        return;
    };
    for name in ["nic1", "nic2"] {
        namespaces.in_server(&format!("link set {name} mtu 9000"));
    }
    namespaces.in_client("link set nic1 mtu 9000");
    let server = echo_server_at(&namespaces, "0.0.0.0:4433", jumbo());
    let name = namespaces.client.clone();
    let work = move || {
        run(async {
            let client = client(&server)
                .transport(jumbo())
                .interface("nic1")
                .also_at_interface("10.77.2.1:0".parse().unwrap(), "nic2")
                .bind("10.77.1.1:0".parse().unwrap())
                .unwrap();
            let connection = connected(&client).await;
            let mut events = connection.path_events();
            echo(&connection, 1, 1_000_000).await;
            let path = used(&connection);
            assert_eq!(path.mtu.bytes(), 8972);
            // The number of packets of 1472 bytes for 1,000,000 bytes.
            assert!(path.packets_received > 1_000_000 / 1472, "{path:?}");
            let both_ready = |connection: &Connection| {
                let paths = connection.paths();
                paths.iter().filter(|path| path.snapshot.validated).count() == 2
            };
            while !both_ready(&connection) {
                events.next().await.unwrap();
            }
            connection
                .move_to_address(client.local_addresses()[1])
                .unwrap();
            echo(&connection, 2, 1_000_000).await;
            assert_eq!(used(&connection).mtu.bytes(), 1472);
        });
    };
    Namespaces::enter(&name, work).join().unwrap();
    drop(namespaces);
}

/// Interfaces whose MTU shrinks in the middle of a transfer: larger packets are rejected.
fn an_interface_that_shrinks(test: &str, watched: bool, shrink: fn(&Namespaces)) {
    let Some(namespaces) = one_interface(test) else {
        return;
    };
    namespaces.in_client("link set nic1 mtu 9000");
    namespaces.in_server("link set nic1 mtu 9000");
    let server = echo_server_at(&namespaces, "0.0.0.0:4433", jumbo());
    let name = namespaces.client.clone();
    let work = move || {
        run(async {
            let builder = client(&server).transport(jumbo());
            let client = builder
                .watch_interfaces(watched)
                .bind("10.77.1.1:0".parse().unwrap())
                .unwrap();
            let connection = connected(&client).await;
            echo(&connection, 1, 1_000_000).await;
            assert_eq!(used(&connection).mtu.bytes(), 8972);
            echo_disturbed(&connection, || shrink(&namespaces)).await;
            let path = used(&connection);
            assert!(path.mtu.bytes() <= 1472, "{path:?}");
            if watched {
                assert_eq!(path.mtu_limit.bytes(), 1472)
            } else {
                assert!(path.black_holes > 0, "{path:?}")
            }
            echo(&connection, 3, 1_000_000).await;
            assert_eq!(connection.paths().len(), 1);
        });
    };
    Namespaces::enter(&name, work).join().unwrap();
}

fn shrink_client(namespaces: &Namespaces) {
    namespaces.in_client("link set nic1 mtu 1500");
}

fn shrink_both(namespaces: &Namespaces) {
    shrink_client(namespaces);
    namespaces.in_server("link set nic1 mtu 1500");
}

#[test]
fn a_connection_survives_its_own_interface_when_that_shrinks() {
    an_interface_that_shrinks("shrinks", false, shrink_client);
}

#[test]
fn a_connection_survives_both_interfaces_when_they_shrink() {
    an_interface_that_shrinks("shrink2", false, shrink_both);
}

#[test]
fn a_monitored_interface_mtu_decrease_is_followed() {
    an_interface_that_shrinks("watched", true, shrink_both);
}

/// Passive migration: the only address becomes another one in the middle of a transfer.
fn an_address_that_is_replaced(test: &str, bind: &'static str) {
    let Some(namespaces) = one_interface(test) else {
        return;
    };
    let server = echo_server(&namespaces);
    let name = namespaces.client.clone();
    let work = move || {
        run(async {
            let builder = client(&server).watch_interfaces(true);
            let client = builder.bind(bind.parse().unwrap()).unwrap();
            let connection = connected(&client).await;
            let before = local(&connection);
            assert_eq!(before.ip().to_string(), "10.77.1.1");
            let mut events = connection.path_events();
            echo_disturbed(&connection, || {
                namespaces.in_client("address del 10.77.1.1/24 dev nic1");
                namespaces.in_client("address add 10.77.1.9/24 dev nic1");
                namespaces.in_client("route add 10.77.0.2 via 10.77.1.2");
            })
            .await;
            assert_eq!(wait_for(&mut events, moved).await, MoveCause::LocalAddress);
            let after = local(&connection);
            assert_eq!(after.ip().to_string(), "10.77.1.9");
            assert_eq!(after.port(), before.port());
            // New connections begin at the new address.
            echo(&connected(&client).await, 9, 10_000).await;
        });
    };
    Namespaces::enter(&name, work).join().unwrap();
}

#[test]
fn a_client_at_one_address_follows_its_replacement() {
    an_address_that_is_replaced("specific", "10.77.1.1:0");
}

#[test]
fn a_wildcard_client_follows_its_replaced_source_address() {
    an_address_that_is_replaced("wildcard", "0.0.0.0:0");
}

#[test]
fn a_dual_stack_client_follows_its_replaced_source_address() {
    an_address_that_is_replaced("dual", "[::]:0");
}
