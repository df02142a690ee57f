//! Which calls are made again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use weir_rpc::{
    Balancing, CallError, Code, Context, Executed, RetryConfig, Server, ServerBuilder, Status,
};

use crate::support::{
    Running, channel_to, client_endpoint, client_endpoint_and_credentials, ready, run, start,
    start_at, start_with_known_peers, until,
};

/// How often each request was executed, at all servers together.
type Executions = Arc<Mutex<HashMap<Bytes, usize>>>;

fn counting(executions: &Executions) -> ServerBuilder {
    let executions = executions.clone();
    Server::builder().method("count", move |_, request: Bytes| {
        *executions.lock().unwrap().entry(request).or_default() += 1;
        async {
            // Time to be interrupted.
            tokio::time::sleep(Duration::from_millis(2)).await;
            Ok(Bytes::new())
        }
    })
}

/// Kills a server: its connections end at once, with calls under way.
fn kill(server: Running) {
    server.endpoint.close(99, b"killed");
}

async fn storm(
    servers: &mut Vec<Running>,
    executions: &Executions,
    idempotent: bool,
) -> Vec<(Bytes, Result<(), CallError>)> {
    let channel = channel_to(servers.iter())
        .connect(&client_endpoint())
        .unwrap();
    ready(&channel, 3).await;
    let calls: Vec<_> = (0..300)
        .map(|number: usize| {
            let channel = channel.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_micros(100 * number as u64)).await;
                let request = Bytes::from(number.to_string());
                let mut call = channel.call("count").deadline(Duration::from_secs(30));
                if idempotent {
                    call = call.idempotent();
                }
                let result = call.unary(request.clone()).await;
                (request, result.map(|_| ()))
            })
        })
        .collect();
    until(|| executions.lock().unwrap().len() > 60).await;
    kill(servers.remove(0));
    let mut results = Vec::new();
    for call in calls {
        results.push(call.await.unwrap());
    }
    results
}

#[test]
fn a_call_that_is_not_idempotent_is_never_executed_twice() {
    run(async {
        let executions = Executions::default();
        let mut servers: Vec<_> = (0..3).map(|_| start(counting(&executions))).collect();
        let results = storm(&mut servers, &executions, false).await;
        let executions = executions.lock().unwrap();
        let mut failed = 0;
        for (request, result) in results {
            let count = executions.get(&request).copied().unwrap_or(0);
            match result {
                Ok(()) => assert_eq!(count, 1, "{request:?}"),
                Err(error) => {
                    failed += 1;
                    assert!(count <= 1, "{request:?}");
                    assert!(error.executed() == Executed::Maybe || count == 0, "{error}");
                }
            }
        }
        // Only calls that were under way at the server that was killed.
        assert!((1..100).contains(&failed), "{failed}");
    });
}

#[test]
fn idempotent_calls_survive_a_crash() {
    run(async {
        let executions = Executions::default();
        let mut servers: Vec<_> = (0..3).map(|_| start(counting(&executions))).collect();
        for (request, result) in storm(&mut servers, &executions, true).await {
            assert_eq!(result, Ok(()), "{request:?}");
        }
    });
}

/// Makes a call whose first datagram reaches a server without known peers, in the place of one with them;
/// returns its result, that of a later call, and how many calls were executed.
async fn call_after_replacement(idempotent: bool) -> ([Result<(), Executed>; 2], usize) {
    let executions = Arc::new(AtomicUsize::new(0));
    let counting = || {
        let executions = executions.clone();
        Server::builder().method("count", move |_: Context, _| {
            executions.fetch_add(1, Ordering::SeqCst);
            async { Ok::<_, Status>(Bytes::new()) }
        })
    };
    let (client, credentials) = client_endpoint_and_credentials();
    let first = start_with_known_peers(counting());
    let address = first.address;
    let connection = client.connect(address, "localhost").unwrap().await.unwrap();
    until(|| credentials.known_servers().held > 0).await;
    connection.close(0, b"");
    first.endpoint.close(0, b"");
    let patience = weir_units::Duration::from_secs(30);
    first.endpoint.wait_idle(patience).await.unwrap();
    drop(first);
    until(|| std::net::UdpSocket::bind(address).is_ok()).await;
    let second = start_at(address, counting());
    let channel = channel_to([&second]).connect(&client).unwrap();
    let mut results = [Ok(()), Ok(())];
    for result in &mut results {
        let mut call = channel.call("count");
        if idempotent {
            call = call.idempotent();
        }
        let answer = call.unary("").await;
        *result = answer.map(|_| ()).map_err(|error| error.executed());
    }
    assert_eq!(credentials.known_servers().held, 0);
    (results, executions.load(Ordering::SeqCst))
}

#[test]
fn an_idempotent_call_goes_on_at_a_server_without_known_peers() {
    run(async {
        let (results, executions) = call_after_replacement(true).await;
        assert_eq!(results, [Ok(()), Ok(())]);
        assert_eq!(executions, 2);
    });
}

#[test]
fn another_call_fails_once_at_a_server_without_known_peers() {
    run(async {
        let ([first, second], executions) = call_after_replacement(false).await;
        // The channel's connection may have found out before the call.
        assert!(
            first == Ok(()) || first == Err(Executed::Maybe),
            "{first:?}"
        );
        assert_eq!(second, Ok(()));
        assert_eq!(executions, 1 + usize::from(first.is_ok()));
    });
}

fn failing(code: Code, calls: &Arc<AtomicUsize>) -> ServerBuilder {
    let calls = calls.clone();
    Server::builder().method("fail", move |context: Context, _| {
        let number = calls.fetch_add(1, Ordering::SeqCst);
        assert_eq!(context.attempt() as usize, number % 4 + 1);
        async move { Err::<Bytes, _>(Status::new(code, "")) }
    })
}

#[test]
fn a_handlers_status_is_final_unless_the_call_is_idempotent() {
    run(async {
        let calls = Arc::new(AtomicUsize::new(0));
        let server = start(failing(Code::Unavailable, &calls));
        let channel = channel_to([&server]).connect(&client_endpoint()).unwrap();
        let error = channel
            .call("fail")
            .idempotent()
            .unary("")
            .await
            .unwrap_err();
        assert_eq!(
            (error.code(), error.executed()),
            (Code::Unavailable, Executed::Yes)
        );
        // Four attempts are the most.
        assert_eq!(calls.load(Ordering::SeqCst), 4);
        channel.call("fail").unary("").await.unwrap_err();
        assert_eq!(calls.load(Ordering::SeqCst), 5);
    });
}

#[test]
fn retries_that_add_load_stay_within_the_budget() {
    run(async {
        let refusing = Server::builder()
            .concurrency(0)
            .method("busy", |_, _| async { Ok(Bytes::new()) });
        let server = start(refusing);
        let retry = RetryConfig {
            budget_burst: 10,
            budget_ratio: 0.1,
            ..RetryConfig::default()
        };
        let channel = channel_to([&server])
            .retry(retry)
            .connect(&client_endpoint());
        let channel = channel.unwrap();
        for _ in 0..100 {
            let error = channel.call("busy").unary("").await.unwrap_err();
            assert_eq!(
                (error.code(), error.executed()),
                (Code::ResourceExhausted, Executed::No)
            );
        }
        let stats = channel.stats();
        // Ten at once, and one for ten calls.
        assert!((10..=20).contains(&stats.retries), "{stats:?}");
        assert!((90..100).contains(&stats.budget_exhausted), "{stats:?}");
        assert_eq!(server.server.stats().refused, 100 + stats.retries);
    });
}

#[test]
fn an_overloaded_server_is_left_for_another_one() {
    run(async {
        let answer = |_: Context, _: Bytes| async { Ok::<_, Status>("answered") };
        let busy = start(Server::builder().concurrency(0).method("call", answer));
        let idle = start(Server::builder().method("call", answer));
        let channel = channel_to([&busy, &idle]).balancing(Balancing::RoundRobin);
        let channel = channel.connect(&client_endpoint()).unwrap();
        ready(&channel, 2).await;
        for _ in 0..10 {
            let response = channel.call("call").unary("").await.unwrap();
            assert_eq!(response.body, "answered");
        }
        assert_eq!(idle.server.stats().executed, 10);
        assert!(busy.server.stats().refused >= 1);
    });
}
