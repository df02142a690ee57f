//! The frames of a stream that arrives.

use bytes::Bytes;
use weir_net::rpc::MESSAGE_TOO_LARGE;
use weir_net::{ReadError, RecvStream};

use crate::wire::{CALL_MALFORMED, Frame, FrameReader, FrameType, Limits, WireError};

/// The largest piece that is read at once.
const PIECE: usize = 1 << 20;

/// The frames of a stream that arrives.
pub(crate) struct Frames {
    recv: RecvStream,
    reader: FrameReader,
}

/// Why a frame did not arrive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl Frames {
    pub(crate) fn new(recv: RecvStream, limits: Limits) -> Self {
        Self {
            recv,
            reader: FrameReader::new(limits),
        }
    }

    /// Returns the next frame; `None` at the stream's end. Dropping the future loses nothing. After
    /// an error nothing more is read.
    pub(crate) async fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        match self.read().await {
            Ok(frame) => Ok(frame),
            Err(error) => Err(self.reject(error)),
        }
    }

    /// Returns the payload of the next frame, which has to be of this type; `None` at the stream's
    /// end.
    pub(crate) async fn next_of(
        &mut self,
        expected: FrameType,
    ) -> Result<Option<Bytes>, FrameError> {
        match self.next().await? {
            None => Ok(None),
            Some(frame) if frame.frame_type == expected => Ok(Some(frame.payload)),
            Some(frame) => Err(self.reject(WireError::Misplaced(frame.frame_type).into())),
        }
    }

    /// Stops the stream because of an error.
    pub(crate) fn reject(&mut self, error: FrameError) -> FrameError {
        match &error {
            FrameError::Wire(WireError::TooLarge { .. }) => self.recv.stop(MESSAGE_TOO_LARGE),
            FrameError::Wire(_) => self.recv.stop(CALL_MALFORMED),
            FrameError::Read(_) => {}
        }
        error
    }

    async fn read(&mut self) -> Result<Option<Frame>, FrameError> {
        loop {
            if let Some(frame) = self.reader.next_frame()? {
                return Ok(Some(frame));
            }
            match self.recv.read_chunk(PIECE).await? {
                Some(piece) => self.reader.push(piece),
                None => {
                    self.reader.finish()?;
                    return Ok(None);
                }
            }
        }
    }

    /// Returns whether the stream's bytes may have been replayed.
    pub(crate) fn is_early_data(&self) -> bool {
        self.recv.is_early_data()
    }

    /// Asks the peer to stop sending, with a code.
    pub(crate) fn stop(&mut self, code: u64) {
        self.recv.stop(code);
    }
}
