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

#[tokio::test]
async fn a_batch_refused_by_gso_is_sent_datagram_by_datagram() {
    let socket = socket();
    if socket.max_datagrams() == 1 {
        eprintln!("SKIPPED: this kernel takes no batch apart");
        return;
    }
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver
        .set_read_timeout(Some(Span::from_secs(20)))
        .unwrap();
    let remote = receiver.local_addr().unwrap();
    // The last one is shorter.
    let length = TOO_MANY * SEGMENT - 30;
    let contents: Vec<u8> = (0..length).map(|at| (at / SEGMENT) as u8).collect();
    // The second round skips the method that failed.
    for round in 0..2 {
        assert_eq!(socket.send(&batch(remote, &contents), &contents), Ok(()));
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
    assert_eq!(socket.send(&batch(nowhere, &contents), &contents), Ok(()));
}

#[tokio::test]
async fn a_send_to_port_zero_does_not_disable_gso() {
    let socket = socket();
    let before = socket.max_datagrams();
    let contents = vec![0; 3 * SEGMENT];
    let remote = "127.0.0.1:0".parse().unwrap();
    assert_eq!(socket.send(&batch(remote, &contents), &contents), Ok(()));
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
