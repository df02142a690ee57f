"""A small scenario and a small sweep: 1 Gbps, 50 ms of simulated time, a handful of flows."""

from pathlib import Path

import pytest

SCENARIO = """
title = "DCTCP and CUBIC share a small buffer"
source = "a test"
duration = "60ms"
warm_up = "10ms"

[parameters]
buffer = "200KB"
line_rate = "1Gbps"
cubic_rtt = "2ms"
ecn_threshold = "30KB"
red_min = "100KB"
red_max = "100KB"

[dumbbell]
rate = "$line_rate"
queue = { kind = "shared", buffer = "$buffer", ecn_threshold = "$ecn_threshold", red_min = "$red_min", red_max = "$red_max", drop_probability = 0.05 }

[dumbbell.senders.dctcp]
count = 2
rtt = "100us"

[dumbbell.senders.cubic]
count = 2
rtt = "$cubic_rtt"

[groups.dctcp]
from = "dctcp"
to = "receiver"
congestion = "dctcp"
workload = "bulk"
tcp = { ecn = "dctcp" }

[groups.cubic]
from = "cubic"
to = "receiver"
congestion = "cubic"
workload = "bulk"
tcp = { ecn = "off" }

[measurements]
sample_interval = "1ms"
ports = "bottleneck"

[variants.fast]
"parameters.line_rate" = "2Gbps"
"""

SWEEP = """
title = "Thresholds"
source = "a test"
scenario = "small.toml"
where = ["parameters.red_min <= parameters.red_max"]

[grid]
"parameters.ecn_threshold" = ["10KB", "30KB", "90KB"]
"parameters.red_min" = ["50KB", "100KB"]
"parameters.red_max" = ["50KB", "100KB"]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture
def sweep(scenario: Path) -> Path:
    path = scenario.parent / "sweep.toml"
    path.write_text(SWEEP)
    return path
