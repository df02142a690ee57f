//! Calls: deadlines, cancellation, limits, refusals.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use crate::support::{pair, pattern, run};
use bytes::Bytes;
use weir_net::{
    ByteSize, CallError, Connection, Duration, Refusal, Request, RequestError, Response,
    ServeOptions, rpc,
};

fn serve(connection: Connection, options: ServeOptions) {
    let echo = |request: Request| async move { Ok(request.body) };
    tokio::spawn(async move { connection.serve(options, echo).await });
}

#[test]
fn a_response_may_have_pieces() {
    run(async {
        let pair = pair().await;
        // More than a send buffer takes at once.
        let pieces = [
            pattern(0, 3),
            Bytes::new(),
            pattern(1, 5_000_000),
            pattern(2, 4),
        ];
        let (server, answer) = (pair.server.clone(), pieces.clone());
        tokio::spawn(async move {
            let answer =
                move |_: Request| std::future::ready(Ok(Response::of_pieces(answer.clone())));
            server.serve(ServeOptions::default(), answer).await;
        });
        let response = pair.client.call("all").await.unwrap();
        assert!(response == pieces.concat());
    });
}

#[test]
fn a_response_comes_back_for_each_request() {
    run(async {
        let pair = pair().await;
        serve(pair.server.clone(), ServeOptions::default());
        for size in [0, 1, 10_000, 100_000, 3_000_000] {
            let request = pattern(size as u64, size);
            assert_eq!(pair.client.call(request.clone()).await.unwrap(), request);
        }
    });
}

#[test]
fn calls_that_begin_together_stay_together() {
    run(async {
        let pair = pair().await;
        serve(pair.server.clone(), ServeOptions::default());
        let (callers, calls) = (10, 100);
        let sent = |connection: &Connection| connection.stats().totals.packets_sent;
        let before = (sent(&pair.client), sent(&pair.server));
        let mut running = tokio::task::JoinSet::new();
        for caller in 0..callers {
            let client = pair.client.clone();
            running.spawn(async move {
                for _ in 0..calls {
                    let request = pattern(caller, 100);
                    assert_eq!(client.call(request.clone()).await.unwrap(), request);
                }
            });
        }
        running.join_all().await;
        let requests = sent(&pair.client) - before.0;
        let answers = sent(&pair.server) - before.1;
        let packets = callers * calls / 4;
        assert!(
            requests < packets && answers < packets,
            "{requests} {answers}"
        );
    });
}

#[test]
fn calls_that_a_task_begins_together_leave_in_two_packets() {
    run(async {
        let pair = pair().await;
        serve(pair.server.clone(), ServeOptions::default());
        // The driver has gone to sleep by then, or the call's response has woken it.
        assert_eq!(pair.client.call("first").await.unwrap(), "first");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        let sent = || pair.client.stats().totals.packets_sent;
        let before = sent();
        let mut calls: Vec<_> = (0..10)
            .map(|caller| Box::pin(pair.client.call(pattern(caller, 100))))
            .collect();
        poll_fn(|cx| {
            for call in &mut calls {
                assert!(call.as_mut().poll(cx).is_pending());
            }
            Poll::Ready(())
        })
        .await;
        // Nothing else has run meanwhile: the first one has left, and the others wait for the driver.
        assert_eq!(sent() - before, 1);
        for (caller, call) in calls.into_iter().enumerate() {
            assert_eq!(call.await.unwrap(), pattern(caller as u64, 100));
        }
    });
}

#[test]
fn slow_calls_do_not_hold_up_others() {
    run(async {
        let pair = pair().await;
        let server = pair.server.clone();
        let gate = Arc::new(tokio::sync::Notify::new());
        let opened = gate.clone();
        tokio::spawn(async move {
            let handler = move |request: Request| {
                let gate = gate.clone();
                async move {
                    if request.body == "wait" {
                        gate.notified().await;
                    }
                    Ok(request.body)
                }
            };
            server.serve(ServeOptions::default(), handler).await
        });
        let client = pair.client.clone();
        let slow = tokio::spawn(async move { client.call("wait").await });
        for _ in 0..10 {
            assert_eq!(pair.client.call("go").await.unwrap(), "go");
        }
        assert!(!slow.is_finished());
        opened.notify_one();
        assert_eq!(slow.await.unwrap().unwrap(), "wait");
    });
}

#[test]
fn a_deadline_ends_the_call_and_cancels_it_at_the_server() {
    run(async {
        let pair = pair().await;
        let span = Duration::from_micros(1500);
        let calling = async {
            let result = pair.client.call("ping").deadline(span).await;
            assert_eq!(result, Err(CallError::DeadlinePassed(span)));
        };
        let serving = async {
            let incoming = pair.server.accept_call().await.unwrap();
            let (request, mut responder) = incoming.request(ByteSize::from_kib(1)).await.unwrap();
            assert_eq!(request.body, "ping");
            responder.cancelled().await;
            let late = responder.respond("late").await;
            assert_eq!(late, Err(weir_net::WriteError::Stopped(rpc::CALL_DEADLINE)));
        };
        tokio::join!(calling, serving);
        // The connection is still usable.
        serve(pair.server.clone(), ServeOptions::default());
        // The standard library's durations will do too.
        let span = std::time::Duration::from_secs(30);
        let call = pair.client.call("again").deadline(span);
        assert_eq!(call.await.unwrap(), "again");
    });
}

#[test]
fn a_dropped_call_is_cancelled() {
    run(async {
        let pair = pair().await;
        let client = pair.client.clone();
        let call = tokio::spawn(async move { client.call("ping").await });
        let incoming = pair.server.accept_call().await.unwrap();
        let (_, mut responder) = incoming.request(ByteSize::from_kib(1)).await.unwrap();
        call.abort();
        responder.cancelled().await;
        let late = responder.respond("late").await;
        assert_eq!(
            late,
            Err(weir_net::WriteError::Stopped(rpc::CALL_CANCELLED))
        );
    });
}

#[test]
fn a_cancelled_call_stops_its_handler() {
    run(async {
        let pair = pair().await;
        let (started, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        struct Guard(Arc<AtomicUsize>);
        impl Drop for Guard {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let (begun, ended) = (started.clone(), dropped.clone());
        let server = pair.server.clone();
        tokio::spawn(async move {
            let handler = move |_| {
                begun.fetch_add(1, Ordering::Relaxed);
                let guard = Guard(ended.clone());
                async move {
                    std::future::pending::<()>().await;
                    drop(guard);
                    Ok(Bytes::new())
                }
            };
            server.serve(ServeOptions::default(), handler).await
        });
        let call = pair
            .client
            .call("forever")
            .deadline(Duration::from_millis(50));
        assert!(call.await.is_err());
        while dropped.load(Ordering::Relaxed) < started.load(Ordering::Relaxed).max(1) {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn sizes_are_limited_on_both_sides() {
    run(async {
        let pair = pair().await;
        let limit = ByteSize::from_bytes(10_000);
        serve(
            pair.server.clone(),
            ServeOptions {
                request_limit: limit,
            },
        );
        let fits = pattern(1, 10_000);
        assert_eq!(pair.client.call(fits.clone()).await.unwrap(), fits);
        let result = pair.client.call(pattern(1, 10_001)).await;
        assert_eq!(
            result,
            Err(CallError::RequestTooLarge(ByteSize::from_bytes(10_001)))
        );
        let small = ByteSize::from_bytes(9_999);
        let result = pair.client.call(fits.clone()).response_limit(small).await;
        assert_eq!(result, Err(CallError::ResponseTooLarge(small)));
        assert_eq!(
            pair.client
                .call(fits.clone())
                .response_limit(limit)
                .await
                .unwrap(),
            fits
        );
    });
}

#[test]
fn a_refused_call_returns_its_code() {
    run(async {
        let pair = pair().await;
        let server = pair.server.clone();
        tokio::spawn(async move {
            server
                .serve(ServeOptions::default(), |_| async {
                    Err::<Bytes, _>(Refusal(42))
                })
                .await
        });
        assert_eq!(pair.client.call("x").await, Err(CallError::Refused(42)));
    });
    run(async {
        let pair = pair().await;
        let serving = async {
            pair.server.accept_call().await.unwrap().refuse(43);
            let incoming = pair.server.accept_call().await.unwrap();
            drop(incoming.request(ByteSize::from_kib(1)).await.unwrap());
        };
        let calling = async {
            assert_eq!(pair.client.call("x").await, Err(CallError::Refused(43)));
            let unanswered = pair.client.call("x").await;
            assert_eq!(unanswered, Err(CallError::Refused(rpc::CALL_UNANSWERED)));
        };
        tokio::join!(serving, calling);
    });
}

#[test]
fn a_peer_that_closes_in_the_middle_ends_the_call() {
    run(async {
        let pair = pair().await;
        let calling = pair.client.call("x");
        let closing = async {
            let _incoming = pair.server.accept_call().await.unwrap();
            pair.server.close(5, b"enough");
        };
        let (result, ()) = tokio::join!(calling, closing);
        let Err(CallError::Connection(error)) = result else {
            panic!("{result:?}")
        };
        assert_eq!(error.peer_code(), Some(5));
        assert!(error.to_string().contains("enough"), "{error}");
        assert!(pair.client.call("y").await.is_err());
        let incoming = pair.server.accept_call().await;
        assert!(incoming.is_err());
    });
}

#[test]
fn a_request_that_is_cut_off_is_cancelled() {
    run(async {
        let pair = pair().await;
        let (mut send, _recv) = pair.client.open_bi().await.unwrap();
        send.write_all(b"half").await.unwrap();
        let incoming = pair.server.accept_call().await.unwrap();
        let cut = async {
            send.reset(3).unwrap();
        };
        let (result, ()) = tokio::join!(incoming.request(ByteSize::from_kib(1)), cut);
        assert_eq!(result.unwrap_err(), RequestError::Cancelled(3));
    });
}
