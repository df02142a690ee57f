//! HTTP/3, HTTP/2 and HTTP/1.1 beside each other, over real sockets on loopback.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod binding;
mod curl;
mod draining;
mod limits;
mod requests;
mod support;
mod tls;
