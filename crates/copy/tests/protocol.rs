//! Messages survive encoding, and no bytes make the decoder or the order of messages panic.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use weir_copy::protocol::{
    FileHeader, FrameHeader, LARGEST_CONTENTS, Offer, ProtocolError, Request, Response, Step,
    Upload,
};
use weir_copy::{RelativePath, Sha256Digest};

fn path() -> impl Strategy<Value = RelativePath> {
    prop::collection::vec("[a-zA-Z0-9 _.-]{1,12}", 1..4)
        .prop_filter_map("an accepted path", |names| {
            RelativePath::parse(&names.join("/")).ok()
        })
        .prop_filter("a name", |path| path.to_string() != ".")
}

fn digest() -> impl Strategy<Value = Sha256Digest> {
    any::<[u8; 32]>().prop_map(Sha256Digest)
}

/// All requests but data, whose bytes are borrowed.
fn request() -> impl Strategy<Value = Request<'static>> {
    prop_oneof![
        path().prop_map(Request::Hello),
        (path(), 0..2000_u64, 0..=0o777_u16)
            .prop_map(|(path, size, mode)| { Request::File(FileHeader { path, size, mode }) }),
        (0..2000_u64).prop_map(Request::Start),
        digest().prop_map(Request::End),
        Just(Request::Keep),
    ]
}

fn offer() -> impl Strategy<Value = Offer> {
    prop_oneof![
        Just(Offer::Nothing),
        (1..2000_u64, digest()).prop_map(|(length, digest)| Offer::Partial { length, digest }),
        digest().prop_map(Offer::Complete),
    ]
}

fn split(frame: &[u8]) -> (FrameHeader, &[u8]) {
    let (header, contents) = frame.split_first_chunk().unwrap();
    let header = FrameHeader::decode(*header).unwrap();
    assert_eq!(header.length, contents.len());
    (header, contents)
}

proptest! {
    #[test]
    fn requests_round_trip(request in request()) {
        let mut frame = Vec::new();
        request.encode(&mut frame);
        let (header, contents) = split(&frame);
        prop_assert_eq!(Request::decode(header.kind, contents), Ok(request));
    }

    #[test]
    fn data_round_trips(data in prop::collection::vec(any::<u8>(), 1..2000)) {
        let mut frame = Vec::new();
        Request::Data(&data).encode(&mut frame);
        let (header, contents) = split(&frame);
        prop_assert_eq!(Request::decode(header.kind, contents), Ok(Request::Data(&data)));
    }

    #[test]
    fn responses_round_trip(offer in offer(), reason in "[\\PC]{0,200}") {
        for response in [Response::Ready, Response::Offer(offer), Response::Done, Response::Refused(reason)] {
            let mut frame = Vec::new();
            response.encode(&mut frame);
            let (header, contents) = split(&frame);
            prop_assert_eq!(Response::decode(header.kind, contents), Ok(response));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(kind in 0..8_u8, contents in prop::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(request) = Request::decode(kind, &contents) {
            let mut again = Vec::new();
            request.encode(&mut again);
            let (header, read) = split(&again);
            prop_assert_eq!(Request::decode(header.kind, read), Ok(request));
        }
        let _ = Response::decode(kind, &contents);
    }

    /// Whatever a client sends, in whatever order: a server never writes more than the size that the
    /// client has announced, never continues at another byte than it offered, and never finishes a
    /// file that is not complete.
    #[test]
    fn no_order_of_messages_writes_beyond_a_file(
        steps in prop::collection::vec((request(), offer(), 0..1500_usize), 1..60)
    ) {
        let data = vec![7; 1500];
        let mut upload = Upload::new();
        let (mut size, mut offered, mut written) = (0, None, 0);
        for (request, offer, length) in steps {
            let requests = [request, Request::Data(&data[..length.max(1)])];
            for request in requests {
                let Ok(step) = upload.handle(request) else { continue };
                match step {
                    Step::Look(file) => {
                        size = file.size;
                        offered = upload.offered(offer).is_ok().then_some(offer);
                        if offered.is_none() {
                            upload.offered(Offer::Nothing).unwrap();
                            offered = Some(Offer::Nothing);
                        }
                    }
                    Step::Start(at) => {
                        let is_offered =
                            matches!(offered, Some(Offer::Partial { length, .. }) if length == at);
                        prop_assert!(at == 0 || is_offered);
                        written = at;
                    }
                    Step::Append(data) => {
                        written += data.len() as u64;
                        prop_assert!(written <= size);
                    }
                    Step::Finish(_) => prop_assert_eq!(written, size),
                    Step::Keep => prop_assert!(matches!(offered, Some(Offer::Complete(_)))),
                    Step::Enter(_) => {}
                }
            }
        }
    }
}

#[test]
fn a_whole_copy_is_accepted_in_order_only() {
    let file = || {
        Request::File(FileHeader {
            path: RelativePath::parse("a").unwrap(),
            size: 3,
            mode: 0o644,
        })
    };
    let hello = || Request::Hello(RelativePath::default());
    let mut upload = Upload::new();
    assert!(!upload.may_end());
    let early = upload.handle(file()).unwrap_err();
    assert_eq!(early.to_string(), "a file came before the hello");
    upload.handle(hello()).unwrap();
    assert!(upload.may_end());
    upload.handle(file()).unwrap();
    upload.offered(Offer::Nothing).unwrap();
    assert_eq!(
        upload.handle(Request::Start(1)),
        Err(ProtocolError::Start(1))
    );
    upload.handle(Request::Start(0)).unwrap();
    let end = || Request::End(Sha256Digest([0; 32]));
    assert_eq!(upload.handle(end()), Err(ProtocolError::TooLittleData(3)));
    assert_eq!(
        upload.handle(Request::Data(b"1234")),
        Err(ProtocolError::TooMuchData)
    );
    upload.handle(Request::Data(b"123")).unwrap();
    upload.handle(end()).unwrap();
    assert!(upload.may_end());
    const { assert!(LARGEST_CONTENTS > 64 * 1024) };
}
