//! Clients that break the rules of HTTP/3, byte by byte.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::{get as on_get, post};
use bytes::Bytes;
use http_body_util::BodyExt;
use weir_net::{Connection, ReadError, RecvStream, SendStream};

use crate::support::{World, fetch, get, run, until};

const DATA: u8 = 0x0;
pub(crate) const HEADERS: u8 = 0x1;

/// GET https://localhost/ as QPACK has it without a dynamic table: RFC 9204, appendix A, and a literal
/// for the authority.
pub(crate) const GET: &[u8] = b"\0\0\xd1\xd7\x50\x09localhost\xc1";
/// POST, likewise.
const POST: &[u8] = b"\0\0\xd4\xd7\x50\x09localhost\xc1";

fn world() -> World {
    let handler = on_get(|| async { "hello" });
    World::new(Router::new().route("/", handler.merge(post(|body: Bytes| async { body }))))
}

pub(crate) fn frame(frame_type: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).unwrap() | 0x4000;
    [&[frame_type], &length.to_be_bytes()[..], payload].concat()
}

pub(crate) async fn connect(world: &World) -> Connection {
    let connection = world.connection().await;
    let mut control = connection.open_uni().await.unwrap();
    control.write_all(b"\0\x04\0").await.unwrap();
    control.flush();
    // It stays open with the connection.
    std::mem::forget(control);
    connection
}

pub(crate) async fn send(connection: &Connection, bytes: &[u8]) -> (SendStream, RecvStream) {
    let (mut send, recv) = connection.open_bi().await.unwrap();
    send.write_all(bytes).await.unwrap();
    send.flush();
    (send, recv)
}

/// The code of the connection's end.
async fn code(connection: &Connection) -> u64 {
    let error = connection.closed().await;
    error.peer_code().unwrap_or_else(|| panic!("{error}"))
}

#[test]
fn the_bytes_of_these_tests_are_a_request() {
    run(async {
        let world = world();
        let connection = connect(&world).await;
        let (mut send, mut recv) = send(&connection, &frame(HEADERS, GET)).await;
        // The server may have answered before, and then wants no more.
        let _ = send.finish();
        let answer = recv.read_to_end(1000).await.unwrap();
        assert!(answer.ends_with(b"hello"), "{answer:?}");
    });
}

#[test]
fn empty_data_frames_do_not_end_a_body() {
    run(async {
        let world = world();
        let connection = connect(&world).await;
        let request = [
            frame(HEADERS, POST),
            frame(DATA, b""),
            frame(DATA, b"hel"),
            vec![DATA, 0],
            frame(DATA, b"lo"),
        ]
        .concat();
        let (mut send, mut recv) = send(&connection, &request).await;
        // Its frame's length comes later than its type.
        send.write_all(&[DATA]).await.unwrap();
        send.flush();
        until(|| world.server.stats().requests == 1).await;
        send.write_all(&[0]).await.unwrap();
        send.finish().unwrap();
        let answer = recv.read_to_end(1000).await.unwrap();
        assert!(answer.ends_with(b"hello"), "{answer:?}");
    });
}

#[test]
fn a_slow_reader_of_small_frames_holds_its_writer() {
    run(async {
        let (read, reading) = (Arc::new(AtomicUsize::new(0)), 40);
        let counter = read.clone();
        let slow = post(move |body: axum::body::Body| async move {
            let mut body = body;
            for _ in 0..reading {
                body.frame().await.unwrap().unwrap();
                counter.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            std::future::pending::<()>().await;
        });
        let world = World::new(Router::new().route("/", slow));
        let connection = connect(&world).await;
        let (mut send, _recv) = send(&connection, &frame(HEADERS, POST)).await;
        let frames = frame(DATA, &[7; 100]).repeat(1000);
        let written = Arc::new(AtomicUsize::new(0));
        let writing = written.clone();
        let writer = tokio::spawn(async move {
            while send.write_all(&frames).await.is_ok() {
                writing.fetch_add(frames.len(), Ordering::SeqCst);
            }
        });
        until(|| read.load(Ordering::SeqCst) == reading).await;
        // Until the writer waits.
        let mut last = 0;
        while last != written.load(Ordering::SeqCst) {
            last = written.load(Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        // The buffers of the two ends, of 1 MiB each, and one read.
        assert!(last < 3_000_000, "{last}");
        writer.abort();
    });
}

#[test]
fn data_that_end_within_their_frame_are_an_error() {
    run(async {
        let world = world();
        let connection = connect(&world).await;
        let begin = [frame(HEADERS, POST), vec![DATA, 100]].concat();
        let (mut send, _recv) = send(&connection, &begin).await;
        send.write_all(&[7; 50]).await.unwrap();
        send.flush();
        until(|| world.server.stats().requests == 1).await;
        // The server may have answered before, and then wants no more.
        let _ = send.finish();
        assert_eq!(code(&connection).await, 0x106);
        assert_eq!(world.server.stats().panicked, 0);
    });
}

#[test]
fn a_header_that_is_too_large_is_answered_so() {
    run(async {
        let world = world();
        let connection = connect(&world).await;
        // A literal field with the name "x" and 70,000 bytes.
        let field = [b"\x21x\x7f\xf1\xa1\x04", &[b'y'; 70_000][..]].concat();
        let header = [GET, &field].concat();
        let length = (header.len() as u32 | 0x8000_0000).to_be_bytes();
        let request = [&[HEADERS][..], &length, &header].concat();
        let (mut send, mut recv) = send(&connection, &request).await;
        let answer = recv.read_to_end(1000).await.unwrap();
        // 431 in Huffman code (RFC 7541, appendix B).
        assert!(answer.ends_with(&[0x69, 0x90, 0xff]), "{answer:?}");
        let _ = send.finish();
        assert!(connection.error().is_none());
    });
}

#[test]
fn an_endless_header_ends_its_stream() {
    run(async {
        let world = world();
        let connection = connect(&world).await;
        let begin = [
            &[HEADERS][..],
            &(1u64 << 61 | 0xc000_0000_0000_0000).to_be_bytes(),
        ]
        .concat();
        let (mut send, mut recv) = send(&connection, &begin).await;
        assert_eq!(send.stopped().await, Ok(Some(0x107)));
        let error = recv.read_to_end(1000).await.unwrap_err();
        assert!(matches!(error, ReadError::Reset(_)), "{error}");
        // The connection goes on.
        let client = world.client().await;
        assert_eq!(fetch(&client, get("/")).await.unwrap(), "hello");
        assert!(connection.error().is_none());
    });
}

#[test]
fn an_endless_frame_on_the_control_stream_ends_the_connection() {
    run(async {
        let world = world();
        let connection = world.connection().await;
        let mut control = connection.open_uni().await.unwrap();
        let settings = [0, 4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        control.write_all(&settings).await.unwrap();
        control.flush();
        assert_eq!(code(&connection).await, 0x107);
    });
}

#[test]
fn what_ends_before_its_header_is_forgotten() {
    run(async {
        let world = world();
        let connection = connect(&world).await;
        for _ in 0..2000 {
            let (mut send, _recv) = send(&connection, &[HEADERS]).await;
            // The server may have stopped it before.
            let _ = send.reset(0x10c);
        }
        until(|| world.server.stats().malformed == 2000).await;
        let (mut send, mut recv) = send(&connection, &frame(HEADERS, GET)).await;
        // The server may have answered before, and then wants no more.
        let _ = send.finish();
        assert!(recv.read_to_end(1000).await.unwrap().ends_with(b"hello"));
    });
}

#[test]
fn a_second_control_stream_ends_the_connection() {
    run(async {
        let world = world();
        let connection = connect(&world).await;
        let mut control = connection.open_uni().await.unwrap();
        control.write_all(b"\0\x04\0").await.unwrap();
        control.flush();
        assert_eq!(code(&connection).await, 0x103);
    });
}

#[test]
fn data_before_the_header_end_the_connection() {
    run(async {
        let world = world();
        let connection = connect(&world).await;
        let _stream = send(&connection, &frame(DATA, b"x")).await;
        assert_eq!(code(&connection).await, 0x105);
    });
}
