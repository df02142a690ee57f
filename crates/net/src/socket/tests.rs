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
    Socket::bind(&bind_address, wanted).unwrap()
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
async fn a_batch_that_the_kernel_does_not_take_apart_goes_one_by_one() {
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
async fn a_batch_for_which_there_is_no_way_is_a_loss() {
    let socket = socket();
    // No route leads there from a loopback address: EINVAL for the batch and for the first of it.
    let nowhere = "192.0.2.1:9".parse().unwrap();
    let contents = vec![0; TOO_MANY * SEGMENT];
    assert_eq!(socket.send(&batch(nowhere, &contents), &contents), Ok(()));
}

#[tokio::test]
async fn what_is_for_port_zero_spoils_nothing() {
    let socket = socket();
    let before = socket.max_datagrams();
    let contents = vec![0; 3 * SEGMENT];
    let remote = "127.0.0.1:0".parse().unwrap();
    assert_eq!(socket.send(&batch(remote, &contents), &contents), Ok(()));
    assert_eq!(socket.max_datagrams(), before);
}

#[test]
fn only_a_full_socket_and_a_size_are_more_than_a_loss() {
    let remote = "192.0.2.1:9".parse().unwrap();
    let refused = |code| not_sent(&io::Error::from_raw_os_error(code), remote);
    assert_eq!(refused(libc::EMSGSIZE), Err(SendError::TooLarge));
    assert_eq!(refused(libc::EAGAIN), Err(SendError::Full));
    for code in [libc::EINVAL, libc::EIO, libc::EPERM, libc::ENETUNREACH] {
        assert_eq!(refused(code), Ok(()));
    }
}
