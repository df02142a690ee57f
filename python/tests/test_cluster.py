"""A sweep on a Ray cluster of several nodes on this machine, one of which is killed in the middle."""

import polars as pl
import pytest

import weir

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'weir[ray]'")
from ray.cluster_utils import Cluster  # noqa: E402

TIMES = ["cpu_s"]


def test_a_lost_node_loses_no_run(sweep, tmp_path):
    settings = {"duration": "400ms"}
    here = weir.sweep(sweep, tmp_path / "here", settings=settings).frame.drop(TIMES)
    options = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={**options, "num_cpus": 0})
    try:
        lost, _ = (cluster.add_node(**options) for _ in range(2))
        ray.init(address=cluster.address, log_to_driver=False)
        killed = False

        def kill(over: int, total: int) -> None:
            nonlocal killed
            if over >= 2 and not killed:
                killed = True
                cluster.remove_node(lost, allow_graceful=False)

        out = tmp_path / "there"
        there = weir.sweep(sweep, out, engine="ray", settings=settings, progress=kill)
        assert killed
        assert there.frame.drop(TIMES).equals(here)
        again = weir.sweep(sweep, out, engine="ray", settings=settings, resume=True)
        assert again.frame.equals(there.frame)
        with pytest.raises(weir.SweepError, match="ray.init has been called"):
            weir.sweep(sweep, tmp_path / "x", engine="ray", num_cpus=3)
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert pl.read_parquet(there.path).height == 9
