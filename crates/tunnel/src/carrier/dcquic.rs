//! A stream of a DCQUIC connection.

use std::collections::VecDeque;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use weir_net::{ReadError, RecvStream, SendStream, WriteError};

use super::{Broken, Carrier, CarrierKind};
use crate::refusal::Refusal;

/// Both halves of a stream. Dropping it before its end resets it.
#[derive(Debug)]
pub(crate) struct DcquicStream {
    send: SendStream,
    receive: RecvStream,
}

impl DcquicStream {
    pub(crate) fn new(send: SendStream, receive: RecvStream) -> Self {
        Self { send, receive }
    }
}

impl Carrier for DcquicStream {
    const ANSWERS: bool = false;
    const KIND: CarrierKind = CarrierKind::Dcquic;

    fn poll_send(&mut self, cx: &mut Context<'_>, data: &mut Bytes) -> Poll<Result<(), Broken>> {
        while !data.is_empty() {
            ready!(self.send.poll_write_bytes(cx, data)).map_err(of_write)?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_finish(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        Poll::Ready(self.send.finish().map_err(of_write))
    }

    /// What was written leaves once the task yields.
    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        Poll::Ready(Ok(()))
    }

    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        enough: usize,
        chunks: &mut VecDeque<Bytes>,
    ) -> Poll<Result<bool, Broken>> {
        let received = self.receive.poll_read_chunks(cx, enough, chunks);
        received.map_err(|error| of_read(&error))
    }

    fn into_flow(self) -> Result<(SendStream, RecvStream), Self> {
        Ok((self.send, self.receive))
    }

    fn reset(&mut self, refusal: Refusal) {
        let code = refusal.code().into();
        // A direction that has ended needs no reset.
        let _ = self.send.reset(code);
        self.receive.stop(code);
    }
}

fn of_write(error: WriteError) -> Broken {
    match error {
        WriteError::Stopped(code) => Broken::ByPeer(Refusal::of_code(code)),
        WriteError::Finished | WriteError::EarlyDataRejected | WriteError::Connection(_) => {
            Broken::Lost
        }
    }
}

fn of_read(error: &ReadError) -> Broken {
    match error {
        ReadError::Reset(code) => Broken::ByPeer(Refusal::of_code(*code)),
        ReadError::Stopped
        | ReadError::TooLong { .. }
        | ReadError::EarlyDataRejected
        | ReadError::Connection(_) => Broken::Lost,
    }
}
