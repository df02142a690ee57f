use std::time::Duration as Span;

use weir_wire::Ecn;

use super::*;

/// More than the kernel segments (`UDP_MAX_SEGMENTS`): it fails with EINVAL.
const TOO_MANY: usize = 150;
const SEGMENT: usize = 100;

fn socket() -> Socket {
    let buffer = ByteSize::from_mib(1);
    let bind_address = BindAddress {
        address: "127.0.0.1:0".parse().unwrap(),
        interface: None,
    };
    let wanted = SocketBuffers {
        receive: buffer,
        send: buffer,
    };
    Socket::bind(&bind_address, SocketOptions::new(wanted)).unwrap()
}

fn batch(remote: SocketAddr, contents: &[u8]) -> Transmit {
    Transmit {
        remote,
        local: None,
        ecn: Ecn::NotEct,
        size: contents.len(),
        segment_size: Some(SEGMENT),
    }
}

/// Returns the contents in one place, and in several that end elsewhere than the datagrams.
fn in_both_ways(contents: &[u8]) -> [BatchContents<'_>; 2] {
    let parts = contents.chunks(33).map(IoSlice::new).collect();
    [BatchContents::Whole(contents), BatchContents::Parts(parts)]
}

fn receiver() -> (UdpSocket, SocketAddr) {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let patience = Some(Span::from_secs(20));
    receiver.set_read_timeout(patience).unwrap();
    let address = receiver.local_addr().unwrap();
    (receiver, address)
}

#[tokio::test]
async fn a_batch_arrives_as_datagrams_wherever_its_contents_lie() {
    let socket = socket();
    let (receiver, remote) = receiver();
    let contents: Vec<u8> = (0..3 * SEGMENT - 30).map(|at| at as u8).collect();
    for way in in_both_ways(&contents) {
        assert_eq!(socket.send(&batch(remote, &contents), &way), Ok(()));
        for expected in contents.chunks(SEGMENT) {
            let mut received = [0; 2 * SEGMENT];
            let length = receiver.recv(&mut received).unwrap();
            assert_eq!(&received[..length], expected);
        }
    }
}

#[tokio::test]
async fn a_batch_refused_by_gso_is_sent_datagram_by_datagram() {
    let socket = socket();
    if socket.max_datagrams() == 1 {
        eprintln!("SKIPPED: this kernel takes no batch apart");
        return;
    }
    let (receiver, remote) = receiver();
    // The last one is shorter.
    let length = TOO_MANY * SEGMENT - 30;
    let contents: Vec<u8> = (0..length).map(|at| (at / SEGMENT) as u8).collect();
    let [whole, parts] = in_both_ways(&contents);
    // The second round skips the method that failed.
    for (round, way) in [&whole, &whole, &parts].into_iter().enumerate() {
        assert_eq!(socket.send(&batch(remote, &contents), way), Ok(()));
        assert_eq!(socket.max_datagrams(), 1, "round {round}: no refusal");
        for expected in contents.chunks(SEGMENT) {
            let mut received = [0; 2 * SEGMENT];
            let length = receiver.recv(&mut received).unwrap();
            assert_eq!(&received[..length], expected);
        }
    }
}

#[tokio::test]
async fn a_batch_without_a_route_counts_as_lost() {
    let socket = socket();
    // No route leads there from a loopback address: EINVAL for the batch and for the first of it.
    let nowhere = "192.0.2.1:9".parse().unwrap();
    let contents = vec![0; TOO_MANY * SEGMENT];
    for way in in_both_ways(&contents) {
        assert_eq!(socket.send(&batch(nowhere, &contents), &way), Ok(()));
    }
}

#[tokio::test]
async fn a_send_to_port_zero_does_not_disable_gso() {
    let socket = socket();
    let before = socket.max_datagrams();
    let contents = vec![0; 3 * SEGMENT];
    let remote = "127.0.0.1:0".parse().unwrap();
    for way in in_both_ways(&contents) {
        assert_eq!(socket.send(&batch(remote, &contents), &way), Ok(()));
    }
    assert_eq!(socket.max_datagrams(), before);
}

#[test]
fn only_eagain_and_emsgsize_are_send_errors() {
    let remote = "192.0.2.1:9".parse().unwrap();
    let refused = |code| not_sent(&io::Error::from_raw_os_error(code), remote);
    assert_eq!(refused(libc::EMSGSIZE), Err(SendError::TooLarge));
    assert_eq!(refused(libc::EAGAIN), Err(SendError::Full));
    for code in [libc::EINVAL, libc::EIO, libc::EPERM, libc::ENETUNREACH] {
        assert_eq!(refused(code), Ok(()));
    }
}
