//! Handlers of calls that panic, or keep a thread busy.

use std::sync::{Arc, Condvar, Mutex};

use crate::support::{PATIENCE, client, pair, pattern, run, server};
use bytes::Bytes;
use weir_net::{CallError, Connection, Executed, Refusal, Request, ServeOptions};

async fn panic_as_told(request: Request) -> Result<Bytes, Refusal> {
    match &request.body[..] {
        b"at once" => panic!("before the first await"),
        b"later" => {
            tokio::task::yield_now().await;
            panic!("after {} awaits", 1);
        }
        _ => Ok(request.body),
    }
}

fn serve(connection: Connection) {
    let handler = |request: Request| {
        assert_ne!(&request.body[..], b"in the closure");
        panic_as_told(request)
    };
    tokio::spawn(async move { connection.serve(ServeOptions::default(), handler).await });
}

#[test]
fn a_panic_fails_its_call_alone() {
    run(async {
        let pair = pair().await;
        let clone = pair.server.clone();
        serve(pair.server.clone());
        let waiting = pair.client.call("hello");
        for body in ["at once", "later", "in the closure"] {
            let error = pair.client.call(body).await.unwrap_err();
            assert_eq!(error, CallError::Failed, "{body}");
            assert_eq!(error.executed(), Executed::Maybe);
            assert_eq!(pair.client.call("hello").await.unwrap(), "hello");
        }
        assert_eq!(waiting.await.unwrap(), "hello");
        assert_eq!(clone.error(), None);
        assert_eq!(pair.server_endpoint.stats().calls_failed, 3);
        assert_eq!(pair.client_endpoint.stats().calls_failed, 0);
    });
}

#[test]
fn many_panics_leave_no_streams() {
    run(async {
        let pair = pair().await;
        serve(pair.server.clone());
        // More than may be open at once.
        for _ in 0..3_000 {
            let error = pair.client.call("at once").await.unwrap_err();
            assert_eq!(error, CallError::Failed);
        }
        assert_eq!(pair.server_endpoint.stats().calls_failed, 3_000);
    });
}

/// Keeps threads until it is opened.
#[derive(Default)]
struct Barrier {
    /// How many threads have come, and whether it is open.
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

impl Barrier {
    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.0 += 1;
        self.changed.notify_all();
        let is_closed = |state: &mut (usize, bool)| !state.1;
        let wait = self.changed.wait_timeout_while(state, PATIENCE, is_closed);
        drop(wait.unwrap());
    }

    fn wait_until_full(&self, threads: usize) {
        let state = self.state.lock().unwrap();
        let are_missing = |state: &mut (usize, bool)| state.0 < threads;
        let wait = (self.changed).wait_timeout_while(state, PATIENCE, are_missing);
        assert!(!wait.unwrap().1.timed_out(), "a handler did not begin");
    }

    fn open(&self) {
        self.state.lock().unwrap().1 = true;
        self.changed.notify_all();
    }
}

/// Makes quick calls beside four that keep their threads.
fn quick_calls_beside_busy_ones(busy: &Bytes, warm_up: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(5)
        .enable_all()
        .build()
        .unwrap();
    let barrier = Arc::new(Barrier::default());
    let held = barrier.clone();
    let (server, fingerprint) = runtime.block_on(async { server() });
    let address = server.local_address();
    runtime.spawn(async move {
        let connection = server.accept().await.unwrap().await.unwrap();
        let handler = move |request: Request| {
            let held = held.clone();
            async move {
                if request.body.len() > 1 {
                    held.pass();
                }
                Ok(request.body)
            }
        };
        connection.serve(ServeOptions::default(), handler).await
    });
    run(async {
        let connecting = client(fingerprint).connect(address, "localhost");
        let connection = connecting.unwrap().await.unwrap();
        for _ in 0..warm_up {
            assert_eq!(connection.call("q").await.unwrap(), "q");
        }
        let mut calls = tokio::task::JoinSet::new();
        for number in 1..=4 {
            let (caller, busy) = (connection.clone(), busy.clone());
            calls.spawn(async move { caller.call(busy).await.map(drop) });
            if number % 2 == 0 {
                let barrier = barrier.clone();
                let full = tokio::task::spawn_blocking(move || barrier.wait_until_full(number));
                full.await.unwrap();
                for _ in 0..10 {
                    assert_eq!(connection.call("q").await.unwrap(), "q");
                }
            }
        }
        barrier.open();
        for call in calls.join_all().await {
            assert_eq!(call, Ok(()));
        }
    });
    runtime.shutdown_background();
}

#[test]
fn busy_handlers_do_not_hold_up_others() {
    for round in 0..20 {
        quick_calls_beside_busy_ones(&"busy".into(), round * 3);
    }
}

#[test]
fn busy_handlers_of_long_requests_do_not_hold_up_others() {
    for round in 0..20 {
        quick_calls_beside_busy_ones(&pattern(1, 300_000), round);
    }
}
