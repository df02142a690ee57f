//! The page's answers for a finished run.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Json;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::routing::get;
use futures_util::stream::{self, Stream, StreamExt as _};
use serde_json::{Value, json};
use weir_results::RunSummary;

use super::asked::Parameters;
use super::queries::{Completions, Flows, MOST_FLOWS, Search, completions_of};
use super::refusal;
use crate::error::StudioError;
use crate::finished::FinishedRun;

/// The samples of an event at most.
const SAMPLES: usize = 4_000;

type Shown = State<Arc<FinishedRun>>;

pub(super) fn routes(run: FinishedRun) -> Router {
    let refuse = || async { StudioError::IsFinished };
    let nothing = || async { refusal(StatusCode::NOT_FOUND, "there is no such page") };
    Router::new()
        .route("/api/scenario", get(scenario))
        .route("/api/summary", get(summary))
        .route("/api/flows", get(flows))
        .route("/api/completions", get(completions))
        .route("/api/events", get(events))
        .route("/api/{request}", axum::routing::any(refuse))
        .fallback(nothing)
        .with_state(Arc::new(run))
}

async fn scenario(State(run): Shown) -> Json<Value> {
    Json(run.description())
}

async fn summary(State(run): Shown) -> Json<RunSummary> {
    Json(run.summary().run.clone())
}

async fn flows(State(run): Shown, Parameters(search): Parameters<Search>) -> Json<Flows> {
    let limit = search.limit.unwrap_or(50).min(MOST_FLOWS);
    Json(Flows::slowest(
        run.flows().iter().cloned(),
        &search.search,
        limit,
    ))
}

async fn completions(State(run): Shown) -> Json<Vec<Completions>> {
    let groups = run.groups().iter().enumerate();
    let completions =
        groups.filter_map(|(place, group)| completions_of(run.recording(), place, group.clone()));
    Json(completions.collect())
}

/// The state and all samples, and nothing more then.
async fn events(State(run): Shown) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let state = Event::default()
        .event("state")
        .data(run.state().to_string());
    let count = run.recording().samples.len();
    let starts = (0..count).step_by(SAMPLES);
    let samples = starts.map(move |start| {
        let samples = run.recording().samples.part(start, SAMPLES);
        let mut data = serde_json::to_value(&samples).unwrap_or_default();
        data["run"] = json!("a");
        Event::default().event("samples").data(data.to_string())
    });
    let all = stream::iter(std::iter::once(state).chain(samples).map(Ok));
    Sse::new(all.chain(stream::pending())).keep_alive(KeepAlive::default())
}
