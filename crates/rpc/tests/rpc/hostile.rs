//! Peers that do not keep to the wire format.

use bytes::Bytes;
use std::time::Duration;
use weir_net::{Connection, DeadlinePassed, Endpoint, ReadError};
use weir_quic::codec::put_varint;
use weir_rpc::wire::{
    APPLICATION_PROTOCOL, CALL_MALFORMED, FrameReader, FrameType, Limits, RequestHeader,
    ResponseStatus, WireError, put_frame,
};
use weir_rpc::{
    CallError, Channel, Code, Executed, Metadata, RequestReceiver, Server, ServerState, Status,
};

use crate::support::{
    Running, client_endpoint, client_endpoint_with, connect, loopback, run, server_endpoint, start,
    until,
};

fn server() -> Running {
    let drain = |_, mut requests: RequestReceiver| async move {
        while requests.next().await?.is_some() {}
        Ok(Bytes::new())
    };
    let builder = Server::builder().method("echo", |_, request| async { Ok::<Bytes, _>(request) });
    start(builder.client_streaming("drain", drain))
}

fn frame(frame_type: FrameType, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_frame(&mut out, frame_type, payload);
    out
}

fn header(method: &str) -> Vec<u8> {
    let header = RequestHeader {
        method: method.to_owned(),
        time_left: None,
        attempt: 1,
        metadata: Metadata::new(),
    };
    let mut payload = Vec::new();
    header.write(&mut payload);
    frame(FrameType::Header, &payload)
}

/// Returns the code in a response that is only a status, and whether it says that the call was
/// executed.
fn code_of(response: Bytes) -> (Code, bool) {
    let mut reader = FrameReader::new(Limits::default());
    reader.push(response);
    let frame = reader.next_frame().unwrap().unwrap();
    let status = ResponseStatus::read(&frame.payload, &Limits::default()).unwrap();
    (status.status.code, status.executed)
}

async fn send(connection: &Connection, stream: &[u8]) -> Result<Bytes, ReadError> {
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    // The server may stop the stream first.
    let _ = send.finish_with(Bytes::copy_from_slice(stream)).await;
    recv.read_to_end(1 << 20).await
}

#[test]
fn a_server_resets_what_is_no_call() {
    run(async {
        let server = server();
        let connection = connect(server.address).await;
        let message = frame(FrameType::Message, b"body");
        let mut endless = Vec::new();
        put_varint(&mut endless, 0);
        put_varint(&mut endless, (1 << 62) - 1);
        let malformed: Vec<Vec<u8>> = vec![
            Vec::new(),
            vec![0],
            b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            message.clone(),
            frame(FrameType::Header, b""),
            frame(FrameType::Header, b"\x01m\x00\x01\x3f"),
            [header("echo"), frame(FrameType::Status, b"")].concat(),
            [header("echo"), header("echo")].concat(),
            // No message, two messages, half a message.
            header("echo"),
            [header("echo"), message.clone(), message.clone()].concat(),
            [header("echo"), message[..3].to_vec()].concat(),
        ];
        for stream in &malformed {
            let result = send(&connection, stream).await;
            assert_eq!(result, Err(ReadError::Reset(CALL_MALFORMED)), "{stream:?}");
        }
        assert_eq!(server.server.stats().malformed, malformed.len() as u64);
        // What is too large is said to be.
        let answer = send(&connection, &endless).await.unwrap();
        assert_eq!(code_of(answer), (Code::InvalidArgument, false));
        // In a stream it ends the handler.
        let answer = send(&connection, &[header("drain"), header("drain")].concat()).await;
        assert_eq!(code_of(answer.unwrap()), (Code::InvalidArgument, true));
        // The connection goes on.
        let call = [header("echo"), message.clone()].concat();
        let answer = send(&connection, &call).await.unwrap();
        assert!(answer.starts_with(&message));
        until(|| server.server.running() == 0).await;
        assert_eq!(server.server.stats().panicked, 0);
    });
}

#[test]
fn unknown_frames_are_ignored() {
    run(async {
        let server = server();
        let connection = connect(server.address).await;
        let unknown = frame(FrameType::Unknown(77), &[0; 1000]);
        let message = frame(FrameType::Message, b"body");
        let call = [
            unknown.clone(),
            header("echo"),
            unknown.clone(),
            message.clone(),
            unknown,
        ];
        let answer = send(&connection, &call.concat()).await.unwrap();
        assert!(answer.starts_with(&message));
    });
}

#[test]
fn streams_without_a_request_keep_no_server_from_other_calls_or_its_end() {
    run(async {
        let server = server();
        let connection = connect(server.address).await;
        let mut streams = Vec::new();
        for part in [&b"\x00"[..], &header("echo")[..4], &header("echo")] {
            let (mut send, recv) = connection.open_bi().await.unwrap();
            send.write_all(part).await.unwrap();
            streams.push((send, recv));
        }
        let call = [header("echo"), frame(FrameType::Message, b"")].concat();
        send(&connection, &call).await.unwrap();
        assert_eq!(server.server.running(), 0);
        let limit = Duration::from_millis(50);
        assert_eq!(server.server.shutdown(limit).await, Err(DeadlinePassed));
        connection.closed().await;
    });
}

#[test]
fn other_application_protocols_are_not_served() {
    run(async {
        let plain = server_endpoint(loopback(), b"other");
        let address = plain.local_address();
        tokio::spawn(async move { server().server.serve(&plain).await });
        let connecting = client_endpoint_with(b"other").connect(address, "localhost");
        // The server may be quicker than this task.
        let error = match connecting.unwrap().await {
            Ok(connection) => connection.closed().await,
            Err(error) => error,
        };
        assert_eq!(error.peer_code(), Some(0x5745_0010));
        // The handshake of a channel fails.
        let channel = Channel::to_addresses([address]).server_name("localhost");
        let channel = channel.connect(&client_endpoint()).unwrap();
        let error = channel.call("echo").unary("").await.unwrap_err();
        assert!(matches!(error, CallError::NoServer(_)), "{error}");
        let channel = Channel::to_addresses([address]).server_name("localhost");
        let channel = channel.connect(&client_endpoint_with(b"other")).unwrap();
        let error = channel.call("echo").unary("").await.unwrap_err();
        assert!(error.to_string().contains("weir-rpc/1"), "{error}");
        assert!(matches!(channel.servers()[0].state, ServerState::Failed(_)));
    });
}

/// A server that answers every call with these bytes, and then the stream's end or a reset.
fn answering(answer: Vec<u8>, reset: Option<u64>) -> (Endpoint, Channel) {
    let endpoint = server_endpoint(loopback(), APPLICATION_PROTOCOL);
    let address = endpoint.local_address();
    let accepting = endpoint.clone();
    tokio::spawn(async move {
        let connection = accepting.accept().await.unwrap().await.unwrap();
        while let Ok((mut send, mut recv)) = connection.accept_bi().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let _ = recv.read_to_end(1 << 20).await;
                let _ = send.write_all(&answer).await;
                let _ = match reset {
                    Some(code) => send.reset(code),
                    None => send.finish(),
                };
                let _ = send.stopped().await;
            });
        }
    });
    let channel = Channel::to_addresses([address]).server_name("localhost");
    (endpoint, channel.connect(&client_endpoint()).unwrap())
}

fn status(code: Code, executed: bool) -> Vec<u8> {
    let mut payload = Vec::new();
    let status = Status::new(code, "");
    ResponseStatus { executed, status }.write(&mut payload);
    frame(FrameType::Status, &payload)
}

#[test]
fn a_channel_reports_what_is_no_response() {
    run(async {
        let message = frame(FrameType::Message, b"body");
        let ok = status(Code::Ok, true);
        let cases = [
            (Vec::new(), WireError::Truncated),
            (vec![1, 10, 0], WireError::Truncated),
            (message.clone(), WireError::Truncated),
            (ok.clone(), WireError::Truncated),
            (header("echo"), WireError::Misplaced(FrameType::Header)),
            (
                [message.clone(), message.clone(), ok.clone()].concat(),
                WireError::Misplaced(FrameType::Message),
            ),
            (frame(FrameType::Status, b"\x00\x02"), WireError::Value(2)),
        ];
        for (answer, error) in cases {
            let (_endpoint, channel) = answering(answer, None);
            let result = channel.call("echo").idempotent().unary("").await;
            assert_eq!(result, Err(CallError::Malformed(error)));
        }
        let (_endpoint, channel) = answering(Vec::new(), Some(99));
        let error = channel.call("echo").unary("").await.unwrap_err();
        assert_eq!(
            (&error, error.executed()),
            (&CallError::Reset(99), Executed::Maybe)
        );
        // Whoever has sent a message has begun.
        let contradiction = [message, status(Code::Unavailable, false)].concat();
        let (_endpoint, channel) = answering(contradiction, None);
        let error = channel.call("echo").unary("").await.unwrap_err();
        assert_eq!(error.executed(), Executed::Yes);
    });
}

#[test]
fn a_server_that_refuses_for_ever_ends_the_attempts() {
    run(async {
        let (_endpoint, channel) = answering(status(Code::Unavailable, false), None);
        let error = channel.call("echo").unary("").await.unwrap_err();
        assert_eq!(
            (error.code(), error.executed()),
            (Code::Unavailable, Executed::No)
        );
        assert_eq!(channel.stats().retries, 3);
    });
}
