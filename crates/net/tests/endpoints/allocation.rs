//! Connections whose streams have deadlines, with an allocator that caps their cwnd.

use std::fmt;
use std::sync::{Arc, Mutex};

use crate::support::{self, connect, pattern, run, server, transport};
use weir_net::tls::ClientTls;
use weir_net::{ByteSize, Connection, Duration, Endpoint};
use weir_sed::{Allocator, Allowance, AllowanceCallback, Demand, SenderFlow};
use weir_wire::FlowKey;

/// The reports of a flow.
#[derive(Clone, Default)]
struct FlowReports {
    flow: Option<FlowKey>,
    segment: u32,
    hear: Option<AllowanceCallback>,
    demands: Vec<Demand>,
    acknowledged: u64,
    is_over: bool,
}

/// Records flows; it makes no decision by itself.
#[derive(Clone, Default)]
struct RecordingAllocator(Arc<Mutex<Vec<FlowReports>>>);

impl fmt::Debug for RecordingAllocator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RecordingAllocator")
    }
}

#[derive(Debug)]
struct Entry(RecordingAllocator, usize);

impl RecordingAllocator {
    fn flows(&self) -> Vec<FlowReports> {
        self.0.lock().unwrap().clone()
    }

    fn send_allowance(&self, number: usize, allowance: Allowance) {
        let hear = self.flows()[number].hear.clone().unwrap();
        hear(allowance);
    }

    fn change(&self, number: usize, change: impl FnOnce(&mut FlowReports)) {
        change(&mut self.0.lock().unwrap()[number]);
    }
}

impl Allocator for RecordingAllocator {
    fn open(&self, flow: FlowKey, segment: u32, hear: AllowanceCallback) -> Box<dyn SenderFlow> {
        let mut flows = self.0.lock().unwrap();
        flows.push(FlowReports {
            flow: Some(flow),
            segment,
            hear: Some(hear),
            ..FlowReports::default()
        });
        Box::new(Entry(self.clone(), flows.len() - 1))
    }
}

impl SenderFlow for Entry {
    fn demand(&self, demand: Demand) {
        self.0.change(self.1, |flow| flow.demands.push(demand));
    }

    fn acknowledged(&self, bytes: u64) {
        self.0.change(self.1, |flow| flow.acknowledged = bytes);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.0.change(self.1, |flow| flow.is_over = true);
    }
}

fn at_most(window: u64, lease: Duration) -> Allowance {
    let window = ByteSize::from_bytes(window);
    Allowance::AtMost { window, lease }
}

const LONG: Duration = Duration::from_secs(1000);

fn window(connection: &Connection) -> u64 {
    connection.stats().paths[0].window.bytes()
}

/// A client with `allocator` as its allocator, connected to a server.
async fn connected_with_allocator(allocator: &RecordingAllocator) -> support::Pair {
    let (server_endpoint, fingerprint) = server();
    let tls = ClientTls::pinned(fingerprint).build().unwrap();
    let client = Endpoint::builder()
        .transport(transport())
        .client(tls)
        .allocator(Arc::new(allocator.clone()))
        .bind(support::loopback())
        .unwrap();
    connect(client, server_endpoint).await
}

#[test]
fn an_allowed_window_limits_stops_and_resumes_the_stream() {
    run(async {
        let allocator = RecordingAllocator::default();
        let pair = connected_with_allocator(&allocator).await;
        let size = 1_000_000;
        let data = pattern(1, size);
        let mut send = pair.client.open_uni().await.unwrap();
        assert_eq!(allocator.flows().len(), 0);
        let within = Duration::from_secs(5);
        send.set_deadline(Some((ByteSize::from_bytes(size as u64), within)));
        let reports = allocator.flows().remove(0);
        let flow = reports.flow.unwrap();
        assert_eq!(
            flow.source_port,
            pair.client_endpoint.local_address().port()
        );
        assert_eq!(
            flow.destination_port,
            pair.server_endpoint.local_address().port()
        );
        assert_eq!((flow.protocol, flow.source), (17, [127, 0, 0, 1].into()));
        assert!(reports.segment >= 1200);
        assert_eq!(reports.demands[0].size.bytes(), size as u64);
        assert!(reports.demands[0].within <= within);

        // The sender transmits none of the megabyte while the window is zero.
        allocator.send_allowance(0, at_most(0, LONG));
        assert_eq!(window(&pair.client), 0);
        let server = pair.server.clone();
        let receiving = tokio::spawn(async move {
            let mut recv = server.accept_uni().await.unwrap();
            recv.read_to_end(size).await.unwrap()
        });
        let sent = data.clone();
        let sending = tokio::spawn(async move {
            send.write_all(&sent).await.unwrap();
            send.finish().unwrap();
            send.acknowledged().await.unwrap();
        });
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        assert_eq!(allocator.flows()[0].acknowledged, 0);
        assert!(!receiving.is_finished());
        // With a small window all of it arrives, and no more than the window is ever in flight, except for
        // the two packets of each probe timeout, which ignore the window (RFC 9002, section 7.5).
        let probe_timeouts = pair.client.stats().probe_timeouts;
        allocator.send_allowance(0, at_most(6_000, LONG));
        assert_eq!(window(&pair.client), 6_000);
        while !sending.is_finished() {
            let stats = pair.client.stats();
            let probes = 2 * (stats.probe_timeouts - probe_timeouts);
            let in_flight = stats.paths[0].in_flight.bytes();
            assert!(
                in_flight <= 6_000 + probes * u64::from(reports.segment),
                "{in_flight}"
            );
            tokio::time::sleep(std::time::Duration::from_micros(200)).await;
        }
        sending.await.unwrap();
        assert_eq!(receiving.await.unwrap(), data);
        let flow = allocator.flows().remove(0);
        assert_eq!((flow.acknowledged, flow.is_over), (size as u64, true));
        // Without deadlines the connection ignores allowances and uses its own cwnd again.
        assert!(window(&pair.client) > 6_000);
        allocator.send_allowance(0, at_most(0, LONG));
        assert!(window(&pair.client) > 6_000);
    });
}

#[test]
fn a_window_holds_for_its_lease_and_no_longer() {
    run(async {
        let allocator = RecordingAllocator::default();
        let pair = connected_with_allocator(&allocator).await;
        let mut send = pair.client.open_uni().await.unwrap();
        let demand = (ByteSize::from_bytes(100_000), Duration::from_secs(5));
        send.set_deadline(Some(demand));
        allocator.send_allowance(0, at_most(0, Duration::from_millis(200)));
        assert_eq!(window(&pair.client), 0);
        // No further allowance: the lease expires, and the transfer goes on.
        let data = pattern(2, 100_000);
        let receiving = async {
            let mut recv = pair.server.accept_uni().await.unwrap();
            recv.read_to_end(100_000).await.unwrap()
        };
        let (sent, received) = tokio::join!(send.finish_with(data.clone()), receiving);
        sent.unwrap();
        assert_eq!(received, data);
        assert!(window(&pair.client) > 0);
    });
}

#[test]
fn the_demand_combines_the_deadlines_of_all_streams() {
    run(async {
        let allocator = RecordingAllocator::default();
        let pair = connected_with_allocator(&allocator).await;
        let last = |allocator: &RecordingAllocator| *allocator.flows()[0].demands.last().unwrap();
        let mut first = pair.client.open_uni().await.unwrap();
        let mut second = pair.client.open_uni().await.unwrap();
        let size = ByteSize::from_bytes;
        first.set_deadline(Some((size(1_000_000), Duration::from_secs(100))));
        second.set_deadline(Some((size(1_000), Duration::from_secs(50))));
        // Both together ask for a higher rate than the second alone.
        assert_eq!(last(&allocator).size.bytes(), 1_001_000);
        second.set_deadline(Some((size(1_000), Duration::from_millis(1))));
        assert_eq!(last(&allocator).size.bytes(), 1_000);
        second.set_deadline(None);
        assert_eq!(last(&allocator).size.bytes(), 1_000_000);
        assert!(!allocator.flows()[0].is_over);
        // A stream that is dropped has no deadline any more.
        drop(first);
        pair.client.close(0, b"");
        pair.client.closed().await;
        assert_eq!(allocator.flows().len(), 1);
        assert!(allocator.flows()[0].is_over);
    });
}
