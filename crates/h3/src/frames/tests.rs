use proptest::prelude::*;

use super::frame_type::{DATA, GOAWAY, HEADERS, MAX_PUSH_ID, SETTINGS};
use super::*;

const LIMIT: u64 = 1000;
/// A request's field section: GET https://localhost/ (RFC 9204, appendix A).
const GET: &[u8] = b"\0\0\xd1\xd7\x50\x09localhost\xc1";
const TRAILERS: &[u8] = b"\0\0\x21x\x01y";

/// Encodes a variable-length integer with as few bytes as hold it.
fn integer(value: u64) -> Vec<u8> {
    match value {
        0..0x40 => vec![value as u8],
        0x40..0x4000 => (0x4000 | value as u16).to_be_bytes().to_vec(),
        0x4000..0x4000_0000 => (0x8000_0000 | value as u32).to_be_bytes().to_vec(),
        _ => (0xc000_0000_0000_0000 | value).to_be_bytes().to_vec(),
    }
}

fn frame(frame_type: u64, payload: &[u8]) -> Vec<u8> {
    [
        integer(frame_type),
        integer(payload.len() as u64),
        payload.to_vec(),
    ]
    .concat()
}

/// Follows chunks; returns what passes.
fn pass<'a>(
    frames: &mut Frames,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<u8>, Violation> {
    let mut passed = Vec::new();
    for chunk in chunks {
        let mut input = Bytes::copy_from_slice(chunk);
        while let Some(bytes) = frames.next(&mut input)? {
            assert!(!bytes.is_empty());
            passed.extend(bytes);
        }
        assert!(input.is_empty());
    }
    Ok(passed)
}

fn pass_request(stream: &[u8]) -> Result<Vec<u8>, Violation> {
    pass(&mut Frames::of_request(LIMIT), [stream])
}

/// What follows the settings of a client's control stream.
fn pass_control(stream: &[u8]) -> Result<Vec<u8>, Violation> {
    let mut frames = Frames::of_client_control();
    pass(&mut frames, [&frame(SETTINGS, &[])[..], stream])
}

#[test]
fn each_piece_is_what_h3_decodes_at_once() {
    let data = frame(DATA, &[7; 90]);
    let (header, payload) = data.split_at(data.len() - 90);
    let stream = [frame(HEADERS, GET), data.clone(), data.clone()].concat();
    let mut frames = Frames::of_request(LIMIT);
    let mut input = Bytes::from(stream);
    for expected in [&frame(HEADERS, GET)[..], header, payload, header, payload] {
        assert_eq!(frames.next(&mut input).unwrap().unwrap(), expected);
    }
    assert_eq!(frames.next(&mut input), Ok(None));
}

#[test]
fn a_long_headers_frame_is_noticed_at_its_length() {
    let begin = [integer(HEADERS), integer(LIMIT + 1)].concat();
    let violation = Violation::LongHeader {
        length: LIMIT + 1,
        limit: LIMIT,
    };
    assert_eq!(pass_request(&begin), Err(violation));
}

#[test]
fn data_may_be_as_long_as_they_like() {
    let mut frames = Frames::of_request(LIMIT);
    let begin = [frame(HEADERS, GET), integer(DATA), integer(1 << 61)].concat();
    assert_eq!(pass(&mut frames, [&begin[..]]), Ok(begin.clone()));
    let data = [0; 5000];
    assert_eq!(pass(&mut frames, [&data[..]]), Ok(data.to_vec()));
    assert_eq!(frames.end(), Err(Violation::Truncated));
}

#[test]
fn unknown_and_empty_frames_pass_by() {
    let known = [
        frame(HEADERS, GET),
        frame(DATA, b"x"),
        frame(HEADERS, TRAILERS),
    ];
    let stream = [
        frame(0x21, &[0; 100_000]),
        known[0].clone(),
        frame(DATA, &[]),
        frame(0x41, &[]),
        known[1].clone(),
        frame(1 << 60, b"grease"),
        known[2].clone(),
        frame(0x21, &[]),
    ];
    assert_eq!(pass_request(&stream.concat()), Ok(known.concat()));
}

#[test]
fn frames_come_in_their_order() {
    let (header, data, trailers) = (
        frame(HEADERS, GET),
        frame(DATA, b"x"),
        frame(HEADERS, TRAILERS),
    );
    for (stream, wrong) in [
        ([&data[..], &header].concat(), DATA),
        ([&header[..], &trailers, &data].concat(), DATA),
        ([&header[..], &trailers, &trailers].concat(), HEADERS),
        ([&header[..], &frame(SETTINGS, &[])].concat(), SETTINGS),
        ([&header[..], &frame(0x6, &[0; 8])].concat(), 0x6),
    ] {
        assert_eq!(pass_request(&stream), Err(Violation::Unexpected(wrong)));
    }
}

#[test]
fn interim_responses_do_not_pass() {
    let interim = frame(HEADERS, b"\0\0\xd8\x21x\x01y");
    let header = frame(HEADERS, b"\0\0\xd9");
    let stream = [&interim[..], &interim, &header, &frame(DATA, b"x")].concat();
    for length in 1..stream.len() {
        let mut frames = Frames::of_response(LIMIT);
        let passed = pass(&mut frames, stream.chunks(length));
        assert_eq!(passed, Ok(stream[2 * interim.len()..].to_vec()));
        assert_eq!(frames.end(), Ok(()));
    }
    let mut frames = Frames::of_response(LIMIT);
    assert_eq!(pass(&mut frames, [&interim[..]]), Ok(Vec::new()));
    assert!(matches!(frames.end(), Err(Violation::Malformed(_))));
}

#[test]
fn a_go_away_is_read_on_a_control_stream() {
    let mut frames = Frames::of_server_control();
    let stream = [frame(SETTINGS, &[]), frame(GOAWAY, &integer(400))].concat();
    for byte in &stream {
        assert_eq!(frames.take_go_away(), None);
        assert!(pass(&mut frames, [&[*byte][..]]).is_ok());
    }
    assert_eq!(frames.take_go_away(), Some(400));
    assert_eq!(frames.take_go_away(), None);
}

#[test]
fn control_frames_have_the_length_of_their_fields() {
    for payload in [&[][..], &[0x40], &[1, 2]] {
        for frame_type in [GOAWAY, MAX_PUSH_ID, 0x3] {
            let wrong = pass_control(&frame(frame_type, payload));
            assert_eq!(wrong, Err(Violation::Payload(frame_type)));
        }
    }
    let mut frames = Frames::of_client_control();
    let cut = frame(SETTINGS, &[6]);
    assert_eq!(
        pass(&mut frames, [&cut[..]]),
        Err(Violation::Payload(SETTINGS))
    );
    let long = [integer(GOAWAY), integer(1 << 40)].concat();
    assert!(matches!(
        pass_control(&long),
        Err(Violation::LongFrame { .. })
    ));
}

#[test]
fn a_control_stream_begins_with_settings() {
    let mut frames = Frames::of_client_control();
    let stream = frame(MAX_PUSH_ID, &[8]);
    assert_eq!(
        pass(&mut frames, [&stream[..]]),
        Err(Violation::MissingSettings)
    );
}

#[test]
fn pushes_are_limited_by_clients_only() {
    let limits = [frame(MAX_PUSH_ID, &[8]), frame(MAX_PUSH_ID, &[7])];
    assert_eq!(
        pass_control(&limits[0]),
        Ok([frame(SETTINGS, &[]), limits[0].clone()].concat())
    );
    assert_eq!(pass_control(&limits.concat()), Err(Violation::Push));
    let mut frames = Frames::of_server_control();
    let stream = [frame(SETTINGS, &[]), limits[0].clone()].concat();
    let unexpected = Violation::Unexpected(MAX_PUSH_ID);
    assert_eq!(pass(&mut frames, [&stream[..]]), Err(unexpected));
}

proptest! {
    /// Wherever the chunks are cut, the same frames pass.
    #[test]
    fn frames_end_where_they_end(
        body in prop::collection::vec(
            (prop_oneof![Just(DATA), Just(0x21), 0x40u64..1 << 62], 0usize..300),
            0..8,
        ),
        has_trailers: bool,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut stream = frame(HEADERS, GET);
        let mut known = stream.clone();
        let mut ends = vec![0, stream.len()];
        let body = body.into_iter().map(|(frame_type, length)| (frame_type, vec![7; length]));
        let trailers = has_trailers.then(|| (HEADERS, TRAILERS.to_vec()));
        for (frame_type, payload) in body.chain(trailers) {
            let frame = frame(frame_type, &payload);
            stream.extend(&frame);
            ends.push(stream.len());
            if frame_type == HEADERS || frame_type == DATA && !payload.is_empty() {
                known.extend(frame);
            }
        }
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.push(stream.len());
        cuts.sort_unstable();
        let mut frames = Frames::of_request(LIMIT);
        let mut passed = Vec::new();
        let mut at = 0;
        for cut in cuts {
            passed.extend(pass(&mut frames, [&stream[at..cut]]).unwrap());
            at = cut;
            prop_assert_eq!(frames.end().is_ok(), ends.contains(&at));
        }
        prop_assert_eq!(passed, known);
    }

    #[test]
    fn any_bytes_are_followed(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 1usize..50) {
        for mut frames in [
            Frames::of_request(LIMIT),
            Frames::of_response(LIMIT),
            Frames::of_client_control(),
            Frames::of_server_control(),
        ] {
            let _ = pass(&mut frames, bytes.chunks(cut));
        }
    }

    /// What is wrong does not depend on how it arrives, except that a chunk is followed to its end.
    #[test]
    fn any_header_is_followed(section in prop::collection::vec(any::<u8>(), 0..60), cut in 1usize..20) {
        let stream = frame(HEADERS, &section);
        let whole = pass_request(&stream);
        let pieces = pass(&mut Frames::of_request(LIMIT), stream.chunks(cut));
        prop_assert_eq!(whole, pieces);
    }
}
