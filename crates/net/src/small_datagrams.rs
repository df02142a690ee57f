//! Small datagrams of several connections to the same address, sent together.
//!
//! Many connections between two hosts acknowledge at the same time: at the end of a receive batch, or at
//! the kernel's tick. An ACK has some 35 bytes, and a send costs 5 µs; segmentation offload sends up to 64
//! of them at once.

use weir_wire::{BatchContents, Transmit};

use crate::sockets::{SendSocket, Sockets};

/// The largest datagram that waits for others, in bytes of UDP payload.
const LARGEST: usize = 64;

/// Datagrams that wait for the end of the driver's turn. Where the socket is full they count as lost.
#[derive(Default)]
pub(crate) struct SmallDatagrams {
    socket: SendSocket,
    batch: Option<Transmit>,
    contents: Vec<u8>,
    count: usize,
}

impl SmallDatagrams {
    /// Takes a datagram; returns `false` for a batch or a datagram that is not small.
    pub(crate) fn take(&mut self, sockets: &Sockets, transmit: &Transmit, contents: &[u8]) -> bool {
        if transmit.segment_size.is_some() || transmit.size > LARGEST {
            return false;
        }
        if !self.accepts(sockets, transmit) {
            self.flush(sockets);
        }
        let batch = self.batch.get_or_insert(Transmit {
            size: 0,
            ..*transmit
        });
        let segment = match batch.segment_size {
            Some(segment) => segment,
            None if batch.size == 0 => transmit.size,
            None => *batch.segment_size.insert(batch.size),
        };
        batch.size += transmit.size;
        self.count += 1;
        self.contents.extend_from_slice(contents);
        if transmit.size < segment {
            // Only the last segment may be shorter.
            self.flush(sockets);
        }
        true
    }

    /// Sends what waits.
    pub(crate) fn flush(&mut self, sockets: &Sockets) {
        let contents = BatchContents::Whole(&self.contents);
        if let Some(batch) = self.batch.take()
            && self.socket.send(sockets, &batch, &contents).is_err()
        {
            tracing::debug!(remote = %batch.remote, "small datagrams could not be sent");
        }
        // A closed socket must not stay open for it.
        self.socket.forget();
        self.contents.clear();
        self.count = 0;
    }

    /// Whether a datagram can be a segment of the waiting batch.
    fn accepts(&self, sockets: &Sockets, transmit: &Transmit) -> bool {
        self.batch.as_ref().is_none_or(|batch| {
            batch.remote == transmit.remote
                && batch.local == transmit.local
                && batch.ecn == transmit.ecn
                && transmit.size <= batch.segment_size.unwrap_or(batch.size)
                && self.count < self.socket.max_datagrams(sockets)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, UdpSocket};
    use std::time::Duration;

    use weir_units::ByteSize;
    use weir_wire::Ecn;

    use super::*;
    use crate::socket::{BindAddress, SocketBuffers, SocketOptions};

    fn receiver() -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let patience = Some(Duration::from_secs(20));
        socket.set_read_timeout(patience).unwrap();
        let address = socket.local_addr().unwrap();
        (socket, address)
    }

    fn sockets() -> Sockets {
        let buffer = ByteSize::from_mib(1);
        let address = BindAddress {
            address: "127.0.0.1:0".parse().unwrap(),
            interface: None,
        };
        let buffers = SocketBuffers {
            receive: buffer,
            send: buffer,
        };
        Sockets::bind(vec![address], SocketOptions::new(buffers)).unwrap()
    }

    #[tokio::test]
    async fn datagrams_arrive_one_by_one_and_in_order() {
        let sockets = sockets();
        let receivers = [receiver(), receiver()];
        let mut small = SmallDatagrams::default();
        // A shorter one ends a batch, a longer one and another receiver begin the next.
        let mut sent: Vec<(usize, Ecn, Vec<u8>)> = Vec::new();
        for (number, (to, size)) in [
            (0, 35),
            (0, 35),
            (0, 30),
            (0, 30),
            (0, 40),
            (1, 40),
            (0, 40),
        ]
        .into_iter()
        .enumerate()
        {
            sent.push((to, Ecn::Ect0, vec![number as u8; size]));
        }
        sent.push((0, Ecn::NotEct, vec![100; 40]));
        sent.extend((0..200).map(|number| (1, Ecn::Ect0, vec![number; 34])));
        for (to, ecn, contents) in &sent {
            let transmit = Transmit {
                remote: receivers[*to].1,
                local: None,
                ecn: *ecn,
                size: contents.len(),
                segment_size: None,
            };
            assert!(small.take(&sockets, &transmit, contents));
        }
        small.flush(&sockets);
        for (index, (receiver, _)) in receivers.iter().enumerate() {
            for (_, _, contents) in sent.iter().filter(|(to, ..)| *to == index) {
                let mut buffer = [0; 100];
                let length = receiver.recv(&mut buffer).unwrap();
                assert_eq!(&buffer[..length], contents);
            }
        }
    }

    #[tokio::test]
    async fn batches_and_larger_datagrams_are_left_to_the_connection() {
        let sockets = sockets();
        let mut small = SmallDatagrams::default();
        let (_receiver, remote) = receiver();
        for (size, segment_size) in [(LARGEST + 1, None), (60, Some(30))] {
            let transmit = Transmit {
                remote,
                local: None,
                ecn: Ecn::Ect0,
                size,
                segment_size,
            };
            assert!(!small.take(&sockets, &transmit, &vec![0; size]));
        }
    }
}
