use weir_counters::FlowCounters;
use weir_units::{Duration, Rate};

use super::*;
use crate::Drops;

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn flow(index: u64, start: u64, end: Option<u64>) -> Observation<'static> {
    Observation::Flow(FlowRecord {
        group: "web",
        index,
        source: "a",
        destination: "b",
        start: at(start),
        end: end.map(at),
        size: None,
        ideal: None,
        counters: FlowCounters {
            delivered: ByteSize::from_bytes(1_000),
            ..FlowCounters::ZERO
        },
        goodput: Rate::ZERO,
        smoothed_rtt: None,
        min_rtt: None,
    })
}

fn written(observations: &[Observation<'_>], instants: &[(Time, String)]) -> Vec<TracePacket> {
    let directory = tempfile::tempdir().unwrap();
    let mut trace = PerfettoTrace::create(directory.path().join("run.perfetto"), instants).unwrap();
    for observation in observations {
        trace.record(*observation).unwrap();
    }
    let path = trace.finish(at(20)).unwrap();
    Trace::decode(&std::fs::read(path).unwrap()[..])
        .unwrap()
        .packet
}

fn track(packets: &[TracePacket], wanted: &str) -> Option<u64> {
    let mut tracks = packets
        .iter()
        .filter_map(|packet| packet.track_descriptor.as_ref());
    tracks
        .find(|track| track.name.as_deref() == Some(wanted))?
        .uuid
}

fn events(packets: &[TracePacket], track: u64) -> Vec<(u64, i32)> {
    let events = packets.iter().filter_map(|packet| {
        let event = packet.track_event.as_ref()?;
        (event.track_uuid == Some(track)).then_some((packet.timestamp?, event.r#type?))
    });
    events.collect()
}

#[test]
fn queues_are_counters_and_faults_are_instants() {
    let port = |time, queue| {
        Observation::Port(PortSample {
            time: at(time),
            port: "bottleneck",
            queue: ByteSize::from_bytes(queue),
            queue_packets: 1,
            sent: ByteSize::ZERO,
            marks: 3,
            drops: Drops::default(),
        })
    };
    let instants = [(at(5), "down: bottleneck".to_owned())];
    let packets = written(&[port(1, 1_500), port(2, 3_000)], &instants);
    let queue = track(&packets, "bottleneck: queue").unwrap();
    let counter = Kind::Counter.into();
    assert_eq!(
        events(&packets, queue),
        [(1_000_000, counter), (2_000_000, counter)]
    );
    let values = packets
        .iter()
        .filter_map(|packet| packet.track_event.as_ref());
    let values: Vec<_> = values
        .filter(|event| event.track_uuid == Some(queue))
        .collect();
    assert_eq!(values[1].counter_value, Some(3_000));
    let faults = track(&packets, "faults and changes").unwrap();
    assert_eq!(
        events(&packets, faults),
        [(5_000_000, Kind::Instant.into())]
    );
}

#[test]
fn flows_are_slices_that_do_not_overlap_on_a_track() {
    let packets = written(
        &[flow(1, 2, Some(4)), flow(0, 0, Some(9)), flow(2, 5, None)],
        &[],
    );
    let parent = track(&packets, "flows of web").unwrap();
    let tracks = packets
        .iter()
        .filter_map(|packet| packet.track_descriptor.as_ref());
    let lanes: Vec<_> = tracks
        .filter(|track| track.parent_uuid == Some(parent))
        .collect();
    assert_eq!(lanes.len(), 2);
    let (begin, end) = (Kind::SliceBegin.into(), Kind::SliceEnd.into());
    let second = events(&packets, lanes[1].uuid.unwrap());
    assert_eq!(second.len(), 4);
    assert_eq!(second[..2], [(2_000_000, begin), (4_000_000, end)]);
    // An open flow ends with the run.
    assert_eq!(second[2..], [(5_000_000, begin), (20_000_000, end)]);
}
