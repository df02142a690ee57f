//! The speed of bulk data: run with `--release -- --ignored --nocapture speed`.

use std::time::Instant;

use super::*;

const BATCH: usize = 44;

#[test]
#[ignore = "a measurement, for release builds"]
fn measure_one_gibibyte_in_packets_of_1452_bytes() {
    pump(1 << 30, 1452);
}

/// So short that copies cost nothing: this measures the overhead per packet.
#[test]
#[ignore = "a measurement, for release builds"]
fn measure_data_in_packets_of_64_bytes() {
    pump(1 << 26, 64);
}

fn pump(total: usize, limit: usize) {
    let config = StreamsConfig {
        max_data: 8 << 20,
        stream_window: 4 << 20,
        send_buffer: 1 << 20,
        ..CONFIG
    };
    let mut pair = Pair::new(config);
    let id = pair.sides[0].open(Unidirectional).unwrap();
    pair.sides[0].write(id, b"x").unwrap();
    pair.run();
    pair.sides[1].accept(Unidirectional).unwrap();

    let data = vec![7; 128 * 1024];
    let mut payloads = [(); BATCH].map(|()| Vec::with_capacity(limit));
    let mut records = vec![SentFrames::new(); BATCH];
    let (mut read, mut packets) = (0, 0);
    let mut parts = [std::time::Duration::ZERO; 5];
    let start = Instant::now();
    while read < total {
        let mut clock = Instant::now();
        let mut lap = |part: usize| {
            let now = Instant::now();
            parts[part] += now - std::mem::replace(&mut clock, now);
        };
        while pair.sides[0].write(id, &data).is_ok() {}
        lap(0);
        for (payload, sent) in payloads.iter_mut().zip(&mut records) {
            payload.clear();
            sent.clear();
            pair.sides[0].fill(payload, limit, sent);
            packets += 1;
        }
        lap(1);
        for payload in &payloads {
            receive(&mut pair.sides[1], payload).unwrap();
        }
        lap(2);
        while let Ok(Some(bytes)) = pair.sides[1].read(id, usize::MAX) {
            read += bytes.len();
        }
        lap(3);
        for sent in &records {
            for frame in sent {
                pair.sides[0].on_acked(frame);
            }
        }
        lap(4);
        while let Some(update) = pair.send(1, limit) {
            receive(&mut pair.sides[0], &update.payload).unwrap();
        }
    }
    let per_packet = |time: std::time::Duration| time.as_nanos() as f64 / f64::from(packets);
    println!(
        "{packets} packets, {:.0} ns each",
        per_packet(start.elapsed())
    );
    for (name, part) in ["write", "fill", "on_stream", "read", "on_acked"]
        .iter()
        .zip(parts)
    {
        println!("{name:>10} {:.1} ns", per_packet(part));
    }
}
