"""Exceptions; their messages name the error, its location and the remedy.

    WeirError
      ScenarioError     a scenario that cannot be read or has errors
      SimulationError   a scenario that cannot be simulated
      SweepError        a sweep that cannot be read, started or resumed
      DatasetError      rows that are no dataset, or lack required columns
        SurrogateError  too few rows to learn from, or a saved surrogate that cannot be read
      ObjectiveError    an invalid objective or constraint
      TuneError         invalid conditions or an invalid search space
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
    """Rows that are no dataset, are of another version, or lack required columns."""


class SurrogateError(DatasetError):
    """Too few rows to learn from, an unknown model, or a saved surrogate that cannot be read."""


class ObjectiveError(WeirError):
    """An objective or constraint that cannot be parsed or evaluated, or is not a number."""


class TuneError(WeirError):
    """Invalid conditions or an invalid search space."""


class ExportError(WeirError):
    """Thresholds that a switch's format cannot express."""


def missing(what: str, extra: str, error: ImportError) -> WeirError:
    """Returns the exception for a missing optional package."""
    return WeirError(f"{what} needs {error.name}: pip install 'weir[{extra}]'")
