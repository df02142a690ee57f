//! What happens, as server-sent events: the state of each run, and its samples.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream, StreamExt as _};
use serde::Serialize;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::Studio;
use super::viewers::Viewer;
use crate::description::{Thresholds, port_thresholds};
use crate::error::StudioError;
use crate::probes::Probes;
use crate::samples::Samples;
use crate::script::{LogEntry, seconds};
use crate::worker::{Cursor, Player, Status, Worker};

/// The time between two looks.
pub(super) const TICK: Duration = Duration::from_millis(50);
/// The samples of an event at most. More are thinned out.
pub(super) const MOST_SAMPLES: usize = 4_000;

#[derive(Debug, Serialize)]
struct RunState {
    run: &'static str,
    /// Seconds of the run.
    now: f64,
    status: Status,
    speed: Option<f64>,
    log: Vec<LogEntry>,
    error: Option<String>,
    /// The values of the knobs that have been turned.
    knobs: BTreeMap<String, f64>,
    /// The links that have been failed and not restored.
    failed: Vec<String>,
}

/// Samples since the last ones.
#[derive(Debug, Serialize)]
struct NewSamples<'s> {
    run: &'static str,
    #[serde(flatten)]
    samples: &'s Samples,
}

/// What was seen of groups and of watched flows since the last time.
#[derive(Debug, Serialize)]
struct NewProbes<'p> {
    run: &'static str,
    #[serde(flatten)]
    probes: &'p Probes,
}

/// What one viewer has seen of a run.
#[derive(Debug)]
struct Seen {
    worker: Worker,
    cursor: Cursor,
    state: String,
    log: Option<Vec<LogEntry>>,
}

/// The events for one viewer.
#[derive(Debug)]
struct Watch {
    viewer: Viewer,
    runs: BTreeMap<&'static str, Seen>,
    ticks: Interval,
}

pub(super) async fn events(
    State(studio): State<Arc<Studio>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let watch = Watch {
        viewer: Viewer::new(studio),
        runs: BTreeMap::new(),
        ticks,
    };
    let batches = stream::unfold(watch, |mut watch| async {
        watch.ticks.tick().await;
        let events = watch.look().await;
        Some((events, watch))
    });
    let events = batches.flat_map(|events| stream::iter(events.into_iter().map(Ok)));
    Sse::new(events).keep_alive(KeepAlive::default())
}

impl Watch {
    /// Returns what has happened since the last look.
    async fn look(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        let runs = self.viewer.studio().session.runs();
        self.runs.retain(|name, _| {
            let is_open = runs.contains_key(name);
            if !is_open {
                events.extend(event("closed", &serde_json::json!({ "run": name })));
            }
            is_open
        });
        for (name, worker) in runs {
            let seen = self.runs.entry(name).or_insert_with(|| Seen::new(&worker));
            if !seen.worker.is(&worker) {
                *seen = Seen::new(&worker);
                events.extend(event(
                    "reset",
                    &serde_json::json!({ "run": name, "from": 0.0 }),
                ));
            }
            // A run that has just been closed is gone at the next look.
            let _ = seen.look(name, &mut events).await;
        }
        events
    }
}

impl Seen {
    fn new(worker: &Worker) -> Self {
        Self {
            worker: worker.clone(),
            cursor: Cursor::START,
            state: String::new(),
            log: None,
        }
    }

    async fn look(
        &mut self,
        run: &'static str,
        events: &mut Vec<Event>,
    ) -> Result<(), StudioError> {
        let (mut cursor, known) = (self.cursor, self.log.take());
        let (state, thresholds, news, cursor) = self
            .worker
            .ask(move |player| {
                let news = player.news(&mut cursor, MOST_SAMPLES);
                let state = RunState::of(run, player);
                let is_changed = known.as_ref() != Some(&state.log);
                let thresholds = is_changed.then(|| Thresholds {
                    run,
                    ports: port_thresholds(player.run.scenario()),
                });
                (state, thresholds, news, cursor)
            })
            .await?;
        self.cursor = cursor;
        if let Some(from) = news.reset {
            events.extend(event(
                "reset",
                &serde_json::json!({ "run": run, "from": from }),
            ));
        }
        let text = serde_json::to_string(&state).unwrap_or_default();
        if text != self.state {
            events.push(Event::default().event("state").data(&text));
            self.state = text;
        }
        self.log = Some(state.log);
        if let Some(thresholds) = thresholds {
            events.extend(event("thresholds", &thresholds));
        }
        if news.samples.len() > 0 {
            let samples = &news.samples;
            events.extend(event("samples", &NewSamples { run, samples }));
        }
        if let Some(flows) = news.watched {
            let watched = serde_json::json!({ "run": run, "flows": flows });
            events.extend(event("watched", &watched));
        }
        if !news.probes.time.is_empty() {
            let probes = &news.probes;
            events.extend(event("probes", &NewProbes { run, probes }));
        }
        Ok(())
    }
}

impl RunState {
    fn of(run: &'static str, player: &Player) -> Self {
        let turned = player.run.turned();
        Self {
            run,
            now: seconds(player.run.now()),
            status: player.status(),
            speed: player.speed(),
            log: player.run.log().to_vec(),
            error: player.error().map(str::to_owned),
            knobs: turned
                .map(|(knob, value)| (knob.to_owned(), value))
                .collect(),
            failed: player.run.failed(),
        }
    }
}

pub(super) fn event(name: &str, data: &impl Serialize) -> Option<Event> {
    let data = serde_json::to_string(data).ok()?;
    Some(Event::default().event(name).data(data))
}
