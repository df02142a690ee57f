//! What the client sends.

use super::{FrameHeader, ProtocolError, VERSION, finish, take};
use crate::Sha256Digest;
use crate::path::{PathError, RelativePath};

/// A file to be copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// Its name below the directory of the connection.
    pub path: RelativePath,
    /// Its size in bytes.
    pub size: u64,
    /// Its permissions, at most `0o777`.
    pub mode: u16,
}

/// A message of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// 1: the directory for all files of the connection, below the one that is served.
    Hello(RelativePath),
    /// 2: the next file.
    File(FileHeader),
    /// 3: the first byte that follows: 0, or the length that the server has offered.
    Start(u64),
    /// 4: the next bytes.
    Data(&'a [u8]),
    /// 5: the end of the file, and the SHA-256 of all of it.
    End(Sha256Digest),
    /// 6: the server has the file already.
    Keep,
}

/// Permissions that a file may have.
const PERMISSIONS: u16 = 0o777;

impl<'a> Request<'a> {
    /// The type of a data frame, whose contents follow the header without a change.
    pub(crate) const DATA: u8 = 4;

    /// Returns the name in messages.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Hello(_) => "a hello",
            Self::File(_) => "a file",
            Self::Start(_) => "a start",
            Self::Data(_) => "data",
            Self::End(_) => "an end",
            Self::Keep => "a keep",
        }
    }

    /// Decodes the contents of a frame of type `kind`.
    ///
    /// # Errors
    /// [`ProtocolError`].
    pub fn decode(kind: u8, contents: &'a [u8]) -> Result<Self, ProtocolError> {
        let mut rest = contents;
        Ok(match kind {
            1 => {
                let version = u16::from_be_bytes(take(&mut rest, "a hello")?);
                if version != VERSION {
                    return Err(ProtocolError::Version(version));
                }
                Self::Hello(path(rest)?)
            }
            2 => {
                let size = u64::from_be_bytes(take(&mut rest, "a file")?);
                let mode = u16::from_be_bytes(take(&mut rest, "a file")?);
                let path = path(rest)?;
                if mode & !PERMISSIONS != 0 || path.split().is_none() {
                    return Err(ProtocolError::Contents("a file"));
                }
                Self::File(FileHeader { path, size, mode })
            }
            3 => {
                let offset = u64::from_be_bytes(take(&mut rest, "a start")?);
                finish(rest, "a start")?;
                Self::Start(offset)
            }
            Self::DATA if !rest.is_empty() => Self::Data(rest),
            Self::DATA => return Err(ProtocolError::Contents("data")),
            5 => {
                let digest = take(&mut rest, "an end")?;
                finish(rest, "an end")?;
                Self::End(Sha256Digest(digest))
            }
            6 => {
                finish(rest, "a keep")?;
                Self::Keep
            }
            other => return Err(ProtocolError::UnknownType(other)),
        })
    }

    /// Appends the frame to `buffer`.
    pub fn encode(&self, buffer: &mut Vec<u8>) {
        match self {
            Self::Hello(directory) => FrameHeader::frame(1, buffer, |buffer| {
                buffer.extend_from_slice(&VERSION.to_be_bytes());
                buffer.extend_from_slice(directory.to_string().as_bytes());
            }),
            Self::File(FileHeader { path, size, mode }) => {
                FrameHeader::frame(2, buffer, |buffer| {
                    buffer.extend_from_slice(&size.to_be_bytes());
                    buffer.extend_from_slice(&mode.to_be_bytes());
                    buffer.extend_from_slice(path.to_string().as_bytes());
                })
            }
            Self::Start(offset) => FrameHeader::frame(3, buffer, |buffer| {
                buffer.extend_from_slice(&offset.to_be_bytes());
            }),
            Self::Data(data) => FrameHeader::frame(Self::DATA, buffer, |buffer| {
                buffer.extend_from_slice(data);
            }),
            Self::End(digest) => FrameHeader::frame(5, buffer, |buffer| {
                buffer.extend_from_slice(&digest.0);
            }),
            Self::Keep => FrameHeader::frame(6, buffer, |_| {}),
        }
    }
}

fn path(bytes: &[u8]) -> Result<RelativePath, ProtocolError> {
    let text = std::str::from_utf8(bytes).map_err(|_| PathError::Encoding)?;
    Ok(RelativePath::parse(text)?)
}
