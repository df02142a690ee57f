"""Objectives and constraints as text: Python expressions over outputs.

They are parsed, and evaluated node by node: only the names and functions in this file can be used.
Quantities with units are numbers in base units: `queue_mean < 200KB`, `delay_p99 <= 50us`.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from weir import _weir
from weir.errors import ObjectiveError

#: A number followed directly by a unit, and not preceded by a name.
QUANTITY = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?(?:[kMGT]?bps|[KMGT]i?B|B|ns|us|ms|s))\b")
#: The maximum length of an expression: deeply nested ones would crash the parser.
LONGEST = 2000

BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: np.mod,
    ast.Pow: np.power,
}
COMPARISONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "log1p": np.log1p,
    "min": lambda *values: np.minimum.reduce(np.broadcast_arrays(*values)),
    "max": lambda *values: np.maximum.reduce(np.broadcast_arrays(*values)),
}


class Expression:
    """A parsed expression."""

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        if not self.text or len(self.text) > LONGEST:
            raise ObjectiveError(f"an expression has 1 to {LONGEST} characters: write for example abs(share - 0.5)")
        try:
            self._tree = ast.parse(QUANTITY.sub(_in_base_units, self.text), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ObjectiveError(f"`{self.text}`: {getattr(error, 'msg', error)}") from error
        #: The outputs and inputs that it uses.
        self.names = frozenset(self._check(self._tree))

    def __str__(self) -> str:
        return self.text

    def __call__(self, values: Mapping[str, Any]) -> np.ndarray:
        """Returns its value for each row of `values`.

        Raises ObjectiveError where a value is not a finite number.
        """
        with np.errstate(all="ignore"):
            try:
                result = np.asarray(self._value(self._tree, values), dtype=float)
            except (TypeError, ValueError, OverflowError) as error:
                raise ObjectiveError(f"`{self.text}`: {error}") from error
        if not np.isfinite(result).all():
            raise ObjectiveError(
                f"`{self.text}` is not a finite number for all settings: look for divisions by zero and "
                "logarithms of zero; log1p(drops) and max(share, 1e-6) are safe"
            )
        return result

    def _check(self, node: ast.expr) -> set[str]:
        """Returns the names in it. Raises ObjectiveError for unsupported syntax."""
        match node:
            case ast.Constant(value=bool() | int() | float()):
                return set()
            case ast.Name(id=name):
                return {name}
            case ast.Attribute():
                return {self._path(node)}
            case ast.BinOp(left=left, op=op, right=right) if type(op) in BINARY:
                return self._check(left) | self._check(right)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Not(), operand=operand):
                return self._check(operand)
            case ast.BoolOp(values=values):
                return set().union(*map(self._check, values))
            case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in COMPARISONS for op in ops):
                return self._check(left).union(*map(self._check, others))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._check(test) | self._check(body) | self._check(orelse)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS and args:
                return set().union(*map(self._check, args))
        raise ObjectiveError(
            f"`{self.text}`: `{ast.unparse(node)}` is nothing that expressions have: numbers, outputs, "
            f"+ - * / % **, comparisons, and, or, not, if-else, and {', '.join(FUNCTIONS)}"
        )

    def _path(self, node: ast.expr) -> str:
        """Returns a column's name: `groups.cubic.share`."""
        match node:
            case ast.Name(id=name):
                return name
            case ast.Attribute(value=value, attr=attr):
                return f"{self._path(value)}.{attr}"
        raise ObjectiveError(f"`{self.text}`: `{ast.unparse(node)}` is no column's name")

    def _value(self, node: ast.expr, values: Mapping[str, Any]) -> Any:
        match node:
            case ast.Constant(value=number):
                return number
            case ast.Name() | ast.Attribute():
                return values[self._path(node)]
            case ast.BinOp(left=left, op=op, right=right):
                pair = (np.asarray(self._value(side, values), dtype=float) for side in (left, right))
                return BINARY[type(op)](*pair)
            case ast.UnaryOp(op=op, operand=operand):
                value = self._value(operand, values)
                if isinstance(op, ast.Not):
                    return np.logical_not(value)
                return np.negative(value) if isinstance(op, ast.USub) else value
            case ast.BoolOp(op=op, values=parts):
                join = np.logical_and if isinstance(op, ast.And) else np.logical_or
                return join.reduce(np.broadcast_arrays(*[self._value(part, values) for part in parts]))
            case ast.Compare(left=left, ops=ops, comparators=others):
                sides = [self._value(side, values) for side in (left, *others)]
                steps = [COMPARISONS[type(op)](*pair) for op, pair in zip(ops, zip(sides, sides[1:]))]
                return np.logical_and.reduce(np.broadcast_arrays(*steps))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return np.where(*[self._value(part, values) for part in (test, body, orelse)])
            case ast.Call(func=ast.Name(id=name), args=args):
                return FUNCTIONS[name](*[self._value(arg, values) for arg in args])
        raise ObjectiveError(f"`{self.text}`: `{ast.unparse(node)}`")


def _in_base_units(match: re.Match[str]) -> str:
    number = _weir.base_units(match[1])
    return match[1] if number is None else repr(number)
