//! What there is to see, for whoever asks.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, HeaderName};
use axum::response::{IntoResponse, Json, Response};
use serde::{Deserialize, Serialize};
use weir_results::{RunSummary, Slowdowns};
use weir_units::{Duration, Time};

use super::Studio;
use super::asked::Parameters;
use crate::description::Description;
use crate::error::StudioError;
use crate::samples::Recording;
use crate::session::NAMES;
use crate::worker::Player;

#[derive(Debug, Deserialize)]
pub(super) struct OfRun {
    run: Option<String>,
}

impl OfRun {
    fn name(&self) -> &str {
        self.run.as_deref().unwrap_or(NAMES[0])
    }
}

async fn ask<T: Send + 'static>(
    studio: &Studio,
    run: &str,
    act: impl FnOnce(&mut Player) -> T + Send + 'static,
) -> Result<T, StudioError> {
    studio.session.run(run)?.ask(act).await
}

pub(super) async fn scenario(
    State(studio): State<Arc<Studio>>,
) -> Result<Json<Description>, StudioError> {
    let described = ask(&studio, NAMES[0], |player| Description::of(&player.run));
    Ok(Json(described.await?))
}

pub(super) async fn summary(
    State(studio): State<Arc<Studio>>,
    Parameters(of): Parameters<OfRun>,
) -> Result<Json<RunSummary>, StudioError> {
    let summary = ask(&studio, of.name(), |player| player.run.summary());
    Ok(Json(summary.await?))
}

const TOML: [(HeaderName, &str); 1] = [(CONTENT_TYPE, "text/plain; charset=utf-8")];

pub(super) async fn save(
    State(studio): State<Arc<Studio>>,
    Parameters(of): Parameters<OfRun>,
) -> Result<Response, StudioError> {
    let file = ask(&studio, of.name(), |player| player.run.script().file());
    Ok((TOML, file.await?).into_response())
}

#[derive(Debug, Deserialize)]
pub(super) struct Search {
    run: Option<String>,
    /// A part of a flow's name or of its hosts' names.
    #[serde(default)]
    search: String,
    limit: Option<usize>,
}

/// Open flows, the slowest first.
#[derive(Debug, Serialize)]
pub(super) struct Flows {
    /// How many match.
    total: usize,
    flows: Vec<FlowRow>,
}

/// A flow: seconds, bytes, bits per second.
#[derive(Debug, Serialize)]
struct FlowRow {
    name: String,
    source: String,
    destination: String,
    started: f64,
    delivered: u64,
    goodput: u64,
    window: Option<u64>,
    rtt: Option<f64>,
    marks: u64,
    retransmitted: u64,
    timeouts: u64,
}

/// The flows of an answer at most.
const MOST_FLOWS: usize = 1_000;

pub(super) async fn flows(
    State(studio): State<Arc<Studio>>,
    Parameters(search): Parameters<Search>,
) -> Result<Json<Flows>, StudioError> {
    let of = OfRun { run: search.run };
    let limit = search.limit.unwrap_or(50).min(MOST_FLOWS);
    let flows = ask(&studio, of.name(), move |player| {
        find_flows(player, &search.search, limit)
    });
    Ok(Json(flows.await?))
}

fn find_flows(player: &Player, search: &str, limit: usize) -> Flows {
    let mut flows: Vec<_> = (player.run.simulation().open_flows())
        .filter(|flow| {
            let record = &flow.record;
            search.is_empty()
                || record.source.contains(search)
                || record.destination.contains(search)
                || format!("{}/{}", record.group, record.index).contains(search)
        })
        .collect();
    flows.sort_by_key(|flow| flow.record.goodput);
    let total = flows.len();
    flows.truncate(limit);
    let rows = flows.into_iter().map(|flow| {
        let record = flow.record;
        FlowRow {
            name: format!("{}/{}", record.group, record.index),
            source: record.source.to_owned(),
            destination: record.destination.to_owned(),
            started: record.start.since(Time::ZERO).as_secs_f64(),
            delivered: record.counters.delivered.bytes(),
            goodput: record.goodput.bits_per_second(),
            window: flow.window.map(|window| window.bytes()),
            rtt: record.smoothed_rtt.map(Duration::as_secs_f64),
            marks: record.counters.marks,
            retransmitted: record.counters.retransmitted.bytes(),
            timeouts: record.counters.timeouts,
        }
    });
    Flows {
        total,
        flows: rows.collect(),
    }
}

/// The completed transfers of a group.
#[derive(Debug, Serialize)]
pub(super) struct Completions {
    group: String,
    /// Points of the distribution function: seconds, and the fraction that took no longer.
    cdf: Vec<(f64, f64)>,
    slowdown: Option<Slowdowns>,
}

/// The points of a distribution function at most.
const POINTS: usize = 500;

pub(super) async fn completions(
    State(studio): State<Arc<Studio>>,
    Parameters(of): Parameters<OfRun>,
) -> Result<Json<Vec<Completions>>, StudioError> {
    let completions = ask(&studio, of.name(), |player| {
        let recording = player.run.recording();
        let groups = player.run.scenario().groups.iter().enumerate();
        let groups = groups
            .filter_map(|(place, group)| completions_of(recording, place, group.name.clone()));
        groups.collect()
    });
    Ok(Json(completions.await?))
}

fn completions_of(recording: &Recording, place: usize, group: String) -> Option<Completions> {
    let transfers = recording.transfers.iter();
    let transfers: Vec<_> = transfers
        .filter(|(_, group, _)| *group == place)
        .map(|(.., transfer)| *transfer)
        .collect();
    let mut times: Vec<Duration> = transfers
        .iter()
        .filter_map(|transfer| transfer.took)
        .collect();
    times.sort_unstable();
    let count = times.len();
    let last = count.checked_sub(1)?;
    let apart = count.div_ceil(POINTS);
    let places = (0..count).filter(|place| place % apart == 0 || *place == last);
    let cdf = places.filter_map(|place| {
        let time = times.get(place)?;
        Some((time.as_secs_f64(), (place + 1) as f64 / count as f64))
    });
    Some(Completions {
        group,
        cdf: cdf.collect(),
        slowdown: Slowdowns::of(&transfers),
    })
}
