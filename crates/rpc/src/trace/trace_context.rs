//! `traceparent` (W3C Trace Context, section 3.2), and its place in metadata.

use std::fmt;
use std::str::FromStr;

use weir_channel::Random;

use super::TraceState;
use crate::metadata::Metadata;

const TRACE_PARENT: &str = "traceparent";
const TRACE_STATE: &str = "tracestate";
/// The flags that have a meaning: sampled, and random trace ID (level 2).
const KNOWN_FLAGS: u8 = 0b11;
const SAMPLED: u8 = 0b01;
/// `00-<trace ID>-<span ID>-<flags>`.
const LENGTH: usize = 55;

/// The ID of a trace; not zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

/// The ID of a span, one hop of a trace; not zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId([u8; 8]);

/// A hop of a trace: what `traceparent` and `tracestate` say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace_id: TraceId,
    /// The hop: its sender calls it its span, its receiver its parent.
    pub span_id: SpanId,
    flags: u8,
    /// What tracing systems add for themselves.
    pub state: TraceState,
}

/// Why a text is no `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not <version>-<32 hex digits>-<16 hex digits>-<flags> in lower case, or an ID is zero")]
pub struct TraceParentError;

macro_rules! impl_id {
    ($name:ident, $size:literal) => {
        impl $name {
            /// Returns a new ID.
            pub(crate) fn random(random: &Random) -> Self {
                loop {
                    if let Some(id) = Self::from_bytes(random.bytes()) {
                        return id;
                    }
                }
            }

            /// Creates an ID from its bytes; `None` where all are zero.
            pub fn from_bytes(bytes: [u8; $size]) -> Option<Self> {
                (bytes != [0; $size]).then_some(Self(bytes))
            }

            /// Returns its bytes.
            pub const fn to_bytes(self) -> [u8; $size] {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

impl_id!(TraceId, 16);
impl_id!(SpanId, 8);

impl TraceContext {
    /// Creates the first hop of a trace.
    pub fn new(trace_id: TraceId, span_id: SpanId, is_sampled: bool) -> Self {
        Self {
            trace_id,
            span_id,
            flags: if is_sampled { SAMPLED } else { 0 },
            state: TraceState::default(),
        }
    }

    /// Returns the first hop of a new trace, which nobody records.
    pub(crate) fn root(random: &Random) -> Self {
        Self::new(TraceId::random(random), SpanId::random(random), false)
    }

    /// Returns the next hop of the same trace.
    pub fn child(&self, span_id: SpanId) -> Self {
        Self {
            span_id,
            ..self.clone()
        }
    }

    /// Returns whether the caller recorded the trace, or asks for that.
    pub const fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// Reads the context in metadata. There is none without exactly one valid `traceparent`; an
    /// invalid `tracestate` is left out (section 3.3.1.3).
    pub fn of(metadata: &Metadata) -> Option<Self> {
        let mut parents = metadata.values(TRACE_PARENT);
        let parent = parents.next().filter(|_| parents.next().is_none())?;
        let mut context: Self = std::str::from_utf8(parent).ok()?.parse().ok()?;
        let states: Option<Vec<_>> = metadata
            .values(TRACE_STATE)
            .map(|value| std::str::from_utf8(value).ok())
            .collect();
        context.state = states
            .and_then(|states| states.join(",").parse().ok())
            .unwrap_or_default();
        Some(context)
    }

    /// Replaces the context in metadata by this one.
    pub fn set_in(&self, metadata: &mut Metadata) {
        metadata.remove(TRACE_PARENT);
        metadata.remove(TRACE_STATE);
        // Both are names.
        let _ = metadata.add(TRACE_PARENT, self.to_string());
        if !self.state.is_empty() {
            let _ = metadata.add(TRACE_STATE, self.state.to_string());
        }
    }
}

/// The `traceparent` of version 00.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "00-{}-{}-{:02x}",
            self.trace_id, self.span_id, self.flags
        )
    }
}

/// Reads a `traceparent`, also of later versions (section 3.2.4).
impl FromStr for TraceContext {
    type Err = TraceParentError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (known, rest) = text.as_bytes().split_at_checked(LENGTH)?;
            let [version] = hex(known.get(..2)?)?;
            let is_known = match version {
                0 => rest.is_empty(),
                0xff => false,
                _ => rest.first().is_none_or(|byte| *byte == b'-'),
            };
            let has_dashes = [2, 35, 52].iter().all(|at| known.get(*at) == Some(&b'-'));
            if !is_known || !has_dashes {
                return None;
            }
            let [flags] = hex(known.get(53..55)?)?;
            Some(Self {
                trace_id: TraceId::from_bytes(hex(known.get(3..35)?)?)?,
                span_id: SpanId::from_bytes(hex(known.get(36..52)?)?)?,
                flags: flags & KNOWN_FLAGS,
                state: TraceState::default(),
            })
        };
        parse().ok_or(TraceParentError)
    }
}

/// Reads lower-case hexadecimal digits.
fn hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    let mut pairs = digits.chunks_exact(2);
    for byte in &mut bytes {
        let [high, low] = pairs.next()? else {
            return None;
        };
        *byte = value(*high)? << 4 | value(*low)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EXAMPLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn the_example_of_the_recommendation() {
        let context: TraceContext = EXAMPLE.parse().unwrap();
        assert_eq!(
            context.trace_id.to_string(),
            "4bf92f3577b34da6a3ce929d0e0e4736"
        );
        assert_eq!(context.span_id.to_string(), "00f067aa0ba902b7");
        assert!(context.is_sampled());
        assert_eq!(context.to_string(), EXAMPLE);
    }

    #[test]
    fn later_versions_are_read_as_far_as_they_are_known() {
        let later = format!("cc{}", &EXAMPLE[2..]);
        for text in [later.clone(), format!("{later}-what the future has")] {
            assert_eq!(text.parse::<TraceContext>().unwrap().to_string(), EXAMPLE);
        }
        assert!(format!("{later}.").parse::<TraceContext>().is_err());
    }

    #[test]
    fn others_are_errors() {
        for text in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x",
            "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01",
            "00-4bf92f3577b34da6a3ce929d0e0e47\u{e9}-00f067aa0ba902b7-01",
        ] {
            assert_eq!(
                text.parse::<TraceContext>(),
                Err(TraceParentError),
                "{text}"
            );
        }
    }

    #[test]
    fn metadata_carry_one_context() {
        let mut metadata = Metadata::new();
        metadata.add("tracestate", "a=1").unwrap();
        assert_eq!(TraceContext::of(&metadata), None);
        metadata.add("traceparent", EXAMPLE).unwrap();
        metadata.add("tracestate", "b=2").unwrap();
        let context = TraceContext::of(&metadata).unwrap();
        assert_eq!(context.state.as_str(), "a=1,b=2");
        let mut others = metadata.clone();
        context.set_in(&mut others);
        assert_eq!(TraceContext::of(&others), Some(context));
        assert_eq!(others.len(), 2);
        metadata.add("traceparent", EXAMPLE).unwrap();
        assert_eq!(TraceContext::of(&metadata), None);
    }

    #[test]
    fn an_invalid_state_does_not_end_the_trace() {
        let mut metadata = Metadata::new();
        metadata.add("traceparent", EXAMPLE).unwrap();
        metadata.add("tracestate", "no state").unwrap();
        assert!(TraceContext::of(&metadata).unwrap().state.is_empty());
    }

    proptest! {
        #[test]
        fn contexts_round_trip(trace in any::<[u8; 16]>(), span in any::<[u8; 8]>(), sampled: bool) {
            let ids = TraceId::from_bytes(trace).zip(SpanId::from_bytes(span));
            prop_assume!(ids.is_some());
            let (trace_id, span_id) = ids.unwrap();
            let context = TraceContext::new(trace_id, span_id, sampled);
            prop_assert_eq!(context.to_string().parse(), Ok(context));
        }

        #[test]
        fn any_text_is_a_context_or_an_error(text in ".{0,80}") {
            if let Ok(context) = text.parse::<TraceContext>() {
                prop_assert!(text.len() >= context.to_string().len());
            }
        }
    }
}
