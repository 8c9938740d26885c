"""Dim expressions: a small grammar of ours for output dims, read by a parser and never by eval.

    sum     = product (("+" | "-") product)*
    product = factor (("*" | "//" | "%") factor)*
    factor  = "-" factor | integer | name | ("min" | "max") "(" sum ("," sum)* ")" | "(" sum ")"

``//`` and ``%`` round toward minus infinity, as Python's do.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

_TOKEN = re.compile(r"\s*(?:([0-9]+)|([A-Za-z_][A-Za-z0-9_]*)|(//|[-+*%(),]))")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_POLYNOMIAL = re.compile(r"[\w\s()*+-]*")
_Run = Callable[[Mapping[str, int]], int]
_MAX_LENGTH = 2000
UNKNOWN = "?"
"""Stands in a contract's shape for a size that depends on the data, or that the grammar cannot say."""
_MAX_DEPTH = 50


class ExpressionError(ValueError):
    """Text outside the grammar, or a name without a size."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed dim expression: `text` as written, and the names that it needs."""

    text: str
    names: frozenset[str]
    _run: _Run = field(repr=False, compare=False)

    def rises(self) -> bool:
        """Whether it is a sum of its names, each once, times a positive number: ``past + new``, ``2*h + 4``."""
        once = len(_NAME.findall(self.text)) == len(self.names)
        if not self.names or not once or not _POLYNOMIAL.fullmatch(self.text):
            return False
        zero = dict.fromkeys(self.names, 0)
        start = self(zero)
        slopes = {name: self({**zero, name: 1}) - start for name in self.names}
        points = [{name: (at + 2) * away for at, name in enumerate(sorted(self.names))} for away in (3, 7, 1009)]
        straight = all(self(at) == start + sum(slopes[name] * at[name] for name in at) for at in points)
        return straight and min(slopes.values()) > 0

    def __call__(self, sizes: Mapping[str, int]) -> int:
        """Evaluates it.

        Raises:
            ExpressionError: A name has no size, or a divisor is zero.
        """
        try:
            return self._run(sizes)
        except KeyError as error:
            raise ExpressionError(f"{self.text}: no size is known for {error.args[0]}") from None
        except ZeroDivisionError:
            raise ExpressionError(f"{self.text}: division by zero") from None


def parse(text: str) -> Expression:
    """Parses a dim expression.

    Raises:
        ExpressionError: The text is outside the grammar, or unreasonably long or deep.
    """
    if len(text) > _MAX_LENGTH:
        raise ExpressionError(f"{text[:40]}…: longer than {_MAX_LENGTH} characters")
    parser = _Parser(text)
    run = parser.sum(0)
    if parser.peek():
        raise ExpressionError(f"{text}: unexpected {parser.peek()!r}")
    return Expression(text, frozenset(parser.names), run)


def filled(text: str, sizes: Mapping[str, int]) -> int | str:
    """An expression with some of its names replaced by their sizes; a number where no name is left."""
    known = parse(text)
    if not known.names & sizes.keys():
        return text
    if known.names <= sizes.keys():
        return known(sizes)
    return _NAME.sub(lambda name: str(sizes.get(name[0], name[0])), text)


_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}


def _chain(first: _Run, rest: list[tuple[str, _Run]]) -> _Run:
    """A run of one level's operators, from left to right; flat, so that a long sum needs no deep stack."""
    if not rest:
        return first

    def run(sizes: Mapping[str, int]) -> int:
        value = first(sizes)
        for symbol, item in rest:
            value = _OPERATORS[symbol](value, item(sizes))
        return value

    return run


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.names: set[str] = set()
        self._tokens = self._split(text)
        self._at = 0

    @staticmethod
    def _split(text: str) -> list[str]:
        tokens, at, end = [], 0, len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if not match:
                raise ExpressionError(f"{text}: unexpected {text[at:].strip()[:10]!r}")
            tokens.append(match.group().strip())
            at = match.end()
        return tokens

    def peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def take(self, wanted: str = "") -> str:
        token = self.peek()
        if not token or (wanted and token != wanted):
            raise ExpressionError(f"{self.text}: expected {wanted or 'a value'}, got {token or 'the end'}")
        self._at += 1
        return token

    def sum(self, depth: int) -> _Run:
        first = self.product(depth)
        rest = []
        while self.peek() in ("+", "-"):
            rest.append((self.take(), self.product(depth)))
        return _chain(first, rest)

    def product(self, depth: int) -> _Run:
        first = self.factor(depth)
        rest = []
        while self.peek() in ("*", "//", "%"):
            rest.append((self.take(), self.factor(depth)))
        return _chain(first, rest)

    def factor(self, depth: int) -> _Run:
        if depth > _MAX_DEPTH:
            raise ExpressionError(f"{self.text[:40]}…: nested deeper than {_MAX_DEPTH}")
        token = self.take()
        if token == "-":
            inner = self.factor(depth + 1)
            return lambda sizes: -inner(sizes)
        if token == "(":
            inner = self.sum(depth + 1)
            self.take(")")
            return inner
        if token.isdigit():
            number = int(token)
            return lambda sizes: number
        if token in ("min", "max") and self.peek() == "(":
            return self._extremum(token, depth)
        if token[0].isalpha() or token[0] == "_":
            self.names.add(token)
            return lambda sizes: sizes[token]
        raise ExpressionError(f"{self.text}: unexpected {token!r}")

    def _extremum(self, which: str, depth: int) -> _Run:
        self.take("(")
        items = [self.sum(depth + 1)]
        while self.peek() == ",":
            self.take(",")
            items.append(self.sum(depth + 1))
        self.take(")")
        pick = min if which == "min" else max
        return lambda sizes: pick(item(sizes) for item in items)
