//! Transparent congestion control between two interfaces, without a switch.

use std::time::Duration as Wait;

use rustix::event::{EventfdFlags, eventfd};
use weir_congestion::AlgorithmSpec;
use weir_enforce::inline::{Inline, InlineCounters};
use weir_enforce::segment::Segment;
use weir_tcon::{FlowPolicy, Limits, Tcon};
use weir_units::Rate;

use crate::Failure;
use crate::bulk::transfer;
use crate::network::{Ends, Kind, Settings};

/// The result.
struct InLine {
    goodput: Rate,
    counters: InlineCounters,
    tcon: weir_tcon::Counters,
    kept: weir_fabric::PacketCount,
    /// The duration of the flow, in seconds.
    seconds: f64,
}

/// Measures the throughput.
pub(crate) fn measure() -> Result<(), Failure> {
    println!("\nOne kernel-TCP flow through TCon in line, no rate limit");
    for (name, kind) in [
        ("TAP", Kind::Tap),
        ("AF_PACKET on veth", Kind::PacketSocket),
    ] {
        for congestion in ["cubic", "bbr"] {
            let settings = Settings {
                kind,
                ..Settings::default()
            };
            let result = run(settings, &congestion.parse()?)?;
            print(&format!("{name}, {congestion}"), &result);
        }
    }
    println!("wanted: 5 Gbit/s with super-packets");
    Ok(())
}

fn run(settings: Settings, congestion: &AlgorithmSpec) -> Result<InLine, Failure> {
    let ends = Ends::new(&settings)?;
    let treatment = FlowPolicy::new(congestion.clone());
    let devices = ends.devices;
    let stop = eventfd(0, EventfdFlags::NONBLOCK)?;
    std::thread::scope(|scope| {
        let cable = scope.spawn(|| {
            let tcon: Tcon<Segment> = Tcon::new(Limits::default(), Box::new(treatment), 1);
            let mut cable = Inline::new(devices, tcon);
            let ran = cable.run(&stop);
            let tcon = cable.element::<Tcon<Segment>>();
            let kept = tcon.map(|tcon| (tcon.counters(), tcon.most_kept()));
            ran.map(|()| (cable.counters(), kept.unwrap_or_default()))
        });
        let moved = transfer(&ends.hosts, Wait::from_secs(4), || Ok(()));
        rustix::io::write(&stop, &1_u64.to_ne_bytes())?;
        let (counters, (tcon, kept)) = cable.join().map_err(|_| "the cable broke")??;
        let (goodput, seconds) = moved?;
        Ok(InLine {
            goodput,
            counters,
            tcon,
            kept,
            seconds,
        })
    })
}

fn print(name: &str, result: &InLine) {
    let InLine {
        goodput,
        counters,
        tcon,
        kept,
        seconds,
    } = result;
    println!(
        "  {name:<36} {:>7.3} Gbit/s {:>9.0} segments/s; at most {} packets ({}) kept, {} lost and mended, {} \
         windows lowered, {} frames without room",
        goodput.bits_per_second() as f64 / 1e9,
        counters.segments as f64 / (seconds + 1.0),
        kept.packets,
        kept.size,
        tcon.retransmissions,
        tcon.lowered,
        counters.full,
    );
}
