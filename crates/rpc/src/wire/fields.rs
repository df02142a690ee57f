//! The fields that headers and statuses have in common: strings and metadata.

use bytes::Bytes;
use weir_quic::codec::{Reader, put_varint};

use super::{Limits, WireError};
use crate::metadata::Metadata;

pub(super) fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(super) fn put_metadata(out: &mut Vec<u8>, metadata: &Metadata) {
    put_varint(out, metadata.len() as u64);
    for (name, value) in metadata.iter() {
        put_string(out, name.as_bytes());
        put_string(out, value);
    }
}

/// Reads metadata from a reader on `payload`; the values are parts of it.
pub(super) fn read_metadata(
    payload: &Bytes,
    reader: &mut Reader<'_>,
    limits: &Limits,
) -> Result<Metadata, WireError> {
    let count = reader.varint()?;
    let limit = limits.metadata_pairs;
    if count > limit as u64 {
        return Err(WireError::TooManyPairs { count, limit });
    }
    let mut metadata = Metadata::new();
    for _ in 0..count {
        let name = reader.length_prefixed()?;
        let value = payload.slice_ref(reader.length_prefixed()?);
        let name = std::str::from_utf8(name).unwrap_or_default();
        metadata.add(name, value)?;
    }
    Ok(metadata)
}
