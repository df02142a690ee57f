"""`weir run --trace` against Perfetto's published schema (the package `perfetto` has it)."""

import os
import subprocess
from pathlib import Path

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

SCENARIO = """
title = "A transfer"
source = "a test"
duration = "30ms"
[dumbbell]
rate = "1Gbps"
queue = { kind = "step", ecn_threshold = "30KB", buffer = "200KB" }
[dumbbell.senders.sender]
rtt = "100us"
[groups.web]
from = "sender"
to = "receiver"
congestion = "dctcp"
workload = { kind = "transfer", size = "1MB" }
[measurements]
sample_interval = "1ms"
[[faults]]
kind = "down"
ports = "bottleneck"
at = "2ms"
until = "3ms"
"""


def weir() -> Path:
    binary = Path(os.environ.get("WEIR", Path(__file__).parents[2] / "target" / "debug" / "weir"))
    if not binary.exists():
        pytest.skip(f"SKIPPED: no {binary} (cargo build -p weir)")
    return binary


def unknown(message) -> list[str]:
    """The fields that the schema does not have, in the whole message."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    found = [str(field.field_number) for field in UnknownFieldSet(message)]
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            values = value if descriptor.is_repeated else [value]
            found += [field for one in values for field in unknown(one)]
    return found


def test_a_trace_follows_the_schema(tmp_path: Path) -> None:
    (tmp_path / "transfer.toml").write_text(SCENARIO)
    command = [weir(), "run", "transfer.toml", "--trace", "run.perfetto"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    trace = schema.Trace.FromString((tmp_path / "run.perfetto").read_bytes())
    assert unknown(trace) == []
    tracks = {
        packet.track_descriptor.uuid: packet.track_descriptor.name
        for packet in trace.packet
        if packet.HasField("track_descriptor")
    }
    events = [packet for packet in trace.packet if packet.HasField("track_event")]
    kinds = schema.TrackEvent.Type
    names = {kind: set() for kind in (kinds.TYPE_COUNTER, kinds.TYPE_SLICE_BEGIN, kinds.TYPE_INSTANT)}
    for packet in events:
        event = packet.track_event
        assert event.track_uuid in tracks
        if event.type in names:
            names[event.type].add(tracks[event.track_uuid])
    assert {"bottleneck: queue", "bottleneck: marks", "web: goodput", "web: window"} <= names[kinds.TYPE_COUNTER]
    assert names[kinds.TYPE_SLICE_BEGIN] == {"web"}
    assert names[kinds.TYPE_INSTANT] == {"faults and changes"}
    instants = [packet.track_event.name for packet in events if packet.track_event.type == kinds.TYPE_INSTANT]
    assert instants == ["begins: down of bottleneck", "ends: down of bottleneck"]
