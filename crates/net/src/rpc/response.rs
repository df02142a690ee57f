//! The response to a call.

use std::iter;

use bytes::{Bytes, BytesMut};

/// A response, of one piece or several. None is copied before it is sent.
#[derive(Clone, Debug, Default)]
pub struct Response {
    first: Bytes,
    more: Vec<Bytes>,
}

impl Response {
    /// Makes a response of pieces, such as a header of its own and a body that others have too.
    pub fn of_pieces(pieces: impl IntoIterator<Item = Bytes>) -> Self {
        let mut pieces = pieces.into_iter();
        Self {
            first: pieces.next().unwrap_or_default(),
            more: pieces.collect(),
        }
    }

    /// Returns its pieces, in order. Those that were written are empty.
    pub(crate) fn pieces(&mut self) -> impl Iterator<Item = &mut Bytes> {
        iter::once(&mut self.first).chain(&mut self.more)
    }
}

impl From<Bytes> for Response {
    fn from(whole: Bytes) -> Self {
        Self {
            first: whole,
            more: Vec::new(),
        }
    }
}

/// What [`Bytes`] are made of.
macro_rules! whole {
    ($($whole:ty),*) => {$(
        impl From<$whole> for Response {
            fn from(whole: $whole) -> Self {
                Bytes::from(whole).into()
            }
        }
    )*};
}

whole!(
    BytesMut,
    Vec<u8>,
    Box<[u8]>,
    String,
    &'static [u8],
    &'static str
);
