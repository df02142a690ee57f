//! What hostile headers cost a server.

use axum::Router;
use axum::routing::get as on_get;

use crate::hostile::{GET, HEADERS, connect, frame, send};
use crate::support::{World, run_here, until};

/// The most memory that the bytes of one request take, in bytes, on both sides.
fn peak(request: &[u8], is_refused: bool) -> u64 {
    let handler = on_get(|| async { "hello" });
    let router = Router::new().route("/", handler);
    let measured = allocation_counter::measure(|| {
        run_here(async {
            let world = World::new(router);
            let connection = connect(&world).await;
            let (mut send, mut recv) = send(&connection, request).await;
            let _ = send.finish();
            let answer = recv.read_to_end(1000).await;
            // 431 in Huffman code (RFC 7541, appendix B).
            let has_431 = answer.is_ok_and(|answer| answer.ends_with(&[0x69, 0x90, 0xff]));
            assert_eq!(has_431, is_refused);
            until(|| world.server.stats().running == 0).await;
        });
    });
    measured.bytes_max
}

/// Few bytes that stand for many: references to the longest entry of the static table.
#[test]
fn headers_that_expand_are_refused_before_they_do() {
    let plain = peak(&frame(HEADERS, GET), false);
    // 7,500 of 108 bytes each, as RFC 9114, section 4.2.2, counts them.
    let references = [0xff, 0x16].repeat(7_500);
    let bomb = peak(&frame(HEADERS, &[GET, &references].concat()), true);
    assert!(bomb < plain + 300_000, "{bomb} bytes, and {plain} without");
}

/// A header of a gigabyte is refused at its length.
#[test]
fn a_huge_header_is_not_kept() {
    let plain = peak(&frame(HEADERS, GET), false);
    let begin = [&[HEADERS][..], &0xbfff_ffff_u32.to_be_bytes(), GET].concat();
    let huge = peak(&[&begin[..], &[b'x'; 15_000]].concat(), false);
    assert!(huge < plain + 100_000, "{huge} bytes, and {plain} without");
}
