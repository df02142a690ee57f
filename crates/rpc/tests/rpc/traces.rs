//! Trace contexts across hops.

use bytes::Bytes;
use tokio::sync::mpsc;
use weir_rpc::trace::{self, TraceContext};
use weir_rpc::{Context, Server};

use crate::support::{Running, channel, run, start};

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

type Seen = mpsc::UnboundedReceiver<(TraceContext, Option<String>)>;

/// Two servers, of which the first one calls the second one, and what they see.
fn chain() -> (Running, Running, Seen) {
    let (seen, traces) = mpsc::unbounded_channel();
    let record = move |context: &Context| {
        assert_eq!(trace::current().as_ref(), Some(context.trace()));
        let parent = context.metadata().text("traceparent").map(str::to_owned);
        seen.send((context.trace().clone(), parent)).unwrap();
    };
    let back_record = record.clone();
    let back = start(
        Server::builder().method("back", move |context: Context, _| {
            let record = back_record.clone();
            async move {
                record(&context);
                Ok(Bytes::new())
            }
        }),
    );
    let to_back = channel(&back);
    let front = start(
        Server::builder().method("front", move |context: Context, _| {
            let (to_back, record) = (to_back.clone(), record.clone());
            async move {
                record(&context);
                let spawned = tokio::spawn(context.within(to_back.call("back").unary("")));
                spawned.await.unwrap()?;
                Ok(to_back.call("back").unary("").await?.body)
            }
        }),
    );
    (front, back, traces)
}

#[test]
fn a_trace_continues_over_hops_with_a_new_span_each() {
    run(async {
        let (front, _back, mut seen) = chain();
        let mut caller: TraceContext = CALLER.parse().unwrap();
        caller.state = "system=value".parse().unwrap();
        let call = channel(&front).call("front").trace_context(caller.clone());
        call.unary("").await.unwrap();
        let (first, parent) = seen.recv().await.unwrap();
        assert_eq!(parent.as_deref(), Some(CALLER));
        assert_eq!(
            (first.trace_id, &first.state),
            (caller.trace_id, &caller.state)
        );
        assert_ne!(first.span_id, caller.span_id);
        assert!(first.is_sampled());
        for _ in 0..2 {
            let (hop, parent) = seen.recv().await.unwrap();
            assert_eq!(parent, Some(first.to_string()));
            assert_eq!((hop.trace_id, &hop.state), (caller.trace_id, &caller.state));
            assert_ne!(hop.span_id, first.span_id);
        }
    });
}

#[test]
fn a_call_without_a_trace_begins_one() {
    run(async {
        let (front, _back, mut seen) = chain();
        let channel = channel(&front);
        channel.call("front").unary("").await.unwrap();
        // What is no context is left out.
        let call = channel.call("front").metadata("traceparent", "none");
        call.unary("").await.unwrap();
        let mut traces = Vec::new();
        for _ in 0..6 {
            let (trace, _) = seen.recv().await.unwrap();
            assert!(!trace.is_sampled());
            traces.push(trace.trace_id);
        }
        assert!(traces[..3].iter().all(|id| *id == traces[0]));
        assert!(traces[3..].iter().all(|id| *id == traces[3]));
        assert_ne!(traces[0], traces[3]);
    });
}
