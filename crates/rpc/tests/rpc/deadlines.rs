//! Deadlines: at the client, at the server, and across a hop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use weir_net::rpc::CALL_DEADLINE;
use weir_rpc::wire::{FrameType, RequestHeader, put_frame};
use weir_rpc::{CallError, Channel, Code, Context, Executed, Metadata, Server, Status};

use crate::support::{
    channel, client_endpoint, connect, loopback, ready, run, server_endpoint, start, until,
};

async fn hang(_: Context, _: Bytes) -> Result<Bytes, Status> {
    std::future::pending().await
}

#[test]
fn a_deadline_ends_a_call_on_both_sides() {
    run(async {
        let server = start(Server::builder().method("hang", hang));
        let span = Duration::from_millis(20);
        let channel = channel(&server);
        ready(&channel, 1).await;
        let call = channel.call("hang").deadline(span);
        let error = call.unary("").await.unwrap_err();
        // Either end may be the first.
        assert_eq!(error.code(), Code::DeadlineExceeded);
        let is_executed = server.server.stats().executed == 1;
        assert!(!is_executed || error.executed() != Executed::No, "{error}");
        until(|| server.server.running() == 0).await;
    });
}

#[test]
fn a_deadline_that_has_passed_sends_nothing() {
    run(async {
        let server = start(Server::builder().method("hang", hang));
        let call = channel(&server).call("hang").deadline(Duration::ZERO);
        let error = call.unary("").await.unwrap_err();
        assert!(matches!(error, CallError::DeadlinePassed { .. }));
        assert_eq!(error.executed(), Executed::No);
        assert_eq!(server.server.stats(), Default::default());
    });
}

#[test]
fn the_server_enforces_the_deadline_of_a_client_that_does_not() {
    run(async {
        let server = start(Server::builder().method("hang", hang));
        let connection = connect(server.address).await;
        let (mut send, mut recv) = connection.open_bi().await.unwrap();
        let header = RequestHeader {
            method: "hang".to_owned(),
            time_left: Some(Duration::from_millis(5).into()),
            attempt: 1,
            metadata: Metadata::new(),
        };
        let (mut payload, mut stream) = (Vec::new(), Vec::new());
        header.write(&mut payload);
        put_frame(&mut stream, FrameType::Header, &payload);
        put_frame(&mut stream, FrameType::Message, b"");
        send.finish_with(stream.into()).await.unwrap();
        let response = recv.read_to_end(1000).await.unwrap();
        // STATUS, its length, DEADLINE_EXCEEDED, executed.
        assert_eq!((response[0], &response[2..4]), (2, &[4, 1][..]));
        assert_eq!(server.server.stats().deadline_exceeded, 1);
    });
}

#[test]
fn a_stream_ends_at_its_deadline() {
    run(async {
        let silent = |_: Context, _: Bytes, responses: weir_rpc::ResponseSender| async move {
            std::future::pending::<()>().await;
            drop(responses);
            Ok(())
        };
        let server = start(Server::builder().server_streaming("silent", silent));
        let call = channel(&server)
            .call("silent")
            .deadline(Duration::from_millis(20));
        let mut responses = call.server_streaming("").await.unwrap();
        let error = responses.next().await.unwrap_err();
        assert_eq!(error.code(), Code::DeadlineExceeded);
        until(|| server.server.running() == 0).await;
    });
}

#[test]
fn a_handlers_calls_have_what_is_left_of_its_deadline() {
    run(async {
        let (seen, mut times) = mpsc::unbounded_channel();
        let back = start(
            Server::builder().method("back", move |context: Context, _| {
                seen.send(context.time_left()).unwrap();
                async { Ok("answer") }
            }),
        );
        let to_back = channel(&back);
        let front = start(Server::builder().method("front", move |_, request: Bytes| {
            let to_back = to_back.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(20)).await;
                let call = to_back.call("back");
                let call = match &request[..] {
                    b"longer" => call.deadline(Duration::from_secs(3600)),
                    b"shorter" => call.deadline(Duration::from_secs(1)),
                    _ => call,
                };
                Ok(call.unary("").await?.body)
            }
        }));
        let to_front = channel(&front);
        let span = weir_net::Duration::from_secs(50);
        for (request, most) in [("none", 50_000), ("longer", 50_000), ("shorter", 1_000)] {
            let call = to_front.call("front").deadline(span);
            assert_eq!(call.unary(request).await.unwrap().body, "answer");
            let left = times.recv().await.unwrap().unwrap();
            assert!(
                left <= weir_net::Duration::from_millis(most),
                "{request}: {left}"
            );
            let spent = weir_net::Duration::from_millis(20);
            assert!(most != 50_000 || left <= span - spent, "{request}: {left}");
        }
        to_front.call("front").unary("none").await.unwrap();
        assert_eq!(times.recv().await, Some(None));
    });
}

#[test]
fn a_server_that_does_not_answer_gets_the_reason_and_is_reported() {
    run(async {
        let endpoint = server_endpoint(loopback(), weir_rpc::wire::APPLICATION_PROTOCOL);
        let address = endpoint.local_address();
        let stopped = Arc::new(AtomicBool::new(false));
        let was_stopped = stopped.clone();
        tokio::spawn(async move {
            let connection = endpoint.accept().await.unwrap().await.unwrap();
            let mut calls = Vec::new();
            while let Ok((mut send, recv)) = connection.accept_bi().await {
                let stopped = was_stopped.clone();
                calls.push(tokio::spawn(async move {
                    let _recv = recv;
                    if send.stopped().await == Ok(Some(CALL_DEADLINE)) {
                        stopped.store(true, Ordering::SeqCst);
                    }
                }));
            }
        });
        let channel = Channel::to_addresses([address]).server_name("localhost");
        let channel = channel.deadline(Duration::from_millis(10));
        let channel = channel.connect(&client_endpoint()).unwrap();
        ready(&channel, 1).await;
        for _ in 0..5 {
            let error = channel.call("hang").unary("").await.unwrap_err();
            assert!(matches!(error, CallError::DeadlinePassed { .. }), "{error}");
            assert_eq!(error.executed(), Executed::Maybe);
        }
        until(|| stopped.load(Ordering::SeqCst)).await;
        // Five failures in a row.
        assert!(channel.servers()[0].is_avoided);
    });
}
