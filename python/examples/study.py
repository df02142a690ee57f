"""The paper's study in a few lines: sweep, learn, draw, tune, export.

    python examples/study.py                     a tiny one, in a minute
    python examples/study.py ../sweeps/table1.toml study "duration=120s"     the whole one: days of CPU time
"""

# %% Sweep: thousands of settings, here a few dozen.
import sys
from pathlib import Path

import weir
from weir import pictures
from weir.export import sonic
from weir.surrogate import Surrogate, dataset, evaluate, summarize

sweep = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_name("tiny.toml")
out = Path(sys.argv[2] if len(sys.argv) > 2 else "study")
settings = dict(text.split("=", 1) for text in sys.argv[3:])
runs = weir.sweep(sweep, out, settings=settings, resume=True)
data = dataset(runs)
print(data.frame.select("ecn_threshold_bytes", "red_max_bytes", "groups.cubic.share").head())

# %% Learn: the paper's model and a better one, on a part of the data, judged on the rest.
fraction = max(0.05, 24 / len(data))
for model in ("paper-shallow", "gaussian"):
    print(model, summarize(evaluate(data, model, fraction, splits=3)).select("output", "r2", "r2_std", "rmse", "mae"))
Surrogate.fit(data).save(out / "surrogate.weir")

# %% Draw: Figures 2 and 3, RED against drop-tail, learning curves.
(out / "report.html").write_text(pictures.sweep_report(data, models=["paper-shallow", "gaussian"], splits=3))

# %% Tune: fair shares with a short queue, from what the sweep knows, verified by simulation.
condition = {"line_rate": f"{data.frame['line_rate_bps'][0]}bps"}
same = {"duration": "300ms", "parameters.cubic_rtt": "10ms", "parameters.flows_per_sender": 1,
        "groups.dctcp.start_within": "10ms", "groups.cubic.start_within": "10ms"} | settings
tuned = weir.tune([condition], "target-share=0.5", ["queue_mean < 1MB"], data=data, settings=same, budget=12)
print(tuned.to_text())

# %% Into the switch.
print(sonic(tuned.profile("datacenter"), queues=["Ethernet0|3"]).text)
