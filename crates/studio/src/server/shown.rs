//! The page's answers for a run that can only be looked at: a finished one, or a live one while it goes on.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use futures_util::stream::{self, Stream, StreamExt as _};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::asked::{Body, Parameters};
use super::events::{MOST_SAMPLES, TICK, event};
use super::queries::{Completions, Flows, MOST_FLOWS, Search, completions_of};
use super::refusal;
use crate::error::StudioError;
use crate::finished::FinishedRun;
use crate::live::LiveRun;
use crate::samples::Samples;

/// A run to look at.
#[derive(Debug)]
pub(super) enum Shown {
    Finished(Box<FinishedRun>),
    Live(LiveRun),
}

type OfRun = State<Arc<Shown>>;

pub(super) fn routes(run: Shown) -> Router {
    let refuse = || async { StudioError::IsFinished };
    let nothing = || async { refusal(StatusCode::NOT_FOUND, "there is no such page") };
    Router::new()
        .route("/api/scenario", get(scenario))
        .route("/api/summary", get(summary))
        .route("/api/flows", get(flows))
        .route("/api/completions", get(completions))
        .route("/api/watch", post(watch))
        .route("/api/events", get(events))
        .route("/api/{request}", axum::routing::any(refuse))
        .fallback(nothing)
        .with_state(Arc::new(run))
}

async fn scenario(State(run): OfRun) -> Response {
    match &*run {
        Shown::Finished(run) => Json(run.description()).into_response(),
        Shown::Live(run) => Json(run.lock().description()).into_response(),
    }
}

async fn summary(State(run): OfRun) -> Response {
    match &*run {
        Shown::Finished(run) => Json(&run.summary().run).into_response(),
        Shown::Live(run) => match run.lock().summary() {
            Some(summary) => Json(summary).into_response(),
            None => StudioError::IsRunning.into_response(),
        },
    }
}

async fn flows(State(run): OfRun, Parameters(search): Parameters<Search>) -> Json<Flows> {
    let limit = search.limit.unwrap_or(50).min(MOST_FLOWS);
    let flows = match &*run {
        Shown::Finished(run) => run.flows().to_vec(),
        Shown::Live(run) => run.lock().flows(),
    };
    Json(Flows::slowest(flows.into_iter(), &search.search, limit))
}

async fn completions(State(run): OfRun) -> Json<Vec<Completions>> {
    let of = |recording, groups: Vec<String>| {
        let groups = groups.into_iter().enumerate();
        let completions =
            groups.filter_map(|(place, group)| completions_of(recording, place, group));
        Json(completions.collect())
    };
    match &*run {
        Shown::Finished(run) => of(run.completed(), run.groups().to_vec()),
        Shown::Live(run) => {
            let seen = run.lock();
            of(&seen.recordings.groups, seen.groups())
        }
    }
}

#[derive(Debug, Deserialize)]
struct Flow {
    flows: Vec<String>,
}

async fn watch(State(run): OfRun, Body(wanted): Body<Flow>) -> Result<StatusCode, StudioError> {
    match &*run {
        Shown::Finished(_) => Err(StudioError::IsFinished),
        Shown::Live(run) => {
            run.lock().watch(&wanted.flows)?;
            Ok(StatusCode::NO_CONTENT)
        }
    }
}

/// The events for one viewer.
struct Watch {
    run: Arc<Shown>,
    ticks: Interval,
    /// The samples of ports and of groups that it has seen.
    seen: [usize; 2],
    /// The time of the last look at flows that it has seen.
    probed: f64,
    watches: Option<usize>,
    state: Option<Value>,
}

async fn events(State(run): OfRun) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let watch = Watch {
        run,
        ticks,
        seen: [0; 2],
        probed: -1.0,
        watches: None,
        state: None,
    };
    let batches = stream::unfold(watch, |mut watch| async {
        watch.ticks.tick().await;
        let events = watch.look();
        Some((events, watch))
    });
    let events = batches.flat_map(|events| stream::iter(events.into_iter().map(Ok)));
    Sse::new(events).keep_alive(KeepAlive::default())
}

impl Watch {
    /// Returns what has happened since the last look.
    fn look(&mut self) -> Vec<Event> {
        let run = Arc::clone(&self.run);
        let mut events = Vec::new();
        match &*run {
            Shown::Finished(run) => {
                self.add_state(run.state(), &mut events);
                self.add_samples(run.samples(), &mut events);
                if self.watches.is_none() {
                    self.watches = Some(0);
                    let thresholds = run.thresholds();
                    events.extend(thresholds.and_then(|known| event("thresholds", &known)));
                }
            }
            Shown::Live(run) => {
                let run = run.lock();
                self.add_state(run.state(), &mut events);
                self.add_samples(run.recordings.samples(), &mut events);
                if self.watches != Some(run.watches) {
                    (self.watches, self.probed) = (Some(run.watches), -1.0);
                    let watched = run.prober.watched().iter();
                    let flows: Vec<&str> = watched.map(|flow| flow.name.as_str()).collect();
                    events.extend(event("thresholds", &run.thresholds()));
                    events.extend(event("watched", &json!({ "run": "a", "flows": flows })));
                }
                let probes = run.prober.probes().after(self.probed);
                if let Some(last) = probes.time.last() {
                    self.probed = *last;
                    events.extend(of_run("probes", &probes));
                }
            }
        }
        events
    }

    fn add_state(&mut self, state: Value, events: &mut Vec<Event>) {
        if self.state.as_ref() != Some(&state) {
            events.extend(event("state", &state));
            self.state = Some(state);
        }
    }

    fn add_samples(&mut self, samples: [&Samples; 2], events: &mut Vec<Event>) {
        for (samples, seen) in samples.into_iter().zip(&mut self.seen) {
            while *seen < samples.len() {
                let part = samples.part(*seen, MOST_SAMPLES);
                *seen += part.len();
                events.extend(of_run("samples", &part));
            }
        }
    }
}

/// An event of the only run.
fn of_run(name: &str, data: &impl serde::Serialize) -> Option<Event> {
    let mut data = serde_json::to_value(data).ok()?;
    data["run"] = json!("a");
    event(name, &data)
}
