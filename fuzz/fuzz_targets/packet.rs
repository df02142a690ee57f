//! Fuzzes the packet header parser: parsing any datagram does not panic, every offset lies within the
//! datagram, and a parsed long header can be encoded and parsed again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_quic::packet::{
    Header, Invariants, Kind, LongFields, LongKind, Retry, supported_versions,
    write_control_header, write_long_header, write_retry, write_version_negotiation,
};

fuzz_target!(|input: (u8, &[u8])| {
    let (short_dcid_len, mut datagram) = input;
    if let Ok(invariants) = Invariants::decode(datagram) {
        let Invariants {
            destination,
            source,
            ..
        } = invariants;
        let mut answer = Vec::new();
        write_version_negotiation(&mut answer, source, destination, &[1], 0);
        let read = Invariants::decode(&answer).unwrap();
        assert_eq!((read.destination, read.source), (source, destination));
    }
    while let Ok(header) = Header::decode(datagram, usize::from(short_dcid_len)) {
        let again = rewritten(datagram, &header);
        if let Some(again) = again {
            let read = Header::decode(&again, usize::from(short_dcid_len)).unwrap();
            assert_eq!(
                (read.kind, read.version, read.destination, read.source),
                (
                    header.kind,
                    header.version,
                    header.destination,
                    header.source
                )
            );
            assert_eq!(again[read.token], datagram[header.token]);
            assert_eq!(
                again[read.number_offset..read.end],
                datagram[header.number_offset..header.end]
            );
        }
        datagram = &datagram[header.end..];
    }
});

/// Returns the packet with its header encoded again; `None` for a short header.
fn rewritten(datagram: &[u8], header: &Header) -> Option<Vec<u8>> {
    let token = &datagram[header.token.clone()];
    let body = &datagram[header.number_offset..header.end];
    let mut out = Vec::new();
    let kind = match header.kind {
        Kind::Initial => LongKind::Initial { token },
        Kind::ZeroRtt => LongKind::ZeroRtt,
        Kind::Handshake => LongKind::Handshake,
        Kind::Retry => {
            assert_eq!(Retry::decode(datagram, header)?.token, token);
            write_retry(
                &mut out,
                header.version?,
                &header.destination,
                &header.source,
                token,
                0,
            );
            out.extend_from_slice(body);
            return Some(out);
        }
        Kind::VersionNegotiation => {
            let versions: Vec<_> = supported_versions(datagram, header).collect();
            let (destination, source) = (&header.destination, &header.source);
            write_version_negotiation(
                &mut out,
                destination.as_bytes(),
                source.as_bytes(),
                &versions,
                0,
            );
            return Some(out);
        }
        Kind::KnownFirst => {
            let (credential, key_id) = header.credential(datagram)?;
            LongKind::KnownFirst { credential, key_id }
        }
        Kind::KnownAnswer => LongKind::KnownAnswer,
        Kind::KnownControl => {
            let (destination, source) = (&header.destination, &header.source);
            write_control_header(&mut out, destination.as_bytes(), source.as_bytes());
            out.extend_from_slice(body);
            return Some(out);
        }
        Kind::OneRtt => return None,
    };
    let long = write_long_header(
        &mut out,
        &LongFields {
            // Packets of known peers have a version of their own.
            version: header.version.unwrap_or_default(),
            kind,
            destination: header.destination,
            source: header.source,
            number: 0,
            number_length: 1,
            size_limit: datagram.len(),
        },
    );
    out.truncate(long.number_offset);
    out.extend_from_slice(body);
    let end = out.len();
    long.finish(&mut out, end);
    Some(out)
}
