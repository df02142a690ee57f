//! One TCP connection that always has data to send.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration as Wait, Instant};

use weir_lab::switch::SwitchReport;
use weir_units::{ByteSize, Duration, Rate};

use crate::host::Namespace;
use crate::network::{ADDRESSES, Settings};
use crate::{Failure, network};

const PORT: u16 = 7000;
/// The time before the measurement, for slow start to end.
const WARM_UP: Wait = Wait::from_millis(1000);

/// The result.
pub(crate) struct Bulk {
    pub(crate) goodput: Rate,
    /// Per second, at the port before the receiver.
    pub(crate) segments: f64,
    /// Per second, from both hosts, over the whole time.
    pub(crate) frames: f64,
    /// The part of the time in which the switch's thread was running.
    pub(crate) switch_share: f64,
    pub(crate) report: SwitchReport,
}

pub(crate) fn measure(settings: Settings, span: Wait) -> Result<Bulk, Failure> {
    let network = network(settings)?;
    let started = Instant::now();
    let (goodput, seconds) = transfer(&network.hosts, span, || network.begin())?;
    let whole = started.elapsed().as_secs_f64();
    let report = network.stop()?;
    let packets = report.ports.first().map_or(0, |(_, port)| port.packets);
    Ok(Bulk {
        goodput,
        segments: packets as f64 / seconds,
        frames: report.frames as f64 / whole,
        switch_share: report.emulation.switch_cpu.as_secs_f64() / seconds,
        report,
    })
}

/// Returns the goodput of a connection from the first host to the second, and the measured time in
/// seconds. Calls `begin` when the measurement begins.
pub(crate) fn transfer(
    [sender, receiver]: &[Namespace; 2],
    span: Wait,
    begin: impl FnOnce() -> Result<(), Failure>,
) -> Result<(Rate, f64), Failure> {
    let listener = receiver.run(|| TcpListener::bind((ADDRESSES[1], PORT)))??;
    let mut to = sender.run(|| TcpStream::connect((ADDRESSES[1], PORT)))??;
    let (mut from, _) = listener.accept()?;
    let (received, over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let data = vec![0; 256 << 10];
            while !over.load(Ordering::Relaxed) {
                if to.write_all(&data).is_err() {
                    break;
                }
            }
            // This ends the reader too.
            let _ = to.shutdown(std::net::Shutdown::Both);
        });
        scope.spawn(|| {
            let mut data = vec![0; 256 << 10];
            while let Ok(length @ 1..) = from.read(&mut data) {
                received.fetch_add(length as u64, Ordering::Relaxed);
            }
        });
        std::thread::sleep(WARM_UP);
        let begun = begin();
        let (before, start) = (received.load(Ordering::Relaxed), Instant::now());
        std::thread::sleep(span);
        let bytes = received.load(Ordering::Relaxed) - before;
        let took = start.elapsed();
        over.store(true, Ordering::Relaxed);
        let rate = Rate::from_size_over(ByteSize::from_bytes(bytes), Duration::from(took));
        begun.map(|()| (rate, took.as_secs_f64()))
    })
}
