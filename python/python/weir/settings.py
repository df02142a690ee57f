"""Scenarios and values of their keys: as in files and in the command line's `--set`, or as dicts and dataclasses."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weir.errors import ScenarioError

#: A value of a key: text is written as in a file, without quotes: `25Gbps`.
Value = str | int | float | bool | Sequence[Any] | Mapping[str, Any]
#: Values by path, `{"parameters.line_rate": "5Gbps"}`, or as tables in each other, `{"parameters": {"line_rate": …}}`;
#: or a dataclass with such fields.
Settings = Mapping[str, Any] | Any
#: A scenario file, the name of a shipped one, or its content as a dict or a dataclass.
Scenario = str | os.PathLike[str] | Mapping[str, Any] | Any

#: Keys of tables that are one value: an algorithm, a queue, a workload.
_ONE_VALUE = ("name", "kind", "plugin")


def as_mapping(value: object) -> Mapping[str, Any] | None:
    """Returns a mapping, or a dataclass as one without fields that are None; None for anything else."""
    if isinstance(value, Mapping):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {name: found for name, found in pairs if found is not None}
    return None


def as_text(path: str, value: object) -> str:
    """Formats a value as TOML; texts stay as they are: `25Gbps`."""
    return value if isinstance(value, str) else _toml(path, value)


def as_pairs(settings: Settings | None) -> list[tuple[str, str]]:
    """Converts settings for the native module."""
    table = as_mapping({} if settings is None else settings)
    if table is None:
        raise ScenarioError(
            f"settings are a dict or a dataclass, and not {type(settings).__name__}: "
            'write for example {"parameters.line_rate": "5Gbps"}'
        )
    return list(_pairs("", table))


def as_source(scenario: Scenario) -> str | tuple[str, str]:
    """Converts a scenario for the native module: to a path, or to a name for messages and a text."""
    table = as_mapping(scenario)
    if table is None:
        if isinstance(scenario, (str, os.PathLike)):
            return os.fspath(scenario)
        raise ScenarioError(
            f"a scenario is a file, a name, a dict or a dataclass, and not {type(scenario).__name__}"
        )
    lines = (f"{json.dumps(str(key))} = {_toml(str(key), value)}" for key, value in table.items())
    return ("the scenario", "\n".join(lines))


def _pairs(above: str, table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        path = f"{above}{key}"
        below = as_mapping(value)
        if below is None or any(name in below for name in _ONE_VALUE):
            yield path, as_text(path, value)
        else:
            yield from _pairs(f"{path}.", below)


def _toml(path: str, value: object) -> str:
    """Formats a value as TOML in one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value)
    table = as_mapping(value)
    if table is not None:
        entries = (f"{json.dumps(str(key))} = {_toml(f'{path}.{key}', entry)}" for key, entry in table.items())
        return "{ " + ", ".join(entries) + " }"
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return "[" + ", ".join(_toml(path, entry) for entry in value) + "]"
    raise ScenarioError(
        f"{path}: a value is a text, a number, True, False, a list or a dict, and not {type(value).__name__}: "
        f'write for example {{"parameters.line_rate": "5Gbps"}}'
    )
