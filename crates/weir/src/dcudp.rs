//! `weir dcudp`

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use serde::Serialize;
use weir_dcudp::threshold::{Bottleneck, DelayKind, Threshold};
use weir_units::{ByteSize, Duration, Rate};

use crate::arguments::{limit, size};
use crate::failure::Failure;
use crate::output;

/// The subcommands of `weir dcudp`.
#[derive(Debug, Subcommand)]
pub(crate) enum Dcudp {
    /// Compute the largest marking threshold th_max of a switch
    Threshold(ThresholdArguments),
}

impl Dcudp {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        match self {
            Self::Threshold(threshold) => threshold.run(),
        }
    }
}

/// The arguments of `weir dcudp threshold`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir dcudp threshold --capacity 1Gbps --buffer 4MB --senders 20 --rtt 100us \\
      --sending-rate 1.6Gbps
  weir dcudp threshold --capacity 25Gbps --buffer 2MB --senders 8 --rtt 40us \\
      --sending-rate 25Gbps --packet-size 9000 --json

The inequality (DCUDP, section IV-A.1), in packets:
  th_max + N (RTT + th_max Delay) / Interval - (RTT + th_max Delay) / Delay <= buffer")]
pub(crate) struct ThresholdArguments {
    /// Rate of the bottleneck link
    #[arg(long, value_name = "RATE")]
    capacity: Rate,

    /// Buffer of the switch in front of it
    #[arg(long, value_name = "SIZE", value_parser = size)]
    buffer: ByteSize,

    /// Number of concurrent senders
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    senders: u32,

    /// Round-trip time without a queue
    #[arg(long, value_name = "TIME", value_parser = limit)]
    rtt: Duration,

    /// Rate of each sender in UDP Mode
    #[arg(long, value_name = "RATE")]
    sending_rate: Rate,

    /// Size of the IP packets
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "1500")]
    packet_size: ByteSize,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Both interpretations of *Delay*; the recommended one is first.
const READINGS: [(DelayKind, &str); 2] = [
    (DelayKind::Service, "service time"),
    (DelayKind::Propagation, "propagation"),
];

#[derive(Serialize)]
struct Answer {
    reading: &'static str,
    delay_ns: u64,
    /// `None` if no threshold works; the buffer if any works.
    th_max_packets: Option<u64>,
    th_max_bytes: Option<u64>,
    limited: bool,
    /// The maximum queue length with that threshold.
    queue_packets: Option<f64>,
    buffer_packets: f64,
}

impl ThresholdArguments {
    fn run(&self) -> Result<(), Failure> {
        let bottleneck = Bottleneck {
            capacity: self.capacity,
            buffer: self.buffer,
            senders: self.senders,
            idle_rtt: self.rtt,
            sending_rate: self.sending_rate,
            packet_size: self.packet_size,
        };
        let answers = READINGS
            .iter()
            .map(|(reading, name)| self.answer(&bottleneck, *reading, name))
            .collect::<Result<Vec<_>, _>>()?;
        if self.json {
            return output::print_json(&answers);
        }
        let mut text = String::new();
        for answer in &answers {
            let delay = Duration::from_nanos(answer.delay_ns);
            let _ = write!(text, "Delay as {:<13}({delay}): ", answer.reading);
            let _ = match (answer.th_max_packets, answer.limited) {
                (None, _) => writeln!(
                    text,
                    "no th_max keeps {} senders within the buffer of {:.0} packets",
                    self.senders, answer.buffer_packets
                ),
                (Some(_), false) => writeln!(
                    text,
                    "any th_max will do: the queue does not outgrow the buffer of {:.0} packets",
                    answer.buffer_packets
                ),
                (Some(packets), true) => writeln!(
                    text,
                    "th_max up to {packets} packets ({}): a queue of {:.0} of {:.0} packets",
                    self.packet_size * packets,
                    answer.queue_packets.unwrap_or(0.0),
                    answer.buffer_packets
                ),
            };
        }
        text.push_str(
            "Go by the first: what leaves the queue meanwhile depends on the service time.\n",
        );
        output::print(&text)
    }

    fn answer(
        &self,
        bottleneck: &Bottleneck,
        reading: DelayKind,
        name: &'static str,
    ) -> Result<Answer, Failure> {
        let wrong = |error: weir_dcudp::threshold::ThresholdError| {
            Failure::option(error.0, "it must be above zero")
        };
        let threshold = bottleneck.threshold(reading).map_err(wrong)?;
        let buffer_packets = bottleneck.buffer_packets();
        let (packets, limited) = match threshold {
            Threshold::UpTo(packets) => (Some(packets), true),
            Threshold::Unlimited => (Some(buffer_packets as u64), false),
            Threshold::None => (None, true),
        };
        let queue = packets.map(|packets| bottleneck.queue(packets, reading));
        Ok(Answer {
            reading: name,
            delay_ns: bottleneck.delay(reading).as_nanos(),
            th_max_packets: packets,
            th_max_bytes: packets.map(|packets| (self.packet_size * packets).bytes()),
            limited,
            queue_packets: queue.transpose().map_err(wrong)?,
            buffer_packets,
        })
    }
}
