//! Floods: the same frame repeatedly, with increasing numbers so that each has an effect.

use super::script::{Hostile, Number};

/// Returns the frame with the numbers for the next packet of a flood.
pub(super) fn advanced(frame: &Hostile, packet: u8, repeat: u8) -> Hostile {
    let index = u64::from(packet) * 64 + u64::from(repeat);
    let next = |number: &Number| Number::Any(number.value(0).saturating_add(index));
    match frame {
        Hostile::NewId {
            sequence,
            retire_prior_to,
            id,
        } => Hostile::NewId {
            sequence: next(sequence),
            retire_prior_to: match retire_prior_to {
                Number::Near(_) => next(sequence),
                other => *other,
            },
            id: id.wrapping_add(index as u8),
        },
        Hostile::Retire(sequence) => Hostile::Retire(match sequence {
            // Relative to the issued numbers.
            Number::Near(_) => *sequence,
            other => next(other),
        }),
        Hostile::Challenge(data) => Hostile::Challenge(data.wrapping_add(index)),
        Hostile::Stream {
            initiated_by_victim,
            unidirectional,
            index: stream,
            offset,
            length,
            fin,
            without_length,
        } => Hostile::Stream {
            initiated_by_victim: *initiated_by_victim,
            unidirectional: *unidirectional,
            index: *stream,
            offset: Number::Any(offset.value(0).saturating_add(2 * index)),
            length: *length,
            fin: *fin,
            without_length: *without_length,
        },
        Hostile::Pieces {
            stream,
            start,
            stride,
            length,
            count,
        } => Hostile::Pieces {
            stream: *stream,
            start: start.wrapping_add((index as u32).wrapping_mul(256)),
            stride: *stride,
            length: *length,
            count: *count,
        },
        Hostile::Crypto { offset, length } => Hostile::Crypto {
            offset: next(offset),
            length: *length,
        },
        Hostile::AckFrequency {
            sequence,
            threshold,
            delay,
            reordering,
        } => Hostile::AckFrequency {
            sequence: next(sequence),
            threshold: *threshold,
            delay: *delay,
            reordering: *reordering,
        },
        other => other.clone(),
    }
}
