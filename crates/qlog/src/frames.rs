//! Records of frames (draft-ietf-quic-qlog-quic-events, section "QUIC Frames").

use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use weir_quic::Direction;
use weir_quic::frame::{Ack, Close, Frame, Frames};

use crate::connection::transport_error;
use crate::hex::Hex;
use crate::record::{RawInfo, is_false};

/// The frames of a packet; a malformed one ends the list.
pub(crate) struct FrameList<'a> {
    pub(crate) frames: Frames<'a>,
    /// The ACK delay exponent: delays count units of 2^this microseconds.
    pub(crate) exponent: u8,
}

impl Serialize for FrameList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for frame in self.frames.clone().map_while(Result::ok) {
            list.serialize_element(&FrameRecord::new(&frame, self.exponent))?;
        }
        list.end()
    }
}

/// A frame in the draft's schema.
#[derive(Serialize)]
#[serde(tag = "frame_type", rename_all = "snake_case")]
enum FrameRecord<'a> {
    Padding,
    Ping,
    Ack {
        ack_delay: f64,
        acked_ranges: AckedRanges<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        ect0: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        ect1: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        ce: Option<u64>,
    },
    ResetStream {
        stream_id: u64,
        error: &'static str,
        error_code: u64,
        final_size: u64,
    },
    StopSending {
        stream_id: u64,
        error: &'static str,
        error_code: u64,
    },
    Crypto {
        offset: u64,
        raw: RawInfo,
    },
    NewToken {
        token: Token,
    },
    Stream {
        stream_id: u64,
        offset: u64,
        #[serde(skip_serializing_if = "is_false")]
        fin: bool,
        raw: RawInfo,
    },
    MaxData {
        maximum: u64,
    },
    MaxStreamData {
        stream_id: u64,
        maximum: u64,
    },
    MaxStreams {
        stream_type: &'static str,
        maximum: u64,
    },
    DataBlocked {
        limit: u64,
    },
    StreamDataBlocked {
        stream_id: u64,
        limit: u64,
    },
    StreamsBlocked {
        stream_type: &'static str,
        limit: u64,
    },
    NewConnectionId {
        sequence_number: u64,
        retire_prior_to: u64,
        connection_id_length: u8,
        connection_id: Hex<'a>,
    },
    RetireConnectionId {
        sequence_number: u64,
    },
    PathChallenge {
        data: Hex<'a>,
    },
    PathResponse {
        data: Hex<'a>,
    },
    ConnectionClose {
        error_space: &'static str,
        error: String,
        error_code: u64,
        reason: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        trigger_frame_type: Option<u64>,
    },
    HandshakeDone,
    Datagram {
        raw: RawInfo,
    },
    /// A frame of an extension that is not in the draft.
    Unknown {
        frame_type_bytes: u64,
        weir_frame_type: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        weir_threshold: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        weir_max_ack_delay_us: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        weir_streams: Option<u64>,
    },
}

#[derive(Serialize)]
struct Token {
    r#type: &'static str,
    raw: RawInfo,
}

/// Ranges of packet numbers: `[[7], [1, 4]]`.
struct AckedRanges<'a>(Ack<'a>);

impl Serialize for AckedRanges<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for range in self.0.ranges() {
            if range.start() == range.end() {
                list.serialize_element(&[range.start()])?
            } else {
                list.serialize_element(&[range.start(), range.end()])?
            }
        }
        list.end()
    }
}

/// Returns the length of data without a length field of their own.
fn raw(data: &[u8]) -> RawInfo {
    RawInfo {
        length: data.len() as u64,
        payload_length: Some(data.len() as u64),
    }
}

fn stream_type(direction: Direction) -> &'static str {
    match direction {
        Direction::Bidirectional => "bidirectional",
        Direction::Unidirectional => "unidirectional",
    }
}

impl<'a> FrameRecord<'a> {
    fn new(frame: &'a Frame<'a>, exponent: u8) -> Self {
        match frame {
            Frame::Padding => Self::Padding,
            Frame::Ping => Self::Ping,
            Frame::Ack(ack) => Self::Ack {
                ack_delay: ack.delay as f64 * f64::from(exponent).exp2() / 1e3,
                ect0: ack.ecn.map(|counts| counts.ect0),
                ect1: ack.ecn.map(|counts| counts.ect1),
                ce: ack.ecn.map(|counts| counts.ce),
                acked_ranges: AckedRanges(ack.clone()),
            },
            Frame::ResetStream(reset) => Self::ResetStream {
                stream_id: reset.id.as_u64(),
                error: "unknown",
                error_code: reset.code,
                final_size: reset.final_size,
            },
            Frame::StopSending { id, code } => Self::StopSending {
                stream_id: id.as_u64(),
                error: "unknown",
                error_code: *code,
            },
            Frame::Crypto { offset, data } => Self::Crypto {
                offset: *offset,
                raw: raw(data),
            },
            // A token's content is the server's secret; so are reset tokens.
            Frame::NewToken(token) => Self::NewToken {
                token: Token {
                    r#type: "resumption",
                    raw: raw(token),
                },
            },
            Frame::Stream(stream) => Self::Stream {
                stream_id: stream.id.as_u64(),
                offset: stream.offset,
                fin: stream.fin,
                raw: raw(stream.data),
            },
            Frame::MaxData(maximum) => Self::MaxData { maximum: *maximum },
            Frame::MaxStreamData { id, limit } => Self::MaxStreamData {
                stream_id: id.as_u64(),
                maximum: *limit,
            },
            Frame::MaxStreams { direction, limit } => Self::MaxStreams {
                stream_type: stream_type(*direction),
                maximum: *limit,
            },
            Frame::DataBlocked(limit) => Self::DataBlocked { limit: *limit },
            Frame::StreamDataBlocked { id, limit } => Self::StreamDataBlocked {
                stream_id: id.as_u64(),
                limit: *limit,
            },
            Frame::StreamsBlocked { direction, limit } => Self::StreamsBlocked {
                stream_type: stream_type(*direction),
                limit: *limit,
            },
            Frame::NewConnectionId(new) => Self::NewConnectionId {
                sequence_number: new.sequence,
                retire_prior_to: new.retire_prior_to,
                connection_id_length: new.id.len() as u8,
                connection_id: Hex(new.id.as_bytes()),
            },
            Frame::RetireConnectionId(sequence) => Self::RetireConnectionId {
                sequence_number: *sequence,
            },
            Frame::PathChallenge(data) => Self::PathChallenge { data: Hex(data) },
            Frame::PathResponse(data) => Self::PathResponse { data: Hex(data) },
            Frame::Close(close) => Self::close(close),
            Frame::HandshakeDone => Self::HandshakeDone,
            Frame::Datagram(data) => Self::Datagram { raw: raw(data) },
            Frame::AckFrequency(request) => Self::Unknown {
                frame_type_bytes: frame.frame_type(),
                weir_frame_type: "ack_frequency",
                weir_threshold: Some(request.threshold),
                weir_max_ack_delay_us: Some(request.max_ack_delay),
                weir_streams: None,
            },
            Frame::ImmediateAck => Self::Unknown {
                frame_type_bytes: frame.frame_type(),
                weir_frame_type: "immediate_ack",
                weir_threshold: None,
                weir_max_ack_delay_us: None,
                weir_streams: None,
            },
            Frame::PathSecret(_) => Self::without_fields(frame, "path_secret"),
            Frame::PathKey(_) => Self::without_fields(frame, "path_key"),
            Frame::PathKeyAnswer { .. } => Self::without_fields(frame, "path_key_answer"),
            Frame::GoAway(streams) => Self::Unknown {
                frame_type_bytes: frame.frame_type(),
                weir_frame_type: "go_away",
                weir_threshold: None,
                weir_max_ack_delay_us: None,
                weir_streams: Some(*streams),
            },
        }
    }

    fn without_fields(frame: &Frame<'_>, name: &'static str) -> Self {
        Self::Unknown {
            frame_type_bytes: frame.frame_type(),
            weir_frame_type: name,
            weir_threshold: None,
            weir_max_ack_delay_us: None,
            weir_streams: None,
        }
    }

    fn close(close: &Close<'_>) -> Self {
        let words = |reason: &[u8]| String::from_utf8_lossy(reason).into_owned();
        match *close {
            Close::Transport {
                code,
                frame_type,
                reason,
            } => Self::ConnectionClose {
                error_space: "transport",
                error: transport_error(code),
                error_code: code.as_u64(),
                reason: words(reason),
                trigger_frame_type: (frame_type != 0).then_some(frame_type),
            },
            Close::Application { code, reason } => Self::ConnectionClose {
                error_space: "application",
                error: "unknown".to_owned(),
                error_code: code,
                reason: words(reason),
                trigger_frame_type: None,
            },
        }
    }
}
