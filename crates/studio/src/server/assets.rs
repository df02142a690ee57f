//! The files of the page, as `page/` builds them.

use axum::http::HeaderValue;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, SET_COOKIE,
};
use axum::response::{IntoResponse, Response};

use super::access::Access;

const PAGE: &str = include_str!("../../page/dist/index.html");
const SCRIPT: &str = include_str!("../../page/dist/studio.js");
const STYLE: &str = include_str!("../../page/dist/studio.css");

/// Nothing is loaded from elsewhere, nor sent there. Plots set styles of their elements, and are exported by `blob:` and
/// `data:`.
const POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' blob: data:; \
                      frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// A page that has its script and its style in it.
const WHOLE_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                            img-src blob: data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

pub(super) fn page(access: &Access) -> Response {
    protected(file("text/html; charset=utf-8", PAGE), POLICY, access)
}

/// A page that needs nothing else.
pub(super) fn whole_page(access: &Access, content: String) -> Response {
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-cache"),
    ];
    let response = (headers, content).into_response();
    protected(response, WHOLE_POLICY, access)
}

fn protected(mut response: Response, policy: &'static str, access: &Access) -> Response {
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if let Some(cookie) = access.cookie() {
        headers.insert(SET_COOKIE, cookie);
    }
    response
}

pub(super) async fn script() -> Response {
    file("text/javascript; charset=utf-8", SCRIPT)
}

pub(super) async fn style() -> Response {
    file("text/css; charset=utf-8", STYLE)
}

fn file(kind: &'static str, content: &'static str) -> Response {
    let headers = [(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache")];
    (headers, content).into_response()
}
