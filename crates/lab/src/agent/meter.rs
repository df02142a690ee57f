//! What a flow achieves, counted while it goes on.
//!
//! A meter has the flow's own counts and, of each of its connections, a [`Probe`] that asks the
//! transport. What a connection counted is kept when it closes.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_counters::FlowCounters;
use weir_net::dcudp::DcudpWatch;
use weir_net::{Connection, KernelTcpInfo};
use weir_units::{ByteSize, Duration, Time};

use crate::control::{Completion, FlowFailure, FlowOutcome, FlowSample};

/// The counts of one end of a flow, or of one of its arrivals.
#[derive(Debug, Default)]
pub(super) struct Meter {
    delivered: AtomicU64,
    /// Where what is counted here is counted too.
    whole: Option<Arc<Meter>>,
    books: Mutex<Books>,
}

/// What is counted seldom.
#[derive(Debug, Default)]
struct Books {
    outcome: FlowOutcome,
    /// Of connections that are closed.
    closed: FlowCounters,
    path: Path,
    open: Vec<Arc<Probe>>,
}

/// What transports know of a path.
#[derive(Clone, Copy, Debug, Default)]
struct Path {
    smoothed_rtt: Option<Duration>,
    min_rtt: Option<Duration>,
    window: Option<ByteSize>,
}

/// Asks a transport about a connection.
#[derive(Debug)]
pub(super) enum Probe {
    /// A descriptor of the connection's own.
    Tcp(OwnedFd),
    Quic(Connection),
    Dcudp(DcudpWatch),
}

/// A connection that is watched until this is dropped.
#[derive(Debug)]
pub(super) struct Watch {
    meter: Arc<Meter>,
    probe: Arc<Probe>,
}

impl Meter {
    /// The meter of a part of the flow.
    pub(super) fn part_of(whole: &Arc<Self>) -> Arc<Self> {
        Arc::new(Self {
            whole: Some(whole.clone()),
            ..Self::default()
        })
    }

    /// Bytes have arrived at the application.
    pub(super) fn count_delivered(&self, bytes: u64) {
        self.each(|meter| {
            meter.delivered.fetch_add(bytes, Ordering::Relaxed);
        });
    }

    /// Datagrams were sent, or have arrived: so many of them with a CE mark.
    pub(super) fn count_datagrams(&self, count: u64, marked: u64) {
        let mut books = self.books();
        books.outcome.datagrams += count;
        books.closed.marks += marked;
    }

    /// What was asked for has arrived.
    pub(super) fn complete(&self, at: Time, took: Duration) {
        self.books()
            .outcome
            .completions
            .push(Completion { at, took });
    }

    /// Changes what will be reported of this part of the flow.
    pub(super) fn note(&self, change: impl FnOnce(&mut FlowOutcome)) {
        change(&mut self.books().outcome);
    }

    /// Why the flow ends before its time; the first reason counts.
    pub(super) fn fail(&self, failure: FlowFailure) {
        self.note(|outcome| {
            outcome.failure.get_or_insert(failure);
        });
    }

    /// Watches a connection that is open.
    pub(super) fn watch(self: &Arc<Self>, probe: Probe) -> Watch {
        let probe = Arc::new(probe);
        self.each(|meter| {
            let mut books = meter.books();
            books.outcome.connections += 1;
            books.open.push(probe.clone());
        });
        Watch {
            meter: self.clone(),
            probe,
        }
    }

    /// How things stand.
    pub(super) fn sample(&self, flow: u64) -> FlowSample {
        let books = self.books();
        let (counters, path) = books.sum();
        FlowSample {
            flow,
            counters: self.counted(counters),
            window: path.window,
        }
    }

    /// What is to be reported at the end.
    pub(super) fn outcome(&self) -> FlowOutcome {
        let mut books = self.books();
        let (counters, path) = books.sum();
        let outcome = std::mem::take(&mut books.outcome);
        FlowOutcome {
            counters: self.counted(counters),
            smoothed_rtt: path.smoothed_rtt,
            min_rtt: path.min_rtt,
            ..outcome
        }
    }

    /// What transports counted, with what arrived at the application.
    fn counted(&self, counters: FlowCounters) -> FlowCounters {
        FlowCounters {
            delivered: ByteSize::from_bytes(self.delivered.load(Ordering::Relaxed)),
            ..counters
        }
    }

    /// This meter, and the one that it is a part of.
    fn each(&self, mut act: impl FnMut(&Self)) {
        act(self);
        if let Some(whole) = &self.whole {
            act(whole);
        }
    }

    fn close(&self, probe: &Arc<Probe>, counters: FlowCounters, path: Path) {
        let mut books = self.books();
        books.open.retain(|open| !Arc::ptr_eq(open, probe));
        books.closed += counters;
        books.path.take(path);
        // Its connection is gone, and with it its window.
        books.path.window = None;
    }

    /// Nothing that holds the lock can panic.
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Books {
    /// All connections together; the window is the mean of those that are open.
    fn sum(&self) -> (FlowCounters, Path) {
        let (mut counters, mut path) = (self.closed, self.path);
        let (mut windows, mut count) = (0, 0);
        for (of_one, way) in self.open.iter().filter_map(|probe| probe.ask()) {
            counters += of_one;
            path.take(way);
            windows += way.window.map_or(0, ByteSize::bytes);
            count += u64::from(way.window.is_some());
        }
        path.window = windows.checked_div(count).map(ByteSize::from_bytes);
        (counters, path)
    }
}

impl Path {
    /// Takes what a connection knows that is as old or younger.
    fn take(&mut self, other: Self) {
        self.smoothed_rtt = other.smoothed_rtt.or(self.smoothed_rtt);
        self.min_rtt = self.min_rtt.into_iter().chain(other.min_rtt).min();
        self.window = other.window;
    }
}

impl Probe {
    fn ask(&self) -> Option<(FlowCounters, Path)> {
        match self {
            Self::Tcp(socket) => KernelTcpInfo::of(socket).ok().map(of_tcp),
            Self::Quic(connection) => Some(of_quic(connection)),
            Self::Dcudp(connection) => Some(of_dcudp(connection)),
        }
    }
}

fn of_tcp(info: KernelTcpInfo) -> (FlowCounters, Path) {
    let path = Path {
        smoothed_rtt: Some(info.smoothed_rtt).filter(|rtt| !rtt.is_zero()),
        min_rtt: info.min_rtt,
        window: Some(info.cwnd),
    };
    (info.flow_counters(), path)
}

fn of_quic(connection: &Connection) -> (FlowCounters, Path) {
    let stats = connection.stats();
    let path = stats.paths.first().map(|path| Path {
        smoothed_rtt: Some(path.smoothed_rtt),
        min_rtt: Some(path.min_rtt),
        window: Some(path.window),
    });
    (stats.flow_counters(), path.unwrap_or_default())
}

fn of_dcudp(connection: &DcudpWatch) -> (FlowCounters, Path) {
    let stats = connection.stats();
    // It sends at a rate, without a window.
    let path = Path {
        smoothed_rtt: Some(stats.smoothed_rtt),
        min_rtt: Some(stats.min_rtt),
        window: None,
    };
    (stats.flow, path)
}

impl Drop for Watch {
    fn drop(&mut self) {
        let (counters, path) = self.probe.ask().unwrap_or_default();
        self.meter
            .each(|meter| meter.close(&self.probe, counters, path));
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn probe() -> (Probe, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        (Probe::Tcp(stream.into()), accepted)
    }

    #[test]
    fn a_part_counts_for_the_whole() {
        let whole = Arc::new(Meter::default());
        let part = Meter::part_of(&whole);
        part.count_delivered(5);
        whole.count_delivered(2);
        let (probe, _peer) = probe();
        let watch = part.watch(probe);
        assert!(whole.sample(7).window.is_some());
        drop(watch);
        assert_eq!(whole.sample(7).window, None);
        assert_eq!(whole.sample(7).counters.delivered, ByteSize::from_bytes(7));
        let outcome = part.outcome();
        assert_eq!(outcome.counters.delivered, ByteSize::from_bytes(5));
        assert_eq!((outcome.connections, whole.outcome().connections), (1, 1));
    }

    #[test]
    fn the_first_reason_of_a_failure_counts() {
        let meter = Meter::default();
        let failure = |problem: &str| FlowFailure::Order {
            problem: problem.to_owned(),
        };
        meter.fail(failure("first"));
        meter.fail(failure("second"));
        meter.complete(Time::from_nanos(9), Duration::from_nanos(4));
        let outcome = meter.outcome();
        assert_eq!(outcome.failure, Some(failure("first")));
        assert_eq!(outcome.completions.len(), 1);
    }
}
