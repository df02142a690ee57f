//! Streams of many messages whose reader is slow: their writer waits, and memory is bounded. And more
//! calls than a connection has streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{Stream, StreamExt, stream};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tonic::{Code, Request};
use weir_grpc_testing::proto::{
    SimpleRequest, SimpleResponse, StreamingInputCallRequest, StreamingInputCallResponse,
    StreamingOutputCallRequest,
};

use crate::scripted::Scripted;
use crate::support::{Handlers, SHORT, World, payload, response, run};

const MESSAGES: usize = 100_000;
/// The size of a message, in bytes.
const SIZE: usize = 400;
/// What writer and reader may hold, of 40 MB: the stream's buffers of 1 MiB at both ends, what is read at
/// once, and tonic's buffers.
const MAX_HELD: usize = 4_000_000;

/// Messages, and how many were taken.
fn counted<T: Send + 'static>(
    message: impl Fn() -> T + Send + 'static,
) -> (Arc<AtomicUsize>, impl Stream<Item = T> + Send + 'static) {
    let count = Arc::new(AtomicUsize::new(0));
    let counting = count.clone();
    let messages = stream::repeat_with(message).take(MESSAGES);
    let messages = messages.inspect(move |_| _ = counting.fetch_add(1, Ordering::SeqCst));
    (count, messages)
}

/// Waits until a count stands still.
async fn stalled(count: &AtomicUsize) -> usize {
    let mut last = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let now = count.load(Ordering::SeqCst);
        if now == last && now > 0 {
            return now;
        }
        last = now;
    }
}

#[test]
fn a_client_that_reads_nothing_holds_the_server() {
    run(async {
        let (produced, messages) = counted(|| Ok(response(SIZE)));
        let messages = std::sync::Mutex::new(Some(messages));
        let service =
            Scripted::default().and_output(move |_| messages.lock().unwrap().take().unwrap());
        let world = World::new(service);
        let request = StreamingOutputCallRequest::default();
        let call = world.client().streaming_output_call(request).await;
        let mut responses = call.unwrap().into_inner();
        let held = stalled(&produced).await * SIZE;
        assert!(held < MAX_HELD, "{held}");
        let mut read = 0;
        while let Some(response) = responses.message().await.unwrap() {
            assert_eq!(response.payload.unwrap().body.len(), SIZE);
            read += 1;
            let ahead = produced.load(Ordering::SeqCst) - read;
            assert!(ahead * SIZE < MAX_HELD, "{ahead} messages");
        }
        assert_eq!(read, MESSAGES);
        world.expect_alive().await;
    });
}

#[test]
fn a_server_that_reads_nothing_holds_the_client() {
    run(async {
        let go = Arc::new(Notify::new());
        let going = go.clone();
        let service = Scripted::default().and_input(move |request| {
            let go = going.clone();
            async move {
                let mut requests = request.into_inner();
                go.notified().await;
                let mut count = 0;
                while requests.message().await?.is_some() {
                    count += 1;
                }
                Ok(StreamingInputCallResponse {
                    aggregated_payload_size: count,
                })
            }
        });
        let world = World::new(service);
        let (produced, messages) = counted(|| StreamingInputCallRequest {
            payload: payload(SIZE),
            ..StreamingInputCallRequest::default()
        });
        let mut client = world.client();
        let call = tokio::spawn(async move { client.streaming_input_call(messages).await });
        let held = stalled(&produced).await * SIZE;
        assert!(held < MAX_HELD, "{held}");
        go.notify_one();
        let response = call.await.unwrap().unwrap();
        assert_eq!(
            response.get_ref().aggregated_payload_size as usize,
            MESSAGES
        );
        world.expect_alive().await;
    });
}

#[test]
fn calls_wait_for_a_stream() {
    run(async {
        // A connection has 1024 streams.
        let count = 1500;
        let handlers = Handlers::default();
        let (beginning, go) = (handlers.clone(), Arc::new(Semaphore::new(0)));
        let going = go.clone();
        let service = Scripted::unary(move |_| {
            let (handling, go) = (beginning.begin(), going.clone());
            async move {
                let _handling = handling;
                let _go = go.acquire().await.unwrap();
                Ok(SimpleResponse::default())
            }
        });
        let world = World::new(service);
        let mut calls = JoinSet::new();
        for _ in 0..count {
            let mut client = world.client();
            calls.spawn(async move { client.unary_call(SimpleRequest::default()).await });
        }
        handlers.begun(1024).await;
        // Deadlines hold for calls that wait, too.
        let mut request = Request::new(SimpleRequest::default());
        request.set_timeout(SHORT);
        let status = world.client().unary_call(request).await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
        go.add_permits(count);
        for answered in calls.join_all().await {
            answered.unwrap();
        }
        world.expect_alive().await;
    });
}
