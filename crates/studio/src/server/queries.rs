//! What there is to see, for whoever asks.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, HeaderName};
use axum::response::{IntoResponse, Json, Response};
use serde::{Deserialize, Serialize};
use weir_results::{RunSummary, Slowdowns};
use weir_units::Duration;

use super::Studio;
use super::asked::Parameters;
use crate::description::Description;
use crate::error::StudioError;
use crate::flow_rows::FlowRow;
use crate::samples::Recording;
use crate::session::NAMES;
use crate::worker::Player;

#[derive(Debug, Deserialize)]
pub(super) struct OfRun {
    pub(super) run: Option<String>,
}

impl OfRun {
    pub(super) fn name(&self) -> &str {
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
    pub(super) search: String,
    pub(super) limit: Option<usize>,
}

/// Open flows, the slowest first.
#[derive(Debug, Serialize)]
pub(super) struct Flows {
    /// How many match.
    total: usize,
    flows: Vec<FlowRow>,
}

impl Flows {
    /// Returns those that match, the slowest first.
    pub(super) fn slowest(
        flows: impl Iterator<Item = FlowRow>,
        search: &str,
        limit: usize,
    ) -> Self {
        let mut flows: Vec<FlowRow> = flows.filter(|flow| flow.matches(search)).collect();
        flows.sort_by_key(|flow| flow.goodput);
        let total = flows.len();
        flows.truncate(limit);
        Self { total, flows }
    }
}

/// The flows of an answer at most.
pub(super) const MOST_FLOWS: usize = 1_000;

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
    let open = player.run.simulation().open_flows();
    Flows::slowest(
        open.map(|flow| FlowRow::of(&flow.record, flow.window)),
        search,
        limit,
    )
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

pub(super) fn completions_of(
    recording: &Recording,
    place: usize,
    group: String,
) -> Option<Completions> {
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
