//! Calls that their clients give up.

use std::future::pending;

use futures_util::{StreamExt, stream};
use tokio::sync::mpsc;
use weir_grpc_testing::proto::{
    SimpleRequest, StreamingInputCallRequest, StreamingOutputCallRequest,
};

use crate::scripted::Scripted;
use crate::support::{Handlers, World, response, run};

/// Handlers that never end by themselves.
fn waiting(handlers: &Handlers) -> Scripted {
    let [unary, input, output, duplex] = [(); 4].map(|()| handlers.clone());
    Scripted::unary(move |_| {
        let handling = unary.begin();
        async move {
            let _handling = handling;
            pending().await
        }
    })
    .and_input(move |request| {
        let handling = input.begin();
        async move {
            let _kept = (handling, request);
            pending().await
        }
    })
    .and_output(move |_| {
        let handling = output.begin();
        stream::iter([Ok(response(1))])
            .chain(stream::pending())
            .inspect(move |_| _ = &handling)
    })
    .and_duplex(move |requests| {
        let handling = duplex.begin();
        stream::iter([Ok(response(1))])
            .chain(stream::pending())
            .inspect(move |_| _ = (&handling, &requests))
    })
}

/// Drops a call once its handler runs.
async fn cancel(handlers: &Handlers, number: usize, call: impl Future) {
    tokio::select! {
        _ = call => panic!("the call has ended by itself"),
        () = handlers.begun(number) => {}
    }
    handlers.ended(number).await;
}

#[test]
fn a_call_that_is_dropped_ends_its_handler() {
    run(async {
        let handlers = Handlers::default();
        let world = World::new(waiting(&handlers));
        let mut client = world.client();
        cancel(&handlers, 1, client.unary_call(SimpleRequest::default())).await;
        let requests = stream::pending::<StreamingInputCallRequest>();
        cancel(&handlers, 2, client.streaming_input_call(requests)).await;
        let responses = async {
            let request = StreamingOutputCallRequest::default();
            let call = client.streaming_output_call(request).await.unwrap();
            let mut responses = call.into_inner();
            while responses.message().await.unwrap().is_some() {}
        };
        cancel(&handlers, 3, responses).await;
        let responses = async {
            let requests = stream::pending::<StreamingOutputCallRequest>();
            let call = client.full_duplex_call(requests).await.unwrap();
            let mut responses = call.into_inner();
            while responses.message().await.unwrap().is_some() {}
        };
        cancel(&handlers, 4, responses).await;
        assert_eq!(world.server.stats().cancelled, 4);
        world.expect_alive().await;
    });
}

#[test]
fn a_stream_of_responses_that_is_dropped_ends_its_handler() {
    run(async {
        let handlers = Handlers::default();
        let world = World::new(waiting(&handlers));
        let mut client = world.client();
        for number in 1..=10 {
            let requests = stream::pending::<StreamingOutputCallRequest>();
            let call = client.full_duplex_call(requests).await.unwrap();
            let mut responses = call.into_inner();
            assert!(responses.message().await.unwrap().is_some());
            drop(responses);
            handlers.ended(number).await;
        }
        world.expect_alive().await;
    });
}

#[test]
fn a_server_that_answers_early_ends_the_requests() {
    run(async {
        let service = Scripted::default().and_input(|_| async {
            Err(tonic::Status::already_exists(
                "without a look at the requests",
            ))
        });
        let world = World::new(service);
        // More than the server takes unasked.
        let requests = stream::repeat_with(|| StreamingInputCallRequest {
            payload: crate::support::payload(100_000),
            ..StreamingInputCallRequest::default()
        });
        let answered = world.client().streaming_input_call(requests).await;
        let status = answered.unwrap_err();
        assert_eq!(status.code(), tonic::Code::AlreadyExists, "{status}");
        world.expect_alive().await;
    });
}

#[test]
fn requests_that_are_given_up_do_not_look_complete() {
    run(async {
        let (ends, mut end) = mpsc::unbounded_channel();
        let service = Scripted::default().and_input(move |request| {
            let ends = ends.clone();
            // It reads on when the handler is dropped.
            tokio::spawn(async move {
                let mut requests = request.into_inner();
                let end = loop {
                    match requests.message().await {
                        Ok(Some(_)) => _ = ends.send(None),
                        Ok(None) => break Ok(()),
                        Err(status) => break Err(status),
                    }
                };
                let _ = ends.send(Some(end));
            });
            pending()
        });
        let world = World::new(service);
        let requests = stream::iter([StreamingInputCallRequest::default()]);
        let requests = requests.chain(stream::pending());
        let mut client = world.client();
        tokio::select! {
            _ = client.streaming_input_call(requests) => panic!("the call has ended by itself"),
            received = end.recv() => assert!(received.unwrap().is_none()),
        }
        let status = end.recv().await.unwrap().unwrap().unwrap_err();
        assert_eq!(status.code(), tonic::Code::Aborted, "{status}");
        world.expect_alive().await;
    });
}
