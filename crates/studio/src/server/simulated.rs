//! Answers for which a run is simulated again, beside the one that goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::State;
use axum::response::Json;
use serde::Deserialize;
use weir_scenario::Scenario;

use super::Studio;
use super::asked::Parameters;
use super::queries::OfRun;
use crate::digest::{self, Digests};
use crate::error::StudioError;
use crate::packets::{self, MOST_PACKETS, PacketTrace, Whose};
use crate::script;

/// The runs that are simulated for answers at once.
pub(super) const AT_ONCE: usize = 2;

pub(super) async fn digest(
    State(studio): State<Arc<Studio>>,
    Parameters(of): Parameters<OfRun>,
) -> Result<Json<Digests>, StudioError> {
    let (scenario, _) = scenario(&studio, of.name()).await?;
    let digests = simulate(&studio, move |is_wanted| {
        digest::of_whole_run(scenario, is_wanted)
    });
    Ok(Json(digests.await?))
}

#[derive(Debug, Deserialize)]
pub(super) struct Wanted {
    run: Option<String>,
    /// The name of a flow, or else of a port.
    flow: Option<String>,
    port: Option<String>,
    /// Up to when, in seconds of the run; its present time if it is absent.
    until: Option<f64>,
    limit: Option<usize>,
}

/// The packets of an answer without a limit.
const PACKETS: usize = 100;

pub(super) async fn packets(
    State(studio): State<Arc<Studio>>,
    Parameters(wanted): Parameters<Wanted>,
) -> Result<Json<PacketTrace>, StudioError> {
    let of = OfRun { run: wanted.run };
    let (scenario, now) = scenario(&studio, of.name()).await?;
    let until = match wanted.until {
        Some(seconds) => script::time(seconds).ok_or(StudioError::Time(seconds))?,
        None => now,
    };
    let whose = match (wanted.flow, wanted.port) {
        (Some(flow), _) => Whose::Flow(flow),
        (None, Some(port)) => Whose::Port(port),
        (None, None) => return Err(StudioError::NoSubject),
    };
    let most = wanted.limit.unwrap_or(PACKETS).min(MOST_PACKETS);
    let trace = simulate(&studio, move |is_wanted| {
        packets::trace(scenario, &whose, until.min(now), most, is_wanted)
    });
    Ok(Json(trace.await?))
}

/// Returns the scenario of a run with its changes, and the run's present time.
async fn scenario(studio: &Studio, run: &str) -> Result<(Scenario, weir_units::Time), StudioError> {
    let run = studio.session.run(run)?;
    let asked = run.ask(|player| {
        let run = &player.run;
        (run.script().scenario(), run.present())
    });
    let (scenario, now) = asked.await?;
    Ok((scenario?, now))
}

/// Lets a thread of its own simulate, until it is done or nobody waits for it any more.
async fn simulate<T: Send + 'static>(
    studio: &Studio,
    act: impl FnOnce(&AtomicBool) -> Result<T, StudioError> + Send + 'static,
) -> Result<T, StudioError> {
    let permit = studio.simulations.acquire().await;
    let _permit = permit.map_err(|_| StudioError::Stopped)?;
    let is_wanted = Arc::new(AtomicBool::new(true));
    let _waiting = Waiting(Arc::clone(&is_wanted));
    let done = tokio::task::spawn_blocking(move || act(&is_wanted));
    done.await.map_err(|_| StudioError::Stopped)?
}

/// Somebody who waits for an answer.
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
