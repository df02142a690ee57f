//! Unary calls: bodies, metadata, statuses, refusals, panics.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use weir_net::ByteSize;
use weir_rpc::wire::Limits;
use weir_rpc::{CallError, Code, Context, Executed, Server, ServerBuilder, Status};

use crate::support::{channel, channel_to, client_endpoint, run, start, until};

async fn echo(_: Context, request: Bytes) -> Result<Bytes, Status> {
    Ok(request)
}

fn echo_server() -> ServerBuilder {
    Server::builder().method("echo", echo)
}

fn failed(result: Result<weir_rpc::Response, CallError>) -> (Status, Executed) {
    match result {
        Err(CallError::Status { status, executed }) => (status, executed),
        other => panic!("{other:?}"),
    }
}

#[test]
fn bodies_of_all_sizes_come_back() {
    run(async {
        let server = start(echo_server());
        let channel = channel(&server);
        for size in [0, 1, 4096, 4097, 100_000, 3_000_000] {
            let body = Bytes::from(vec![size as u8; size]);
            let response = channel.call("echo").unary(body.clone()).await.unwrap();
            assert_eq!(response.body, body);
        }
        assert_eq!(server.server.stats().executed, 6);
    });
}

#[test]
fn metadata_go_both_ways() {
    run(async {
        let server = start(
            Server::builder().method("tenant", |context: Context, _| async move {
                assert_eq!(context.method(), "tenant");
                assert_eq!(context.attempt(), 1);
                assert!(context.time_left().is_none());
                assert!(context.peer_address().ip().is_loopback());
                context.add_trailer("served-by", "one").unwrap();
                let tenant = context.metadata().text("tenant").unwrap().to_owned();
                Ok(tenant)
            }),
        );
        let call = channel(&server).call("tenant").metadata("tenant", "a");
        let response = call.unary("").await.unwrap();
        assert_eq!(response.body, "a");
        assert_eq!(response.metadata.text("served-by"), Some("one"));
    });
}

#[test]
fn what_is_no_name_is_reported_when_the_call_is_made() {
    run(async {
        let server = start(echo_server());
        let channel = channel(&server);
        let call = channel.call("echo").metadata("Tenant", "a");
        let error = call.unary("").await.unwrap_err();
        assert!(matches!(error, CallError::Metadata(_)));
        let error = channel.call("a method").unary("").await.unwrap_err();
        assert_eq!(error, CallError::Method("a method".to_owned()));
        assert_eq!(error.executed(), Executed::No);
    });
}

#[test]
fn a_status_arrives_with_its_parts() {
    run(async {
        let server = start(
            Server::builder().method("get", |context: Context, _| async move {
                context.add_trailer("trailer", "t").unwrap();
                let status = Status::new(Code::NotFound, "no such key").with_details("details");
                Err::<Bytes, _>(status.with_metadata("more", "m").unwrap())
            }),
        );
        let (status, executed) = failed(channel(&server).call("get").unary("k").await);
        assert_eq!((status.code, executed), (Code::NotFound, Executed::Yes));
        assert_eq!(
            (status.text.as_str(), &status.details[..]),
            ("no such key", &b"details"[..])
        );
        assert_eq!(status.metadata.text("more"), Some("m"));
        assert_eq!(status.metadata.text("trailer"), Some("t"));
    });
}

#[test]
fn an_unknown_method_is_not_executed() {
    run(async {
        let server = start(echo_server());
        let (status, executed) = failed(channel(&server).call("other").unary("").await);
        assert_eq!((status.code, executed), (Code::Unimplemented, Executed::No));
        let stats = server.server.stats();
        assert_eq!((stats.unimplemented, stats.executed), (1, 0));
    });
}

#[test]
fn a_panic_answers_its_call_and_no_other() {
    run(async {
        let gate = Arc::new(Notify::new());
        let opened = gate.clone();
        let builder = echo_server()
            .method("at-once", |_, _| {
                panic!("at once");
                #[allow(unreachable_code, reason = "it says what the handler returns")]
                async {
                    Ok(Bytes::new())
                }
            })
            .method("later", |_, _| async {
                tokio::task::yield_now().await;
                if true {
                    panic!("later");
                }
                Ok(Bytes::new())
            })
            .method("wait", move |_, _| {
                let gate = gate.clone();
                async move {
                    gate.notified().await;
                    Ok("waited")
                }
            });
        let server = start(builder);
        let channel = channel(&server);
        let waiting = tokio::spawn(channel.call("wait").unary(""));
        until(|| server.server.stats().executed == 1).await;
        for method in ["at-once", "later"] {
            let (status, executed) = failed(channel.call(method).unary("").await);
            assert_eq!((status.code, executed), (Code::Internal, Executed::Yes));
        }
        assert_eq!(channel.call("echo").unary("on").await.unwrap().body, "on");
        opened.notify_one();
        assert_eq!(waiting.await.unwrap().unwrap().body, "waited");
        assert_eq!(server.server.stats().panicked, 2);
        assert_eq!(channel.stats().connections, 1);
    });
}

#[test]
fn handlers_that_compute_do_not_hold_up_others() {
    run(async {
        let computing = Arc::new(AtomicUsize::new(0));
        let (begun, end) = (computing.clone(), Arc::new(AtomicUsize::new(0)));
        let ended = end.clone();
        let server = start(echo_server().method("compute", move |_, _| {
            let (begun, end) = (begun.clone(), end.clone());
            async move {
                begun.fetch_add(1, Ordering::SeqCst);
                while end.load(Ordering::SeqCst) == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Ok("computed")
            }
        }));
        // One of the two threads computes; the other one serves the rest.
        let channel = channel(&server);
        let slow = tokio::spawn(channel.call("compute").unary(""));
        until(|| computing.load(Ordering::SeqCst) == 1).await;
        for _ in 0..10 {
            assert_eq!(
                channel.call("echo").unary("quick").await.unwrap().body,
                "quick"
            );
        }
        assert!(!slow.is_finished());
        ended.store(1, Ordering::SeqCst);
        assert_eq!(slow.await.unwrap().unwrap().body, "computed");
    });
}

#[test]
fn calls_above_the_concurrency_limit_are_refused_before_they_are_executed() {
    run(async {
        let gate = Arc::new(Notify::new());
        let opened = gate.clone();
        let builder = Server::builder()
            .concurrency(2)
            .method("wait", move |_, _| {
                let gate = gate.clone();
                async move {
                    gate.notified().await;
                    Ok("waited")
                }
            });
        let server = start(builder);
        let channel = channel(&server);
        let running: Vec<_> = (0..2)
            .map(|_| tokio::spawn(channel.call("wait").unary("")))
            .collect();
        until(|| server.server.stats().executed == 2).await;
        let (status, executed) = failed(channel.call("wait").unary("").await);
        assert_eq!(
            (status.code, executed),
            (Code::ResourceExhausted, Executed::No)
        );
        opened.notify_waiters();
        for call in running {
            call.await.unwrap().unwrap();
        }
        // The permits are back.
        let next = tokio::spawn(channel.call("wait").unary(""));
        until(|| server.server.stats().executed == 3).await;
        opened.notify_waiters();
        next.await.unwrap().unwrap();
    });
}

#[test]
fn messages_above_a_limit_are_refused_on_either_side() {
    run(async {
        let limits = Limits {
            message: ByteSize::from_kib(1),
            ..Limits::default()
        };
        let builder = echo_server().limits(limits);
        let server = start(builder.method("large", |_, _| async { Ok(vec![0; 2000]) }));
        let channel = channel_to([&server])
            .limits(limits)
            .connect(&client_endpoint());
        let channel = channel.unwrap();
        let (status, executed) = failed(channel.call("echo").unary(vec![0; 2_000_000]).await);
        assert_eq!(
            (status.code, executed),
            (Code::InvalidArgument, Executed::No)
        );
        let error = channel.call("large").unary("").await.unwrap_err();
        assert_eq!(error, CallError::ResponseTooLarge(ByteSize::from_kib(1)));
        assert_eq!(error.executed(), Executed::Yes);
        assert_eq!(
            channel.call("echo").unary("small").await.unwrap().body,
            "small"
        );
    });
}

#[test]
fn a_dropped_call_drops_its_handler() {
    run(async {
        struct Guard(Arc<Notify>);
        impl Drop for Guard {
            fn drop(&mut self) {
                self.0.notify_one();
            }
        }
        let dropped = Arc::new(Notify::new());
        let ended = Arc::new(Notify::new());
        let (notify, task) = (dropped.clone(), ended.clone());
        let server = start(
            Server::builder().method("hang", move |context: Context, _| {
                let guard = Guard(notify.clone());
                let task = task.clone();
                tokio::spawn(async move {
                    context.ended().await;
                    task.notify_one();
                });
                async move {
                    let _guard = guard;
                    std::future::pending::<()>().await;
                    Ok(Bytes::new())
                }
            }),
        );
        let call = tokio::spawn(channel(&server).call("hang").unary(""));
        until(|| server.server.stats().executed == 1).await;
        call.abort();
        dropped.notified().await;
        // So do the tasks of the handler learn of it.
        ended.notified().await;
        until(|| server.server.stats().cancelled == 1 && server.server.running() == 0).await;
    });
}

#[test]
fn builders_report_wrong_methods() {
    let error = Server::builder().method("a b", echo).build().unwrap_err();
    assert_eq!(error, weir_rpc::ServerError::Method("a b".to_owned()));
    let error = echo_server().method("echo", echo).build().unwrap_err();
    assert_eq!(error, weir_rpc::ServerError::Duplicate("echo".to_owned()));
}
