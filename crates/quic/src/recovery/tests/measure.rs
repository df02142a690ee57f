//! Cost per packet: `cargo test --release -p weir-quic -- --ignored --nocapture what_a_packet`.

use std::hint::black_box;
use std::time::Instant;

use super::*;

/// A window that never changes.
#[derive(Clone, Debug)]
struct Fixed;

impl Controller for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }
    fn on_ack(&mut self, _ack: &AckSample) {}
    fn on_loss(&mut self, _loss: &LossSample) {}
    fn on_packet_size(&mut self, _size: ByteSize) {}
    fn window(&self) -> ByteSize {
        ByteSize::from_mib(64)
    }
    fn snapshot(&self) -> Snapshot {
        Snapshot::default()
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

#[derive(Default)]
struct Counter(u64);

impl FrameSink for Counter {
    fn acked(&mut self, _space: Space, frame: &SentFrame) {
        self.0 += u64::from(black_box(frame) == &SentFrame::MaxData);
    }
    fn lost(&mut self, _space: Space, frame: &SentFrame) {
        self.0 += u64::from(black_box(frame) == &SentFrame::MaxData);
    }
}

/// Sends `packets` full packets with `in_flight` of them in flight at any time, an ACK for every
/// 64, and one in `loss` lost. Returns nanoseconds per packet.
fn run(packets: u64, in_flight: u64, loss: u64) -> f64 {
    let mut sender = Sender::new(Side::Server);
    sender.path.controller = Box::new(Fixed);
    let mut sink = Counter::default();
    let mut received = ReceivedPackets::new(AckPolicy {
        max_ack_delay: us(100),
        final_delay: Duration::ZERO,
        threshold: 64,
        exponent: 0,
    });
    let mut frame = Vec::with_capacity(2_000);
    let mut arrived = 0;
    let begin = Instant::now();
    for batch in 0..packets / 64 {
        sender.now += us(50);
        for _ in 0..64 {
            let number = sender.recovery.next_number(Space::Data);
            let packet = SentPacket {
                sent_at: sender.now,
                size: 1_452,
                ack_eliciting: true,
                in_flight: true,
                ecn: Ecn::Ect0,
                frames: smallvec![SentFrame::Stream {
                    id: crate::StreamId::from_wire(4),
                    offset: number * 1_400,
                    length: 1_400,
                    fin: false
                }],
                ..SentPacket::default()
            };
            sender
                .recovery
                .on_sent(Space::Data, &mut sender.path, packet);
        }
        if (batch + 1) * 64 < in_flight {
            continue;
        }
        for number in arrived..arrived + 64 {
            if loss == 0 || number % loss != 0 {
                received.on_received(sender.now, number, true, Ecn::Ect0);
            }
        }
        arrived += 64;
        received.end_batch(sender.now, 1452, false, true);
        frame.clear();
        received.write_ack(sender.now, &mut frame, 1_200);
        let Some(Ok(Frame::Ack(ack))) = Frames::new(&frame).next() else {
            continue;
        };
        let outcome = sender.recovery.on_ack(
            sender.now,
            Space::Data,
            &ack,
            Duration::ZERO,
            &mut sender.path,
            true,
            &mut sink,
        );
        received.on_ack_acked(ack.largest.saturating_sub(2 * in_flight));
        outcome.unwrap();
    }
    assert!(sender.path.in_flight <= (in_flight + 64) * 1_452);
    begin.elapsed().as_nanos() as f64 / packets as f64
}

#[test]
#[ignore = "a measurement, meaningful in a release build only"]
fn measure_the_cost_per_packet() {
    for (in_flight, loss) in [(64, 0), (512, 0), (8_192, 0), (512, 100), (8_192, 1_000)] {
        let best = (0..5)
            .map(|_| run(1 << 20, in_flight, loss))
            .fold(f64::MAX, f64::min);
        let loss = match loss {
            0 => "no loss".to_owned(),
            loss => format!("1 in {loss} lost"),
        };
        println!("{in_flight:5} packets in flight, {loss}: {best:.1} ns per packet");
    }
}
