//! Who may look: browsers that opened the address with the token. Other programs of the machine, and pages of other
//! sites in the same browser, are refused.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{COOKIE, HOST, HeaderMap, ORIGIN};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::Response;

use super::refusal;
use crate::error::StudioError;

/// The token and the names of the server.
#[derive(Debug)]
pub(super) struct Access {
    socket: SocketAddr,
    token: String,
}

impl Access {
    /// Creates a random token.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(super) fn new(socket: SocketAddr) -> Result<Self, StudioError> {
        let mut random = [0; 16];
        aws_lc_rs::rand::fill(&mut random)
            .map_err(|_| StudioError::Serve(std::io::Error::other("no random numbers")))?;
        let token = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { socket, token })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/?token={}", self.socket, self.token)
    }

    /// Returns the header that makes the browser send the token with each request.
    pub(super) fn cookie(&self) -> Option<HeaderValue> {
        let cookie = format!(
            "{}={}; Path=/; HttpOnly; SameSite=Strict",
            self.cookie_name(),
            self.token
        );
        HeaderValue::from_str(&cookie).ok()
    }

    /// Several studios of one machine have cookies of their own: browsers do not tell ports apart.
    fn cookie_name(&self) -> String {
        format!("weir-studio-{}", self.socket.port())
    }

    /// Whether a request names this server as a browser at its address does. At a loopback address, names that point
    /// here from elsewhere are not among them (DNS rebinding); at another one, it may have any name.
    fn is_named(&self, host: &str) -> bool {
        let port = self.socket.port();
        let names = ["localhost", "127.0.0.1", "[::1]"];
        !self.socket.ip().is_loopback()
            || host == self.socket.to_string()
            || names.iter().any(|name| host == format!("{name}:{port}"))
    }

    fn has_token(&self, headers: &HeaderMap, query: Option<&str>) -> bool {
        let cookies = headers.get_all(COOKIE).iter();
        let cookies = cookies.filter_map(|cookies| cookies.to_str().ok());
        let name = self.cookie_name();
        let mut by_cookie = cookies
            .flat_map(|cookies| cookies.split("; "))
            .filter_map(|cookie| {
                let (key, value) = cookie.split_once('=')?;
                (key == name).then_some(value)
            });
        let mut by_query = query.into_iter().flat_map(|query| {
            query
                .split('&')
                .filter_map(|pair| pair.strip_prefix("token="))
        });
        by_cookie.any(|token| self.is_token(token)) || by_query.any(|token| self.is_token(token))
    }

    /// Compares in the same time for all tokens of a length.
    fn is_token(&self, token: &str) -> bool {
        aws_lc_rs::constant_time::verify_slices_are_equal(token.as_bytes(), self.token.as_bytes())
            .is_ok()
    }
}

/// Lets requests pass that may.
pub(super) async fn guard(
    State(access): State<Arc<Access>>,
    request: Request,
    next: Next,
) -> Response {
    let headers = request.headers();
    let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_owned();
    let host = headers.get(HOST).map(text).unwrap_or_default();
    let origin = headers.get(ORIGIN).map(text);
    let is_own = origin.is_none_or(|origin| origin == format!("http://{host}"));
    if !access.is_named(&host) || !is_own {
        return refusal(
            StatusCode::FORBIDDEN,
            "requests come from the address that `weir studio` printed, not from another site",
        );
    }
    if !access.has_token(headers, request.uri().query()) {
        return refusal(
            StatusCode::FORBIDDEN,
            "the token is wrong or missing: open the address that `weir studio` printed",
        );
    }
    next.run(request).await
}
