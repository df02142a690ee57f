"""Sweeps on a Ray cluster.

The driver plans the runs, sends them out as self-contained texts, and writes the only journal; workers need
the package `weir`, of the same version, and no files. A lost worker or node costs its runs in flight: Ray
starts them again elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weir import _weir
from weir.errors import SweepError, missing

if TYPE_CHECKING:
    from weir.sweeping import Progress

#: Retries of a run whose worker is lost: -1 is without limit.
RETRIES = -1
#: Queued tasks in the cluster per running one, so that no core waits for the driver.
AHEAD = 4


def hand_out(
    opened: _weir.OpenSweep, jobs: int, progress: Progress | None, options: dict[str, Any]
) -> None:
    """Simulates the runs without rows, at most `jobs` at a time (0: as many as the cluster has cores)."""
    try:
        import ray
    except ImportError as error:
        raise missing('engine="ray"', "ray", error) from error

    started = not ray.is_initialized()
    if started:
        ray.init(**{"include_dashboard": False, "log_to_driver": False, **options})
    elif options:
        raise SweepError(f"ray.init has been called already: {', '.join(options)} would have no effect")
    try:
        _hand_out(ray, opened, jobs, progress)
    finally:
        if started:
            ray.shutdown()


def _hand_out(ray: Any, opened: _weir.OpenSweep, jobs: int, progress: Progress | None) -> None:
    work = ray.remote(num_cpus=1, max_retries=RETRIES)(_weir_task)
    tasks = iter(opened.tasks())
    cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
    most = jobs if jobs else cores * AHEAD
    flying: set[Any] = set()
    total = len(opened)
    try:
        while True:
            while len(flying) < most and (task := next(tasks, None)) is not None:
                flying.add(work.remote(task))
            if not flying:
                return
            ready, _ = ray.wait(list(flying), num_returns=1, timeout=1.0)
            for done in ready:
                flying.discard(done)
                opened.add(ray.get(done))
            if progress is not None:
                progress(opened.done, total)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause if hasattr(error, "cause") else error
        raise SweepError(f"a worker failed: {cause}") from error
    except ray.exceptions.RayError as error:
        raise SweepError(f"the Ray cluster failed: {error}; resume=True goes on") from error
    finally:
        for left in flying:
            ray.cancel(left, force=True)


def _weir_task(task: str) -> str:
    from weir import _weir

    return _weir.carry_out_task(task)
