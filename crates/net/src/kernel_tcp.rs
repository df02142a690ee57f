//! What the kernel tells about one of its TCP connections (`TCP_INFO`), for programs that measure
//! DCQUIC beside it.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use weir_counters::FlowCounters;
use weir_units::{ByteSize, Duration};

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

/// Longer than the struct is in any kernel so far.
const CAPACITY: usize = 512;

/// What the kernel holds in `tcpi_min_rtt` before there is a sample.
const NO_SAMPLE: u32 = u32::MAX;

/// A sender's view of a TCP connection. Counts are since the connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelTcpInfo {
    /// Segments sent again.
    pub retransmits: u64,
    /// Payload sent again (Linux 4.19).
    pub retransmitted: Option<ByteSize>,
    /// Retransmission time-outs that went off (Linux 6.7).
    pub timeouts: Option<u64>,
    /// Segments that arrived with a CE mark, by the receiver's account (Linux 4.18).
    pub ce_marked: Option<u64>,
    /// The smoothed round-trip time; zero before the first sample.
    pub smoothed_rtt: Duration,
    /// Its mean deviation.
    pub rtt_variation: Duration,
    /// The shortest round-trip time of the last five minutes (`tcp_min_rtt_wlen`), where there was a
    /// sample (Linux 4.6).
    pub min_rtt: Option<Duration>,
    /// The congestion window.
    pub cwnd: ByteSize,
    /// The path MTU, IP header included.
    pub path_mtu: ByteSize,
}

impl KernelTcpInfo {
    /// Asks the kernel about a TCP socket.
    ///
    /// # Errors
    /// The system's error; [`io::ErrorKind::Unsupported`] where the kernel tells less than what every
    /// Linux since 2.6 does.
    pub fn of(socket: &impl AsFd) -> io::Result<Self> {
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
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        let told = usize::try_from(length)
            .ok()
            .and_then(|end| buffer.get(..end));
        told.and_then(Self::parse)
            .ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    /// What every transport counts. What was delivered is not among it: the application reads it from
    /// the socket. Marks are those of our segments, by the receiver's account.
    pub fn flow_counters(&self) -> FlowCounters {
        FlowCounters {
            retransmits: self.retransmits,
            retransmitted: self.retransmitted.unwrap_or(ByteSize::ZERO),
            timeouts: self.timeouts.unwrap_or(0),
            marks: self.ce_marked.unwrap_or(0),
            ..FlowCounters::ZERO
        }
    }

    fn parse(info: &[u8]) -> Option<Self> {
        let mss = u64::from(word(info, offset::SND_MSS)?);
        let micros = |micros: u32| Duration::from_micros(micros.into());
        let min_rtt = word(info, offset::MIN_RTT).filter(|micros| *micros != NO_SAMPLE);
        Some(Self {
            retransmits: word(info, offset::TOTAL_RETRANS)?.into(),
            retransmitted: double_word(info, offset::BYTES_RETRANS).map(ByteSize::from_bytes),
            timeouts: half_word(info, offset::TOTAL_RTO).map(u64::from),
            ce_marked: word(info, offset::DELIVERED_CE).map(u64::from),
            smoothed_rtt: micros(word(info, offset::RTT)?),
            rtt_variation: micros(word(info, offset::RTTVAR)?),
            min_rtt: min_rtt.map(micros),
            cwnd: ByteSize::from_bytes(mss * u64::from(word(info, offset::SND_CWND)?)),
            path_mtu: ByteSize::from_bytes(word(info, offset::PMTU)?.into()),
        })
    }
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
    fn the_offsets_are_the_kernels() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut accepted, _) = listener.accept().unwrap();
        stream.write_all(&[1; 100]).unwrap();
        accepted.read_exact(&mut [0; 100]).unwrap();
        let info = KernelTcpInfo::of(&stream).unwrap();
        let mtu = info.path_mtu.bytes();
        assert!((1280..=65_536).contains(&mtu), "{info:?}");
        // The initial window of Linux is ten segments; here one may be as small as half an MTU.
        assert!(
            (4 * mtu..=11 * mtu).contains(&info.cwnd.bytes()),
            "{info:?}"
        );
        assert_eq!((info.retransmits, info.ce_marked), (0, Some(0)));
        assert_eq!(info.retransmitted, Some(ByteSize::ZERO));
        assert!(info.timeouts.is_none_or(|count| count == 0), "{info:?}");
        assert!(info.smoothed_rtt < Duration::from_secs(1));
        assert!(info.min_rtt.unwrap() <= info.smoothed_rtt * 2);
    }

    #[test]
    fn what_is_no_tcp_socket_is_an_error() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(KernelTcpInfo::of(&socket).is_err());
    }

    #[test]
    fn an_older_kernels_struct_tells_less() {
        assert_eq!(KernelTcpInfo::parse(&[0; 196]).unwrap().ce_marked, None);
        let later = KernelTcpInfo::parse(&[0; 200]).unwrap();
        assert_eq!((later.ce_marked, later.timeouts), (Some(0), None));
        assert_eq!(later.retransmitted, None);
        assert_eq!(KernelTcpInfo::parse(&[0; 60]), None);
        assert_eq!(
            KernelTcpInfo::parse(&[0xff; 200]).unwrap().min_rtt,
            None,
            "no sample yet"
        );
    }
}
