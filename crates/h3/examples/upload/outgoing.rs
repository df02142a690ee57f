//! The body that is sent: what a reader has, and its checksum as a trailer.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue};
use http_body::{Body, Frame};
use indicatif::ProgressBar;
use sha2::{Digest, Sha256};
use tokio::io::AsyncRead;
use tokio_util::io::poll_read_buf;

use super::{CHECKSUM, hexadecimal};

/// How much is read at once.
const CHUNK: usize = 64 * 1024;

pub(super) struct Outgoing<R> {
    reader: R,
    hash: Sha256,
    progress: ProgressBar,
    is_complete: bool,
}

impl<R> Outgoing<R> {
    pub(super) fn new(reader: R, progress: ProgressBar) -> Self {
        Self {
            reader,
            hash: Sha256::new(),
            progress,
            is_complete: false,
        }
    }

    fn trailers(&self) -> HeaderMap {
        let mut trailers = HeaderMap::new();
        // Hexadecimal digits always are a value.
        if let Ok(value) = HeaderValue::try_from(hexadecimal(&self.hash.clone().finalize())) {
            trailers.insert(CHECKSUM, value);
        }
        trailers
    }
}

impl<R: AsyncRead + Unpin> Body for Outgoing<R> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let body = self.get_mut();
        if body.is_complete {
            return Poll::Ready(None);
        }
        let mut chunk = BytesMut::with_capacity(CHUNK);
        let read = ready!(poll_read_buf(Pin::new(&mut body.reader), cx, &mut chunk))?;
        if read == 0 {
            body.is_complete = true;
            return Poll::Ready(Some(Ok(Frame::trailers(body.trailers()))));
        }
        body.hash.update(&chunk);
        body.progress.inc(read as u64);
        Poll::Ready(Some(Ok(Frame::data(chunk.freeze()))))
    }
}
