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

pub(super) type Methods = HashMap<String, Handler>;

type Answer<T> = Pin<Box<dyn Future<Output = Result<T, Status>> + Send>>;

type Unary = dyn Fn(Context, Bytes) -> Answer<Bytes> + Send + Sync;
type ClientStreaming = dyn Fn(Context, RequestReceiver) -> Answer<Bytes> + Send + Sync;
type ServerStreaming = dyn Fn(Context, Bytes, ResponseSender) -> Answer<()> + Send + Sync;
type Bidirectional = dyn Fn(Context, RequestReceiver, ResponseSender) -> Answer<()> + Send + Sync;

#[derive(Clone)]
pub(super) enum Handler {
    Unary(Arc<Unary>),
    ClientStreaming(Arc<ClientStreaming>),
    ServerStreaming(Arc<ServerStreaming>),
    Bidirectional(Arc<Bidirectional>),
}

/// A handler with the request that it is to handle.
pub(super) enum Prepared {
    Unary(Arc<Unary>, Bytes),
    ClientStreaming(Arc<ClientStreaming>, RequestReceiver),
    ServerStreaming(Arc<ServerStreaming>, Bytes),
    Bidirectional(Arc<Bidirectional>, RequestReceiver),
}

impl Handler {
    /// Receives what the handler takes at once: one message, or what will be a stream.
    pub(super) async fn prepare(self, frames: Frames) -> Result<Prepared, FrameError> {
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
