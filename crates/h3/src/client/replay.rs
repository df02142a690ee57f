//! A request body that can be sent again, as long as it is short.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use crate::error::BoxError;

/// The longest body that is remembered, in bytes.
const MAX_REMEMBERED: usize = 256 * 1024;

/// A body, and what was sent of it. The attempts of a request share it, one after the other.
pub(super) struct Replay<B> {
    shared: Arc<Mutex<Recorded<B>>>,
}

/// The body of one attempt.
pub(super) struct Attempt<B> {
    shared: Arc<Mutex<Recorded<B>>>,
    /// How many parts it has sent.
    sent: usize,
}

struct Recorded<B> {
    body: Pin<Box<B>>,
    parts: Vec<Part>,
    remembered: usize,
    /// Whether parts are missing.
    is_forgotten: bool,
}

#[derive(Clone)]
enum Part {
    Data(Bytes),
    Trailers(HeaderMap),
}

impl<B> Replay<B> {
    pub(super) fn new(body: B) -> Self {
        Self {
            shared: Arc::new(Mutex::new(Recorded {
                body: Box::pin(body),
                parts: Vec::new(),
                remembered: 0,
                is_forgotten: false,
            })),
        }
    }

    /// Returns the body for an attempt; `None` where it cannot be sent from the beginning any more.
    pub(super) fn attempt(&self) -> Option<Attempt<B>> {
        let recorded = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        (!recorded.is_forgotten).then(|| Attempt {
            shared: self.shared.clone(),
            sent: 0,
        })
    }
}

impl<B> Recorded<B> {
    fn remember(&mut self, part: &Part) {
        if self.is_forgotten {
            return;
        }
        if let Part::Data(data) = part {
            self.remembered += data.len();
        }
        if self.remembered > MAX_REMEMBERED {
            self.is_forgotten = true;
            self.parts = Vec::new();
        } else {
            self.parts.push(part.clone());
        }
    }
}

impl<B> Body for Attempt<B>
where
    B: Body<Data: Buf, Error: Into<BoxError>>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let attempt = self.get_mut();
        let mut recorded = attempt
            .shared
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let part = match recorded.parts.get(attempt.sent) {
            Some(part) => part.clone(),
            None => {
                let Some(frame) = ready!(recorded.body.as_mut().poll_frame(cx)) else {
                    return Poll::Ready(None);
                };
                let Some(part) = Part::of(frame.map_err(Into::into)?) else {
                    return Poll::Ready(None);
                };
                recorded.remember(&part);
                part
            }
        };
        attempt.sent += 1;
        Poll::Ready(Some(Ok(part.into())))
    }

    fn is_end_stream(&self) -> bool {
        let recorded = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        self.sent >= recorded.parts.len() && recorded.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

impl Part {
    fn of<D: Buf>(frame: Frame<D>) -> Option<Self> {
        match frame.into_data() {
            Ok(mut data) => Some(Self::Data(data.copy_to_bytes(data.remaining()))),
            Err(frame) => frame.into_trailers().ok().map(Self::Trailers),
        }
    }
}

impl From<Part> for Frame<Bytes> {
    fn from(part: Part) -> Self {
        match part {
            Part::Data(data) => Self::data(data),
            Part::Trailers(trailers) => Self::trailers(trailers),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    struct Chunks(VecDeque<Bytes>);

    impl Body for Chunks {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop_front().map(|data| Ok(Frame::data(data))))
        }
    }

    /// Takes up to so many chunks.
    fn take(attempt: &mut Attempt<Chunks>, count: usize) -> Vec<u8> {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut taken = Vec::new();
        for _ in 0..count {
            match Pin::new(&mut *attempt).poll_frame(&mut cx) {
                Poll::Ready(Some(Ok(frame))) => taken.extend(frame.into_data().unwrap()),
                _ => break,
            }
        }
        taken
    }

    proptest! {
        #[test]
        fn each_attempt_sends_all(
            chunks in prop::collection::vec(0usize..200_000, 0..6),
            cuts in prop::collection::vec(0usize..6, 0..4),
        ) {
            let chunks: VecDeque<_> = (0u8..)
                .zip(&chunks)
                .map(|(index, length)| Bytes::from(vec![index; *length]))
                .collect();
            let whole: Vec<u8> = chunks.iter().flatten().copied().collect();
            let replay = Replay::new(Chunks(chunks));
            let mut was_long = false;
            for cut in cuts {
                let Some(mut attempt) = replay.attempt() else {
                    prop_assert!(was_long);
                    return Ok(());
                };
                let taken = take(&mut attempt, cut);
                prop_assert!(whole.starts_with(&taken));
                was_long |= taken.len() > MAX_REMEMBERED;
            }
            if let Some(mut attempt) = replay.attempt() {
                prop_assert!(take(&mut attempt, usize::MAX) == whole);
            } else {
                prop_assert!(was_long);
            }
        }
    }
}
