"""ECN and RED thresholds for given traffic: see docs/tuning.md.

    result = weir.tune([{"line_rate": "25Gbps", "cubic_rtt": "50ms"}], "target-share=0.5",
                       ["queue_mean < 200KB"], settings={"duration": "10s"})
    print(result.to_text())
    weir.export.sonic(result.profile()).text
"""

from weir.errors import missing

try:
    from weir.tuning.expression import Expression
    from weir.tuning.objective import BUILT_IN, Goal
    from weir.tuning.result import Tried, TuneResult
    from weir.tuning.space import Condition
    from weir.tuning.tuner import tune
except ImportError as error:
    raise missing("weir.tune", "learn", error) from error

__all__ = ["BUILT_IN", "Condition", "Expression", "Goal", "Tried", "TuneResult", "tune"]
