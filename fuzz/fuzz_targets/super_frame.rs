//! Fuzzes the segmentation of super-frames: parsing and cutting any frame of a host does not panic, and the
//! parts are frames with the segments of the whole.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_enforce::offload::SuperFrame;
use weir_wire::Ecn;

fn parsed(bytes: &[u8]) -> Option<SuperFrame> {
    let mut frame = SuperFrame::with_capacity(bytes.len());
    frame.buffer_mut().copy_from_slice(bytes);
    frame.parse(bytes.len()).ok().map(|()| frame)
}

fuzz_target!(|input: (u16, u16, &[u8])| {
    let (first, count, bytes) = input;
    let Some(frame) = parsed(bytes) else {
        return;
    };
    let segments = frame.segments();
    assert!(segments > 0);
    let first = first % segments;
    let end = first + 1 + count % (segments - first);
    let cut = frame.cut(first..end, Ecn::Ce, [2; 6]);
    let part = [cut.headers(), cut.payload()].concat();
    assert!(part.len() <= bytes.len());
    let part = parsed(&part).expect("a part of a frame is a frame");
    assert_eq!(part.segments(), end - first);
    for index in first..end {
        let once = frame.cut(index..index + 1, Ecn::Ect0, [2; 6]);
        let inside = index - first;
        let twice = part.cut(inside..inside + 1, Ecn::Ect0, [2; 6]);
        assert_eq!(once.payload(), twice.payload());
        let on_wire = frame.on_wire(index, Ecn::Ect0);
        assert_eq!(
            (on_wire.payload(), on_wire.headers().len()),
            (once.payload(), once.headers().len())
        );
        assert_eq!(frame.segment_length(index), part.segment_length(inside));
    }
});
