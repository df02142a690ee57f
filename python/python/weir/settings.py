"""Values of scenario keys, as in the command line's `--set`."""

from __future__ import annotations

from collections.abc import Mapping

from weir.errors import ScenarioError

Value = str | int | float | bool
Settings = Mapping[str, Value]


def as_text(path: str, value: Value) -> str:
    """Formats a value as TOML; strings stay as they are: `25Gbps`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return value
    raise ScenarioError(
        f"{path}: a value is a text, a number, True or False, and not {type(value).__name__}: "
        f'write for example {{"parameters.line_rate": "5Gbps"}}'
    )


def as_pairs(settings: Settings) -> list[tuple[str, str]]:
    """Converts settings for the native module."""
    return [(path, as_text(path, value)) for path, value in settings.items()]
