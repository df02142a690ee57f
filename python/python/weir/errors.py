"""What can go wrong, as exceptions that say what is wrong, where, and what would be right.

    WeirError
      ScenarioError     a scenario that cannot be read or has mistakes
      SimulationError   a scenario that cannot be simulated
      SweepError        a sweep that cannot be read, begun or gone on with
      DatasetError      rows that are none, or not those that are needed
        SurrogateError  too few of them to learn from, or a saved surrogate that cannot be read
      ObjectiveError    an objective or constraint that makes no sense
      TuneError         conditions or a search space that make no sense
      ExportError       thresholds that a switch's format cannot express
"""

from weir._weir import ScenarioError, SimulationError, SweepError, WeirError

__all__ = [
    "DatasetError",
    "ExportError",
    "ObjectiveError",
    "ScenarioError",
    "SimulationError",
    "SurrogateError",
    "SweepError",
    "TuneError",
    "WeirError",
    "missing",
]


class DatasetError(WeirError):
    """Rows of runs that are none, of another version, or without the columns that are needed."""


class SurrogateError(DatasetError):
    """Too few rows to learn from, a model that is not known, or a saved surrogate that cannot be read."""


class ObjectiveError(WeirError):
    """An objective or constraint that cannot be parsed or evaluated, or has no number as its value."""


class TuneError(WeirError):
    """Conditions or a search space that make no sense."""


class ExportError(WeirError):
    """Thresholds that a switch's format cannot express."""


def missing(what: str, extra: str, error: ImportError) -> WeirError:
    """What to raise where an optional package is not installed."""
    return WeirError(f"{what} needs {error.name}: pip install 'weir[{extra}]'")
