"""A dataset in a sweep's format, from formulas instead of simulations: smooth, and monotonic where it
matters."""

import itertools

import numpy as np
import polars as pl

from weir import CODE_VERSION

KB = 1000


def made_up(seed: int = 0, code: str = CODE_VERSION) -> pl.DataFrame:
    """540 rows: three line rates, two round trips, ECN and RED thresholds."""
    random = np.random.default_rng(seed)
    rows = []
    marks, levels = [0, 20, 40, 80, 160, 400], [200, 400, 800, 1200, 1800]
    for rate, rtt, mark, low, high in itertools.product([5e9, 12.5e9, 25e9], [0.025, 0.05], marks, levels, levels):
        if low > high:
            continue
        bdp = rate * rtt / 8 / KB
        queue = (low + high) / 2
        share = np.sqrt(queue / (queue + bdp)) * queue / (queue + mark) + 0.01 * random.standard_normal()
        drops = 40 * queue**2 / bdp * np.exp(0.1 * random.standard_normal())
        rows.append(
            {
                "run": len(rows),
                "key": f"{len(rows):032x}",
                "code": code,
                "seed": 1,
                "cpu_s": 1.0,
                "line_rate_bps": int(rate),
                "cubic_rtt_s": rtt,
                "ecn_threshold_bytes": mark * KB,
                "red_min_bytes": low * KB,
                "red_max_bytes": high * KB,
                "groups.cubic.share": float(np.clip(share, 0, 1)),
                "groups.cubic.goodput_bps": int(np.clip(share, 0, 1) * rate),
                "groups.cubic.flows": 100,
                "groups.dctcp.goodput_bps": int(np.clip(1 - share, 0, 1) * rate),
                "groups.dctcp.flows": 100,
                "ports.bottleneck.drops.red": int(drops) if low < high else 0,
                "ports.bottleneck.drops.tail": 0 if low < high else int(drops),
                "ports.bottleneck.drops.buffer": 0,
                "ports.bottleneck.queue_mean_bytes": int(0.8 * queue * KB * share),
                "ports.bottleneck.queue_p99_bytes": int(queue * KB),
                "ports.bottleneck.queue_max_bytes": int(high * KB),
                "ports.bottleneck.utilization": 0.99,
            }
        )
    return pl.DataFrame(rows)
