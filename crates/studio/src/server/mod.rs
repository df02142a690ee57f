//! The page's server: HTTP at a loopback address.
//!
//! | path | content |
//! |---|---|
//! | `/?token=…` | the page; the token lets the browser in |
//! | `/api/scenario`, `/api/summary`, `/api/flows`, `/api/completions`, `/api/save` | what there is |
//! | `/api/digest`, `/api/packets` | what a run that is simulated again for it gives |
//! | `/api/events` | what happens, as server-sent events |
//! | `/api/control`, `/api/speed`, `/api/change`, `/api/watch`, `/api/undo`, `/api/fork`, `/api/close` | what to do |

mod access;
mod asked;
mod assets;
mod events;
mod observing;
mod queries;
mod requests;
mod shown;
mod simulated;
mod viewers;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::error::StudioError;
use crate::finished::FinishedRun;
use crate::live::LiveRun;
use crate::observed::{Observed, ObservedKind};
use crate::script::Script;
use crate::session::Session;
use access::Access;
use shown::Shown;
use viewers::Viewers;

/// Where the page is.
#[derive(Clone, Debug)]
pub struct Address {
    /// The address for a browser, with the token that lets it in.
    pub url: String,
    /// The socket's address.
    pub socket: SocketAddr,
}

/// What all requests share.
#[derive(Debug)]
struct Studio {
    session: Session,
    access: Arc<Access>,
    viewers: Viewers,
    /// Limits the runs that are simulated again for an answer.
    simulations: Semaphore,
}

/// Serves the page of a script at `address`, port 0 for any, until `stopped` is ready. `ready` is told where it is.
///
/// # Errors
/// The scenario has mistakes or cannot be simulated, or the address cannot be used.
pub async fn serve(
    script: Script,
    address: SocketAddr,
    ready: impl FnOnce(&Address),
    stopped: impl Future<Output = ()>,
) -> Result<(), StudioError> {
    let session = Session::new(script)?;
    let (listener, access, address) = listen(address).await?;
    let studio = Arc::new(Studio {
        session,
        access,
        viewers: Viewers::default(),
        simulations: Semaphore::new(simulated::AT_ONCE),
    });
    ready(&address);
    let ended = async {
        tokio::select! {
            () = viewers::end_unwatched(&studio) => {}
            () = stopped => {}
        }
    };
    serve_until(listener, router(Arc::clone(&studio)), ended).await
}

/// Serves the page of a finished run as [`serve`] does, to be looked at.
///
/// # Errors
/// The address cannot be used.
pub async fn show(
    run: FinishedRun,
    address: SocketAddr,
    ready: impl FnOnce(&Address),
    stopped: impl Future<Output = ()>,
) -> Result<(), StudioError> {
    let routes = shown::routes(Shown::Finished(Box::new(run)));
    serve_routes(routes, address, ready, stopped).await
}

/// Serves the page of a live run as [`serve`] does, to be looked at while it goes on and afterwards.
///
/// # Errors
/// The address cannot be used.
pub async fn show_live(
    run: LiveRun,
    address: SocketAddr,
    ready: impl FnOnce(&Address),
    stopped: impl Future<Output = ()>,
) -> Result<(), StudioError> {
    serve_routes(shown::routes(Shown::Live(run)), address, ready, stopped).await
}

/// Serves a page that has all that it needs, as [`serve`] does: a comparison of finished runs.
///
/// # Errors
/// The address cannot be used.
pub async fn show_page(
    page: String,
    address: SocketAddr,
    ready: impl FnOnce(&Address),
    stopped: impl Future<Output = ()>,
) -> Result<(), StudioError> {
    let (listener, access, address) = listen(address).await?;
    let shown = {
        let access = Arc::clone(&access);
        move || async move { assets::whole_page(&access, page) }
    };
    let routes = Router::new().route("/", get(shown));
    let routes = routes.layer(middleware::from_fn_with_state(access, access::guard));
    ready(&address);
    serve_until(listener, routes, stopped).await
}

/// Serves the page of something that runs as [`serve`] does, to be looked at. `ask` asks it for its status, of which it is
/// told each second; `name` says where it is asked.
///
/// # Errors
/// The address cannot be used.
pub async fn observe<F, A>(
    (kind, name): (ObservedKind, String),
    ask: F,
    address: SocketAddr,
    ready: impl FnOnce(&Address),
    stopped: impl Future<Output = ()>,
) -> Result<(), StudioError>
where
    F: FnMut() -> A,
    A: Future<Output = Result<serde_json::Value, String>>,
{
    let observed = Arc::new(Observed::new(kind, name));
    let routes = observing::routes(Arc::clone(&observed));
    tokio::select! {
        served = serve_routes(routes, address, ready, stopped) => served,
        () = observed.ask(ask) => Ok(()),
    }
}

async fn serve_routes(
    routes: Router,
    address: SocketAddr,
    ready: impl FnOnce(&Address),
    stopped: impl Future<Output = ()>,
) -> Result<(), StudioError> {
    let (listener, access, address) = listen(address).await?;
    ready(&address);
    serve_until(listener, guarded(routes, access), stopped).await
}

async fn serve_until(
    listener: TcpListener,
    routes: Router,
    ended: impl Future<Output = ()>,
) -> Result<(), StudioError> {
    let server = axum::serve(listener, routes);
    tokio::select! {
        served = server.into_future() => served.map_err(StudioError::Serve),
        () = ended => Ok(()),
    }
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, Arc<Access>, Address), StudioError> {
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(|source| StudioError::Listen { address, source })?;
    let socket = listener.local_addr().map_err(StudioError::Serve)?;
    let access = Access::new(socket)?;
    let address = Address {
        url: access.url(),
        socket,
    };
    Ok((listener, Arc::new(access), address))
}

/// Adds the files of the page, and lets nobody in without the token.
fn guarded(routes: Router, access: Arc<Access>) -> Router {
    let page = {
        let access = Arc::clone(&access);
        move || async move { assets::page(&access) }
    };
    routes
        .route("/", get(page))
        .route("/studio.js", get(assets::script))
        .route("/studio.css", get(assets::style))
        .layer(middleware::from_fn_with_state(access, access::guard))
}

fn router(studio: Arc<Studio>) -> Router {
    let access = Arc::clone(&studio.access);
    let routes = Router::new()
        .route("/api/scenario", get(queries::scenario))
        .route("/api/summary", get(queries::summary))
        .route("/api/flows", get(queries::flows))
        .route("/api/completions", get(queries::completions))
        .route("/api/digest", get(simulated::digest))
        .route("/api/packets", get(simulated::packets))
        .route("/api/save", get(queries::save))
        .route("/api/events", get(events::events))
        .route("/api/control", post(requests::control))
        .route("/api/speed", post(requests::speed))
        .route("/api/change", post(requests::change))
        .route("/api/watch", post(requests::watch))
        .route("/api/undo", post(requests::undo))
        .route("/api/fork", post(requests::fork))
        .route("/api/close", post(requests::close))
        .fallback(|| async { refusal(StatusCode::NOT_FOUND, "there is no such page") })
        .with_state(studio);
    guarded(routes, access)
}

/// An answer that refuses, with the reason for people.
fn refusal(status: StatusCode, reason: impl std::fmt::Display) -> Response {
    let body = serde_json::json!({ "error": reason.to_string() });
    (status, Json(body)).into_response()
}

impl IntoResponse for StudioError {
    fn into_response(self) -> Response {
        let status = match self {
            Self::NoRun(_) => StatusCode::NOT_FOUND,
            Self::TwoRuns | Self::IsFinished | Self::IsRunning => StatusCode::CONFLICT,
            Self::Stopped
            | Self::Serve(_)
            | Self::Listen { .. }
            | Self::Files(_)
            | Self::Output(_) => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        };
        refusal(status, self)
    }
}
