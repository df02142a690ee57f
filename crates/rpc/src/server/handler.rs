//! Handlers of the four kinds of methods.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

use super::{Context, RequestReceiver, ResponseSender};
use crate::frames::{FrameError, Frames};
use crate::status::Status;
use crate::wire::{FrameType, WireError};

pub(super) type Methods = HashMap<String, Arc<Handler>>;

type Answer<T> = Pin<Box<dyn Future<Output = Result<T, Status>> + Send>>;

pub(super) type Unary = dyn Fn(Context, Bytes) -> Answer<Bytes> + Send + Sync;
pub(super) type ClientStreaming = dyn Fn(Context, RequestReceiver) -> Answer<Bytes> + Send + Sync;
pub(super) type ServerStreaming =
    dyn Fn(Context, Bytes, ResponseSender) -> Answer<()> + Send + Sync;
pub(super) type Bidirectional =
    dyn Fn(Context, RequestReceiver, ResponseSender) -> Answer<()> + Send + Sync;

pub(super) enum Handler {
    Unary(Box<Unary>),
    ClientStreaming(Box<ClientStreaming>),
    ServerStreaming(Box<ServerStreaming>),
    Bidirectional(Box<Bidirectional>),
}

/// A handler with the request that it is to handle.
pub(super) enum Prepared<'a> {
    Unary(&'a Unary, Bytes),
    ClientStreaming(&'a ClientStreaming, RequestReceiver),
    ServerStreaming(&'a ServerStreaming, Bytes),
    Bidirectional(&'a Bidirectional, RequestReceiver),
}

impl Handler {
    /// Receives what the handler takes at once: one message, or what will be a stream.
    pub(super) async fn prepare(&self, frames: Frames) -> Result<Prepared<'_>, FrameError> {
        Ok(match self {
            Self::Unary(handler) => Prepared::Unary(handler, only_message(frames).await?),
            Self::ClientStreaming(handler) => {
                Prepared::ClientStreaming(handler, RequestReceiver::new(frames))
            }
            Self::ServerStreaming(handler) => {
                Prepared::ServerStreaming(handler, only_message(frames).await?)
            }
            Self::Bidirectional(handler) => {
                Prepared::Bidirectional(handler, RequestReceiver::new(frames))
            }
        })
    }
}

/// Receives a request that is one message.
async fn only_message(mut frames: Frames) -> Result<Bytes, FrameError> {
    let message = frames.next_of(FrameType::Message).await?;
    let Some(message) = message else {
        return Err(frames.reject(WireError::Truncated.into()));
    };
    match frames.next_of(FrameType::Message).await? {
        None => Ok(message),
        Some(_) => Err(frames.reject(WireError::Misplaced(FrameType::Message).into())),
    }
}
