//! What a page asks for.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use weir_units::Duration;

use super::Studio;
use super::asked::Body;
use crate::error::StudioError;
use crate::script;
use crate::worker::Player;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Play,
    Pause,
    Step,
    Seek,
    Restart,
}

#[derive(Debug, Deserialize)]
pub(super) struct Control {
    run: String,
    action: Action,
    /// Of `seek`, in seconds of the run.
    to: Option<f64>,
    /// Of `step`, in seconds.
    by: Option<f64>,
}

pub(super) async fn control(
    State(studio): State<Arc<Studio>>,
    Body(control): Body<Control>,
) -> Response {
    let act = move |player: &mut Player| match control.action {
        Action::Play => {
            player.play(true);
            Ok(())
        }
        Action::Pause => {
            player.play(false);
            Ok(())
        }
        Action::Step => player.step(control.by.map(span).transpose()?),
        Action::Seek => player.seek(time(control.to.unwrap_or(0.0))?),
        Action::Restart => player.seek(time(0.0)?),
    };
    answer(act_on(&studio, &control.run, act).await)
}

#[derive(Debug, Deserialize)]
pub(super) struct Speed {
    run: String,
    speed: Option<f64>,
}

pub(super) async fn speed(State(studio): State<Arc<Studio>>, Body(asked): Body<Speed>) -> Response {
    let Speed { run, speed } = asked;
    answer(act_on(&studio, &run, move |player| player.set_speed(speed)).await)
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum LinkAction {
    Fail,
    Restore,
}

#[derive(Debug, Deserialize)]
pub(super) struct Turn {
    run: String,
    knob: String,
    value: Option<f64>,
    action: Option<LinkAction>,
}

pub(super) async fn change(State(studio): State<Arc<Studio>>, Body(turn): Body<Turn>) -> Response {
    let Turn {
        run,
        knob,
        value,
        action,
    } = turn;
    let act = move |player: &mut Player| match action {
        Some(LinkAction::Fail) => player.run.set_link(&knob, true),
        Some(LinkAction::Restore) => player.run.set_link(&knob, false),
        None => player.run.set(&knob, value.unwrap_or(f64::NAN)),
    };
    answer(act_on(&studio, &run, act).await)
}

#[derive(Debug, Deserialize)]
pub(super) struct Watched {
    run: String,
    /// Names of flows.
    flows: Vec<String>,
}

pub(super) async fn watch(
    State(studio): State<Arc<Studio>>,
    Body(watched): Body<Watched>,
) -> Response {
    let Watched { run, flows } = watched;
    answer(act_on(&studio, &run, move |player| player.watch(&flows)).await)
}

#[derive(Debug, Deserialize)]
pub(super) struct Named {
    run: String,
}

pub(super) async fn undo(State(studio): State<Arc<Studio>>, Body(named): Body<Named>) -> Response {
    answer(act_on(&studio, &named.run, Player::undo).await)
}

pub(super) async fn fork(State(studio): State<Arc<Studio>>) -> Response {
    answer(studio.session.fork().await)
}

pub(super) async fn close(State(studio): State<Arc<Studio>>, Body(named): Body<Named>) -> Response {
    answer(studio.session.close(&named.run))
}

async fn act_on(
    studio: &Studio,
    run: &str,
    act: impl FnOnce(&mut Player) -> Result<(), StudioError> + Send + 'static,
) -> Result<(), StudioError> {
    studio.session.run(run)?.ask(act).await?
}

fn answer(result: Result<(), StudioError>) -> Response {
    match result {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => error.into_response(),
    }
}

fn time(seconds: f64) -> Result<weir_units::Time, StudioError> {
    script::time(seconds).ok_or(StudioError::Time(seconds))
}

fn span(seconds: f64) -> Result<Duration, StudioError> {
    Ok(time(seconds)?.since(weir_units::Time::ZERO))
}
