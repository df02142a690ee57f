//! Reads `TCP_INFO`: the kernel's state of a TCP connection.

use std::os::fd::{AsFd, AsRawFd};

use weir_counters::FlowCounters;
use weir_units::{ByteSize, Duration};

use crate::probe::PathSample;

/// Offsets in `struct tcp_info` of `linux/tcp.h`, which only ever grows at its end. The structs of
/// libc end before `tcpi_delivered_ce`.
mod offset {
    pub(super) const SND_MSS: usize = 16;
    pub(super) const PMTU: usize = 60;
    pub(super) const RTT: usize = 68;
    pub(super) const RTTVAR: usize = 72;
    pub(super) const SND_CWND: usize = 80;
    pub(super) const TOTAL_RETRANS: usize = 100;
    pub(super) const MIN_RTT: usize = 148;
    pub(super) const DELIVERED_CE: usize = 196;
    pub(super) const BYTES_RETRANS: usize = 208;
    pub(super) const TOTAL_RTO: usize = 240;
}

/// Larger than the struct of any kernel so far.
const CAPACITY: usize = 512;

/// The value of `tcpi_min_rtt` before the first sample.
const NO_SAMPLE: u32 = u32::MAX;

/// Returns the state of a TCP socket; `None` for any other socket, or if the kernel returns less
/// than every Linux since 2.6.
pub(super) fn sample(socket: &impl AsFd) -> Option<PathSample> {
    let mut buffer = [0_u8; CAPACITY];
    let mut length = CAPACITY as libc::socklen_t;
    // SAFETY: the descriptor is borrowed and so stays open; `buffer` is writable for `length`
    // bytes, and the kernel writes no more than that.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            buffer.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    let told = usize::try_from(length).ok().filter(|_| result == 0)?;
    parse(buffer.get(..told)?)
}

/// Parses the struct. CE marks are those of our segments, as reported by the receiver (Linux 4.18).
/// Retransmitted bytes are available since Linux 4.19, time-outs since 6.7, the minimum round-trip
/// time (of the last five minutes, `tcp_min_rtt_wlen`) since 4.6.
fn parse(info: &[u8]) -> Option<PathSample> {
    let mss = u64::from(word(info, offset::SND_MSS)?);
    let micros = |micros: u32| Duration::from_micros(micros.into());
    let min_rtt = word(info, offset::MIN_RTT).filter(|micros| *micros != NO_SAMPLE);
    let ce_marked = word(info, offset::DELIVERED_CE).map(u64::from);
    let counters = FlowCounters {
        retransmits: word(info, offset::TOTAL_RETRANS)?.into(),
        retransmitted: double_word(info, offset::BYTES_RETRANS)
            .map_or(ByteSize::ZERO, ByteSize::from_bytes),
        timeouts: half_word(info, offset::TOTAL_RTO).map_or(0, u64::from),
        marks: ce_marked.unwrap_or(0),
        ..FlowCounters::ZERO
    };
    Some(PathSample {
        counters,
        packets_sent: None,
        reception: None,
        ce_marked,
        smoothed_rtt: Some(micros(word(info, offset::RTT)?)).filter(|rtt| !rtt.is_zero()),
        rtt_variation: Some(micros(word(info, offset::RTTVAR)?)),
        min_rtt: min_rtt.map(micros),
        cwnd: Some(ByteSize::from_bytes(
            mss * u64::from(word(info, offset::SND_CWND)?),
        )),
        mtu: ByteSize::from_bytes(word(info, offset::PMTU)?.into()),
        pacing: None,
    })
}

fn word(info: &[u8], offset: usize) -> Option<u32> {
    let bytes = info.get(offset..)?.first_chunk::<4>()?;
    Some(u32::from_ne_bytes(*bytes))
}

fn double_word(info: &[u8], offset: usize) -> Option<u64> {
    let bytes = info.get(offset..)?.first_chunk::<8>()?;
    Some(u64::from_ne_bytes(*bytes))
}

fn half_word(info: &[u8], offset: usize) -> Option<u16> {
    let bytes = info.get(offset..)?.first_chunk::<2>()?;
    Some(u16::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_offsets_match_the_kernel() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut accepted, _) = listener.accept().unwrap();
        stream.write_all(&[1; 100]).unwrap();
        accepted.read_exact(&mut [0; 100]).unwrap();
        let info = sample(&stream).unwrap();
        let mtu = info.mtu.bytes();
        assert!((1280..=65_536).contains(&mtu), "{info:?}");
        // Linux's initial window is ten segments; on loopback a segment may be as small as half an MTU.
        let cwnd = info.cwnd.unwrap().bytes();
        assert!((4 * mtu..=11 * mtu).contains(&cwnd), "{info:?}");
        assert_eq!(
            (info.counters, info.ce_marked),
            (FlowCounters::ZERO, Some(0))
        );
        let smoothed_rtt = info.smoothed_rtt.unwrap();
        assert!(smoothed_rtt < Duration::from_secs(1));
        assert!(info.min_rtt.unwrap() <= smoothed_rtt * 2);
    }

    #[test]
    fn a_udp_socket_gives_no_sample() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(sample(&socket), None);
    }

    #[test]
    fn an_older_kernels_struct_has_fewer_fields() {
        assert_eq!(parse(&[0; 196]).unwrap().ce_marked, None);
        let later = parse(&[0; 200]).unwrap();
        assert_eq!(later.ce_marked, Some(0));
        assert_eq!(later.counters, FlowCounters::ZERO);
        assert_eq!(parse(&[0; 60]), None);
        assert_eq!(parse(&[0xff; 200]).unwrap().min_rtt, None, "no sample yet");
    }
}
