use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use pcap_file::pcapng::{Block, PcapNgReader};
use tempfile::TempDir;
use weir_wire::tcp::{Flags, Options, SackBlock, Sequence, SynOptions, Timestamps};

use super::*;

const ALL: ByteSize = ByteSize::ZERO;

/// The ports belong to no protocol that Wireshark dissects.
fn packet(content: Content) -> CapturedPacket {
    CapturedPacket {
        time: Time::from_nanos(1_000_000_123),
        source: "10.0.0.1:40000".parse().unwrap(),
        destination: "10.0.0.2:40001".parse().unwrap(),
        ecn: Ecn::Ect0,
        hops: 64,
        identification: 7,
        content,
    }
}

fn data(payload: u32) -> Segment {
    Segment {
        sequence: Sequence::new(1000),
        acknowledgment: Sequence::new(5),
        payload,
        window: 500,
        flags: Flags::ACK,
        timestamps: Some(Timestamps { value: 1, echo: 2 }),
        options: Options::None,
    }
}

fn written(snap: ByteSize, contents: &[Content]) -> io::Result<Vec<u8>> {
    let mut writer = Writer::new(Vec::new(), snap)?;
    let interface = writer.interface("bottleneck")?;
    for content in contents {
        writer.record(interface, Direction::Outbound, &packet(*content))?;
    }
    Ok(writer.pcapng.into_inner())
}

/// Returns the frames of a file and their original lengths.
fn frames(file: &[u8]) -> Vec<(Vec<u8>, u32)> {
    let mut reader = PcapNgReader::new(file).unwrap();
    let mut frames = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            assert_eq!(packet.timestamp.as_nanos(), 1_000_000_123);
            frames.push((packet.data.into_owned(), packet.original_len));
        }
    }
    frames
}

#[test]
fn large_payloads_are_cut() {
    let contents = [Content::Tcp(data(1448)), Content::Tcp(data(10))];
    let frames = frames(&written(ByteSize::from_bytes(100), &contents).unwrap());
    let lengths = frames.iter().map(|(frame, length)| (frame.len(), *length));
    // Ethernet 14, IP 20, TCP 32.
    assert!(lengths.eq([(100, 1514), (76, 76)]));
}

#[test]
fn frames_carry_the_headers_of_the_packet() {
    let segment = data(3);
    let file = written(ALL, &[Content::Tcp(segment)]).unwrap();
    let (frame, _) = &frames(&file)[0];
    let (ip, tcp) = frame[14..].split_at(20);
    assert_eq!(Ecn::from_bits(ip[1]), Ecn::Ect0);
    assert_eq!(ip[4..6], [0, 7]);
    assert_eq!(ip[8], 64);
    assert_eq!(Segment::parse(tcp).unwrap().1, segment);
}

#[test]
fn invalid_packets_are_refused() {
    let kind = |content| written(ALL, &[content]).unwrap_err().kind();
    assert_eq!(kind(Content::Tcp(data(65_484))), ErrorKind::InvalidInput);
    assert!(written(ALL, &[Content::Tcp(data(65_483))]).is_ok());
    assert_eq!(kind(Content::Udp(ByteSize::MAX)), ErrorKind::InvalidInput);

    let mut writer = Writer::new(Vec::new(), ALL).unwrap();
    let interface = writer.interface("a").unwrap();
    let good = packet(Content::Udp(ByteSize::ZERO));
    let mixed = CapturedPacket {
        destination: "[::1]:1".parse().unwrap(),
        ..good
    };
    let mut record = |interface, packet| writer.record(interface, Direction::Outbound, packet);
    for (interface, bad) in [(interface, &mixed), (Interface(1), &good)] {
        let error = record(interface, bad).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
    record(interface, &good).unwrap();
}

/// A conversation with every option, both families, both protocols, and payloads of odd lengths.
fn conversation(path: &Path, snap: ByteSize) {
    let syn = Options::Syn(SynOptions {
        maximum_segment_size: 1460,
        window_scale: Some(7),
        sack_permitted: true,
    });
    let block = |start| SackBlock {
        start: Sequence::new(start),
        end: Sequence::new(start + 1448),
    };
    let segments = [
        Segment {
            flags: Flags::SYN | Flags::ECE | Flags::CWR,
            options: syn,
            ..data(0)
        },
        Segment {
            flags: Flags::SYN | Flags::ACK | Flags::ECE,
            options: syn,
            timestamps: None,
            ..data(0)
        },
        Segment {
            sequence: Sequence::new(1001),
            ..data(1448)
        },
        Segment {
            sequence: Sequence::new(2449),
            ..data(7)
        },
        Segment {
            options: Options::Sack(
                [block(10_000), block(20_000), block(30_000)]
                    .into_iter()
                    .collect(),
            ),
            ..data(0)
        },
        Segment {
            options: Options::Sack([block(10_000)].into_iter().collect()),
            timestamps: None,
            ..data(0)
        },
        Segment {
            flags: Flags::FIN | Flags::ACK | Flags::PSH,
            ..data(1)
        },
        Segment {
            flags: Flags::RST,
            timestamps: None,
            ..data(0)
        },
    ];
    let datagrams = [0, 1, 1472].map(|size| Content::Udp(ByteSize::from_bytes(size)));
    let contents = segments.map(Content::Tcp).into_iter().chain(datagrams);

    let mut capture = PacketCapture::create(path, snap).unwrap();
    let interfaces = ["bottleneck", "a->b"].map(|name| capture.interface(name).unwrap());
    for (number, content) in contents.enumerate() {
        let version4 = packet(content);
        let version6 = CapturedPacket {
            time: Time::from_nanos(2_000_000_000 + number as u64),
            source: "[fd00::1]:40000".parse().unwrap(),
            destination: "[fd00::2]:40001".parse().unwrap(),
            ecn: Ecn::Ce,
            ..version4
        };
        let [one, other] = interfaces;
        capture.record(one, Direction::Outbound, &version4).unwrap();
        capture
            .record(other, Direction::Inbound, &version6)
            .unwrap();
    }
    capture.finish().unwrap();
}

/// Returns tshark's output, with all checksums verified; `None` if tshark is not installed.
fn tshark(path: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("tshark");
    for protocol in ["ip", "tcp", "udp"] {
        command.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
    }
    command.args(["-o", "tcp.relative_sequence_numbers:FALSE"]);
    match command.arg("-r").arg(path).args(arguments).output() {
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{errors}");
            Some(String::from_utf8(output.stdout).unwrap())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            println!("SKIPPED: Wireshark on our packets: no tshark (apt-get install tshark)");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn wireshark_reports_no_malformed_packets() {
    let directory = TempDir::new().unwrap();
    let [whole, cut] = ["whole", "cut"].map(|name| directory.path().join(name));
    conversation(&whole, ALL);
    conversation(&cut, ByteSize::from_bytes(128));
    let bad = "_ws.malformed || tcp.option.len.invalid || ip.checksum.status == 0 || \
               tcp.checksum.status == 0 || udp.checksum.status == 0";
    for path in [&whole, &cut] {
        let Some(found) = tshark(path, &["-Y", bad]) else {
            return;
        };
        assert_eq!(found, "");
    }
    // Status 1: checked and correct.
    let good = "tcp.checksum.status == 1 || udp.checksum.status == 1";
    assert_eq!(tshark(&whole, &["-Y", good]).unwrap().lines().count(), 22);
    assert_eq!(tshark(&cut, &[]).unwrap().lines().count(), 22);

    let fields = [
        "frame.time_epoch",
        "frame.interface_name",
        "ipv6.src",
        "tcp.srcport",
        "tcp.options.sack_le",
        "tcp.flags.ece",
        "ipv6.tclass.ecn",
        "tcp.options.mss_val",
        "tcp.len",
    ];
    let fields: Vec<&str> = fields.iter().flat_map(|field| ["-e", field]).collect();
    let arguments = [
        &[
            "-Y",
            "ipv6 && (tcp.flags.syn == 1 || tcp.options.sack_le)",
            "-T",
            "fields",
        ],
        &fields[..],
    ]
    .concat();
    assert_eq!(
        tshark(&cut, &arguments).unwrap(),
        "2.000000000\ta->b\tfd00::1\t40000\t\t1\t3\t1460\t0\n\
         2.000000001\ta->b\tfd00::1\t40000\t\t1\t3\t1460\t0\n\
         2.000000004\ta->b\tfd00::1\t40000\t10000,20000,30000\t0\t3\t\t0\n\
         2.000000005\ta->b\tfd00::1\t40000\t10000\t0\t3\t\t0\n"
    );
}

#[test]
fn a_capture_file_appears_only_when_complete() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("packets.pcapng");
    {
        let mut capture = PacketCapture::create(&path, ALL).unwrap();
        let interface = capture.interface("a").unwrap();
        capture
            .record(
                interface,
                Direction::Outbound,
                &packet(Content::Tcp(data(1))),
            )
            .unwrap();
        assert!(!path.exists());
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    conversation(&path, ALL);
    let first = std::fs::read(&path).unwrap();
    conversation(&path, ALL);
    assert_eq!(std::fs::read(&path).unwrap(), first);
}
