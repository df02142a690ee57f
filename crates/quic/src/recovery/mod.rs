//! What was sent and what was received: ACKs, loss detection, RTT, pacing, ECN validation.

mod sent_frame;

pub(crate) use sent_frame::{SentFrame, SentFrames};
