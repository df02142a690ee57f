//! Fuzzes the messages of `weir copy`: reading any frames does not panic, what was read can be written and
//! read again, and no order of messages makes a server write more than a file's size.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_copy::protocol::{FrameHeader, Offer, Request, Response, Step, Upload};

fuzz_target!(|input: &[u8]| {
    let mut upload = Upload::new();
    let (mut size, mut written) = (0, 0);
    let mut rest = input;
    while let Some((header, more)) = rest.split_first_chunk() {
        let Ok(header) = FrameHeader::decode(*header) else {
            return;
        };
        let contents = more.get(..header.length).unwrap_or(more);
        rest = more.get(header.length..).unwrap_or_default();
        if let Ok(response) = Response::decode(header.kind, contents) {
            let mut frame = Vec::new();
            response.encode(&mut frame);
            assert_eq!(Response::decode(frame[0], &frame[5..]), Ok(response));
        }
        let Ok(request) = Request::decode(header.kind, contents) else {
            continue;
        };
        let mut frame = Vec::new();
        request.encode(&mut frame);
        assert_eq!(Request::decode(frame[0], &frame[5..]), Ok(request.clone()));
        match upload.handle(request) {
            Ok(Step::Look(file)) => {
                size = file.size;
                upload.offered(Offer::Nothing).unwrap();
            }
            Ok(Step::Start(at)) => written = at,
            Ok(Step::Append(data)) => {
                written += data.len() as u64;
                assert!(written <= size);
            }
            Ok(Step::Finish(_)) => assert_eq!(written, size),
            Ok(Step::Enter(_) | Step::Keep) | Err(_) => {}
        }
    }
});
