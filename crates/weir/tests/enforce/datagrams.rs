//! Numbered datagrams, which show whether frames are doubled or lost.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use crate::namespace::Namespace;

/// A datagram each half millisecond.
const PAUSE: Duration = Duration::from_micros(500);

/// Numbered datagrams on their way from one namespace to another.
pub(crate) struct Datagrams {
    stop: Arc<AtomicBool>,
    received: Arc<AtomicU32>,
    sender: JoinHandle<u32>,
    receiver: JoinHandle<Vec<u32>>,
}

/// What became of the datagrams.
#[derive(Debug)]
pub(crate) struct Fate {
    pub(crate) sent: usize,
    pub(crate) lost: usize,
    pub(crate) doubled: usize,
}

impl Datagrams {
    /// Sends them to an address, which may be that of all hosts.
    pub(crate) fn start([from, to]: [&Namespace; 2], address: (Ipv4Addr, u16)) -> Self {
        let (_, port) = address;
        let (stop, received) = (Arc::<AtomicBool>::default(), Arc::<AtomicU32>::default());
        let incoming = to.run(move || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).unwrap());
        let outgoing = from.run(move || {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
            socket.set_broadcast(true).unwrap();
            socket.connect(address).unwrap();
            socket
        });
        // Longer than what an enforcer may take to send what has waited.
        incoming
            .set_read_timeout(Some(Duration::from_secs(2)))
            .unwrap();
        let (stopped, count) = (stop.clone(), received.clone());
        Self {
            stop,
            received,
            sender: std::thread::spawn(move || send(&outgoing, &stopped)),
            receiver: std::thread::spawn(move || receive(&incoming, &count)),
        }
    }

    /// Returns whether datagrams pass: before the first, the ends look for each other.
    pub(crate) fn pass(&self) -> bool {
        self.received.load(Ordering::Relaxed) > 0
    }

    /// Stops the sender, and waits for the last datagrams.
    pub(crate) fn end(self) -> Fate {
        self.stop.store(true, Ordering::Relaxed);
        let sent = self.sender.join().unwrap() as usize;
        let mut received = self.receiver.join().unwrap();
        received.sort_unstable();
        let all = received.len();
        received.dedup();
        Fate {
            sent,
            lost: sent - received.len(),
            doubled: all - received.len(),
        }
    }
}

/// Returns how many datagrams were sent.
fn send(to: &UdpSocket, stop: &AtomicBool) -> u32 {
    let mut number = 0_u32;
    while !stop.load(Ordering::Relaxed) {
        to.send(&number.to_ne_bytes()).unwrap();
        number += 1;
        sleep(PAUSE);
    }
    number
}

fn receive(from: &UdpSocket, count: &AtomicU32) -> Vec<u32> {
    let (mut buffer, mut numbers) = ([0; 4], Vec::new());
    while from.recv(&mut buffer).is_ok() {
        numbers.push(u32::from_ne_bytes(buffer));
        count.fetch_add(1, Ordering::Relaxed);
    }
    numbers
}
