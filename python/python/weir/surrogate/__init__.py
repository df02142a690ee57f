"""A model learned from thousands of runs: it predicts the outputs of a setting in microseconds.

    from weir.surrogate import Surrogate, dataset, evaluate

    data = dataset("study/runs.parquet")
    surrogate = Surrogate.fit(data)
    surrogate.predict({"ecn_threshold_bytes": 65_000, "red_min_bytes": 400_000, …})
    surrogate.save("thresholds.weir")
    evaluate(data, model="paper-deep", fraction=0.05)       # over ten random splits
"""

from weir.errors import missing

try:
    from weir.surrogate.data import Data, dataset
    from weir.surrogate.evaluation import evaluate, held_out, learning_curve, summarize
    from weir.surrogate.model import Surrogate
    from weir.surrogate.models import MODELS
except ImportError as error:
    raise missing("weir.surrogate", "learn", error) from error

__all__ = [
    "MODELS",
    "Data",
    "Surrogate",
    "dataset",
    "evaluate",
    "held_out",
    "learning_curve",
    "summarize",
]
