//! The page's answers for something that is asked for its status each second.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Json;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::routing::get;
use futures_util::stream::{self, Stream, StreamExt as _};
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};

use super::refusal;
use crate::error::StudioError;
use crate::observed::Observed;

/// The time between two looks for answers.
const TICK: Duration = Duration::from_millis(200);

pub(super) fn routes(observed: Arc<Observed>) -> Router {
    let refuse = || async { StudioError::IsFinished };
    let nothing = || async { refusal(StatusCode::NOT_FOUND, "there is no such page") };
    Router::new()
        .route("/api/scenario", get(about))
        .route("/api/events", get(events))
        .route("/api/{request}", axum::routing::any(refuse))
        .fallback(nothing)
        .with_state(observed)
}

async fn about(State(observed): State<Arc<Observed>>) -> Json<Value> {
    Json(json!({ "kind": observed.kind, "name": observed.name }))
}

/// The answers that are kept, and then each one as it comes.
async fn events(
    State(observed): State<Arc<Observed>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let batches = stream::unfold(
        (observed, ticks, 0),
        |(observed, mut ticks, seen)| async move {
            ticks.tick().await;
            let (news, seen) = observed.since(seen);
            Some((news, (observed, ticks, seen)))
        },
    );
    let events = batches.flat_map(|news| {
        let events = news
            .into_iter()
            .map(|text| Ok(Event::default().event("status").data(text)));
        stream::iter(events)
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}
