//! Fuzzes every algorithm of the registry with arbitrary events: none panics, stops, or shrinks its
//! window to zero.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use weir_congestion::{
    AckSample, AlgorithmSpec, Context, Controller, Deadline, DeliverySample, LossCause, LossSample,
    PacketSent, SpuriousLoss, algorithms,
};
use weir_units::{ByteSize, Duration, Rate, Time};

#[derive(Arbitrary, Debug)]
struct Input {
    algorithm: u8,
    packet_size: u16,
    seed: u64,
    is_paced: bool,
    /// Parameters as text; unparsable ones are skipped.
    parameters: String,
    events: Vec<(u32, Event)>,
}

#[derive(Arbitrary, Debug)]
enum Event {
    Sent {
        size: u64,
        in_flight: u64,
    },
    Ack(Ack),
    Loss {
        lost: u64,
        age: u64,
        cause: u8,
        in_flight: u64,
    },
    Spurious {
        bytes: u64,
        age: u64,
    },
    IdleRestart,
    Deadline(Option<(u64, u64)>),
    PacketSize(u64),
}

#[derive(Arbitrary, Debug)]
struct Ack {
    acked: u64,
    ce_marked: u64,
    ece: bool,
    rtt: Option<u64>,
    smoothed_rtt: u64,
    min_rtt: u64,
    prior_in_flight: u64,
    in_flight: u64,
    age: u64,
    delivery: Option<Delivery>,
    app_limited: bool,
    is_recovering: bool,
    round_ended: bool,
}

#[derive(Arbitrary, Debug)]
struct Delivery {
    rate: u64,
    interval: u64,
    delivered: u64,
    in_flight_at_send: u64,
    lost: u64,
    app_limited: bool,
}

fuzz_target!(|input: Input| {
    let names: Vec<_> = algorithms().map(|algorithm| algorithm.name).collect();
    let name = names[usize::from(input.algorithm) % names.len()];
    let spec: AlgorithmSpec = format!("{name},{}", input.parameters)
        .parse()
        .unwrap_or_else(|_| AlgorithmSpec::new(name).expect("a name of the registry"));
    let packet_size = ByteSize::from_bytes(input.packet_size.into());
    let mut controller = spec.build(&Context {
        packet_size,
        seed: input.seed,
        is_paced: input.is_paced,
    });
    let mut now = Time::ZERO;
    for (step, event) in &input.events {
        now += Duration::from_nanos((*step).into());
        let before = controller.window();
        apply(&mut *controller, now, event);
        assert!(!controller.window().is_zero());
        assert!(controller.pacing_rate().is_none_or(|rate| !rate.is_zero()));
        if matches!(event, Event::Loss { .. }) {
            assert!(controller.window() <= before);
        }
        let _ = controller.snapshot();
    }
});

fn apply(controller: &mut dyn Controller, now: Time, event: &Event) {
    let bytes = ByteSize::from_bytes;
    match *event {
        Event::Sent { size, in_flight } => {
            controller.on_sent(&PacketSent {
                now,
                size: bytes(size),
                in_flight: bytes(in_flight),
            });
        }
        Event::Ack(ref ack) => controller.on_ack(&sample(now, ack)),
        Event::Loss {
            lost,
            age,
            cause,
            in_flight,
        } => controller.on_loss(&LossSample {
            now,
            lost: bytes(lost),
            newest_sent: now - Duration::from_nanos(age),
            cause: [LossCause::Acks, LossCause::Nak, LossCause::Timeout][usize::from(cause % 3)],
            in_flight: bytes(in_flight),
        }),
        Event::Spurious { bytes: lost, age } => controller.on_spurious_loss(&SpuriousLoss {
            now,
            bytes: bytes(lost),
            newest_sent: now - Duration::from_nanos(age),
        }),
        Event::IdleRestart => controller.on_idle_restart(now),
        Event::Deadline(deadline) => {
            controller.on_deadline(deadline.map(|(remaining, time_left)| Deadline {
                remaining: bytes(remaining),
                time_left: Duration::from_nanos(time_left),
            }));
        }
        Event::PacketSize(size) => controller.on_packet_size(bytes(size)),
    }
}

fn sample(now: Time, ack: &Ack) -> AckSample {
    let (bytes, nanos) = (ByteSize::from_bytes, Duration::from_nanos);
    AckSample {
        now,
        acked: bytes(ack.acked),
        ce_marked: bytes(ack.ce_marked),
        ece: ack.ece,
        rtt: ack.rtt.map(nanos),
        smoothed_rtt: nanos(ack.smoothed_rtt),
        min_rtt: nanos(ack.min_rtt),
        prior_in_flight: bytes(ack.prior_in_flight),
        in_flight: bytes(ack.in_flight),
        newest_sent: now - nanos(ack.age),
        delivery: ack.delivery.as_ref().map(|delivery| DeliverySample {
            rate: Rate::from_bits_per_second(delivery.rate),
            interval: nanos(delivery.interval),
            delivered: bytes(delivery.delivered),
            prior_delivered: ByteSize::ZERO,
            in_flight_at_send: bytes(delivery.in_flight_at_send),
            lost: bytes(delivery.lost),
            app_limited: delivery.app_limited,
        }),
        app_limited: ack.app_limited,
        is_recovering: ack.is_recovering,
        round_ended: ack.round_ended,
    }
}
