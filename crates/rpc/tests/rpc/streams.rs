//! Streaming bodies in both directions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use weir_net::rpc::CALL_CANCELLED;
use weir_rpc::{
    CallError, Code, Context, Executed, RequestReceiver, ResponseSender, Server, Status,
    StreamClosed,
};

use crate::support::{Running, channel, run, start, until};

fn server() -> Running {
    let sum = |_: Context, mut requests: RequestReceiver| async move {
        let mut sum = 0;
        while let Some(request) = requests.next().await? {
            sum += request.len();
        }
        Ok(sum.to_string())
    };
    let count = |_: Context, request: Bytes, mut responses: ResponseSender| async move {
        for number in 0..request.len() {
            responses.send(number.to_string()).await?;
        }
        Ok(())
    };
    let echo = |context: Context, mut requests: RequestReceiver, mut responses: ResponseSender| async move {
        while let Some(request) = requests.next().await? {
            if request == "fail" {
                return Err(Status::new(Code::Aborted, "as asked"));
            }
            responses.send(request).await?;
        }
        context.add_trailer("end", "reached").unwrap();
        Ok(())
    };
    start(
        Server::builder()
            .client_streaming("sum", sum)
            .server_streaming("count", count)
            .bidirectional("echo", echo),
    )
}

#[test]
fn a_stream_of_requests_has_one_response() {
    run(async {
        let server = server();
        let (mut requests, responses) = channel(&server).call("sum").streaming().await.unwrap();
        for size in [1, 10, 100_000] {
            requests.send(vec![0; size]).await.unwrap();
        }
        requests.finish().await.unwrap();
        assert_eq!(responses.only().await.unwrap().body, "100011");
    });
}

#[test]
fn one_request_has_a_stream_of_responses() {
    run(async {
        let server = server();
        let call = channel(&server).call("count");
        let mut responses = call.server_streaming(vec![0; 1000]).await.unwrap();
        for number in 0..1000 {
            let response = responses.next().await.unwrap();
            assert_eq!(response.unwrap(), number.to_string());
        }
        assert_eq!(responses.metadata(), None);
        assert_eq!(responses.next().await, Ok(None));
        assert_eq!(responses.next().await, Ok(None));
        assert!(responses.metadata().is_some());
    });
}

#[test]
fn both_directions_at_once() {
    run(async {
        let server = server();
        let (mut requests, mut responses) =
            channel(&server).call("echo").streaming().await.unwrap();
        for number in 0..10 {
            requests.send(number.to_string()).await.unwrap();
            let response = responses.next().await.unwrap();
            assert_eq!(response.unwrap(), number.to_string());
        }
        requests.finish().await.unwrap();
        assert_eq!(responses.next().await, Ok(None));
        assert_eq!(responses.metadata().unwrap().text("end"), Some("reached"));
    });
}

#[test]
fn a_handler_may_end_the_call_before_the_requests_end() {
    run(async {
        let server = server();
        let (mut requests, mut responses) =
            channel(&server).call("echo").streaming().await.unwrap();
        requests.send("one").await.unwrap();
        requests.send("fail").await.unwrap();
        assert_eq!(responses.next().await.unwrap().unwrap(), "one");
        let error = responses.next().await.unwrap_err();
        assert_eq!(
            (error.code(), error.executed()),
            (Code::Aborted, Executed::Yes)
        );
        assert_eq!(responses.next().await, Err(error));
        while requests.send("more").await != Err(StreamClosed) {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn a_sender_waits_for_a_slow_reader() {
    const MESSAGE: usize = 64 * 1024;
    run(async {
        let sent = Arc::new(AtomicUsize::new(0));
        let counter = sent.clone();
        let flood = move |_: Context, _: Bytes, mut responses: ResponseSender| {
            let sent = counter.clone();
            async move {
                loop {
                    responses.send(vec![0; MESSAGE]).await?;
                    sent.fetch_add(1, Ordering::SeqCst);
                }
            }
        };
        let idle = |_: Context, requests: RequestReceiver| async move {
            std::future::pending::<()>().await;
            drop(requests);
            Ok(Bytes::new())
        };
        let builder = Server::builder().server_streaming("flood", flood);
        let server = start(builder.client_streaming("idle", idle));
        let channel = channel(&server);
        // What the windows and buffers of the data center profile hold: 1 MiB sent, 1 MiB received.
        let most = 3 * (1 << 20) / MESSAGE;

        let mut responses = channel.call("flood").server_streaming("").await.unwrap();
        for _ in 0..3 * most {
            responses.next().await.unwrap().unwrap();
        }
        let read = 3 * most;
        // The handler comes to a stop.
        let mut before = usize::MAX;
        while before != sent.load(Ordering::SeqCst) {
            before = sent.load(Ordering::SeqCst);
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        assert!(before - read <= most, "{before} sent, {read} read");
        drop(responses);
        until(|| server.server.running() == 0).await;

        let (mut requests, _responses) = channel.call("idle").streaming().await.unwrap();
        let mut count = 0;
        let limit = std::time::Duration::from_millis(200);
        while let Ok(result) = tokio::time::timeout(limit, requests.send(vec![0; MESSAGE])).await {
            result.unwrap();
            count += 1;
            assert!(count <= most, "{count} requests are on their way");
        }
    });
}

#[test]
fn dropping_the_responses_cancels_the_call() {
    run(async {
        let server = server();
        let (mut requests, responses) = channel(&server).call("echo").streaming().await.unwrap();
        requests.send("one").await.unwrap();
        until(|| server.server.running() == 1).await;
        drop(responses);
        until(|| server.server.stats().cancelled == 1 && server.server.running() == 0).await;
    });
}

#[test]
fn requests_that_do_not_end_are_not_taken_for_complete() {
    run(async {
        let server = server();
        let (mut requests, responses) = channel(&server).call("sum").streaming().await.unwrap();
        requests.send("one").await.unwrap();
        // Before that a reset takes the header away too.
        until(|| server.server.running() == 1).await;
        drop(requests);
        let error = responses.only().await.unwrap_err();
        let CallError::Status { status, executed } = error else {
            panic!("{error}");
        };
        assert_eq!((status.code, executed), (Code::Cancelled, Executed::Yes));
        assert!(
            status.text.contains(&CALL_CANCELLED.to_string()),
            "{}",
            status.text
        );
    });
}
