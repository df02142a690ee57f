//! The one-way delay of datagrams: both ends read the same clock.

use std::net::UdpSocket;
use std::time::Duration as Wait;

use rustix::time::{ClockId, clock_gettime};
use weir_lab::switch::SwitchReport;
use weir_units::Duration;

use crate::network::{ADDRESSES, Settings};
use crate::{Failure, network};

const PORT: u16 = 7001;

/// The result.
pub(crate) struct Delays {
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    pub(crate) report: SwitchReport,
}

pub(crate) fn measure(settings: Settings, count: usize) -> Result<Delays, Failure> {
    let network = network(settings)?;
    let [sender, receiver] = &network.hosts;
    let to = receiver.run(|| UdpSocket::bind((ADDRESSES[1], PORT)))??;
    to.set_read_timeout(Some(Wait::from_secs(1)))?;
    let from = sender.run(|| UdpSocket::bind((ADDRESSES[0], PORT)))??;
    from.connect((ADDRESSES[1], PORT))?;
    let mut delays = std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..count {
                std::thread::sleep(Wait::from_millis(2));
                let mut data = [0; 200];
                data[..8].copy_from_slice(&now().to_ne_bytes());
                // The receiver counts lost datagrams as missing.
                let _ = from.send(&data);
            }
        });
        let mut delays = Vec::with_capacity(count);
        let mut data = [0; 200];
        while delays.len() < count && to.recv(&mut data).is_ok() {
            let arrived = now();
            if let Some(sent) = data.first_chunk() {
                let span = arrived.saturating_sub(u64::from_ne_bytes(*sent));
                delays.push(Duration::from_nanos(span));
            }
        }
        delays
    });
    delays.sort_unstable();
    let at = |part: usize| delays.get(delays.len() * part / 100).copied();
    let (Some(p50), Some(p99)) = (at(50), at(99)) else {
        return Err("no datagram arrived".into());
    };
    Ok(Delays {
        p50,
        p99,
        report: network.stop()?,
    })
}

fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
