"""On which line of a TOML text each key stands; tomllib does not tell."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping

import tomllib

from onnx_ci.config.problems import Path

_SPACE = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BLANK = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:\\[\s\S]|(?!""")[^\\])*"{3,5}'
    r"|'''(?:(?!''')[\s\S])*'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
)
_DEEPEST = 64
_SCALAR = re.compile(r"[^,\]}#\n]+")


def key_lines(text: str) -> dict[Path, int]:
    """Maps each key and array item of a valid TOML text to its line, from 1.

    Text that this small reader does not follow ends the map early: `line_of` then finds the nearest known parent.
    """
    reader = _Reader(text)
    with contextlib.suppress(_Lost, RecursionError):
        reader.document()
    return reader.lines


def line_of(lines: Mapping[Path, int], path: Path) -> int | None:
    """The line of a path, or of the longest part of it that is in the file."""
    return next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), None)


class _Lost(Exception):
    """The reader met something that it does not follow."""


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text.replace("\r\n", "\n")
        self.lines: dict[Path, int] = {}
        self._at = 0
        self._line = 1
        self._items: dict[Path, int] = {}

    def document(self) -> None:
        table: Path = ()
        while self._skip(_SPACE) or self._at < len(self.text):
            if self._at >= len(self.text):
                return
            line = self._line
            if self._peek() == "[":
                table = self._header()
                self._note(table, line)
            else:
                self._pair(table)

    def _header(self) -> Path:
        double = self.text.startswith("[[", self._at)
        self._advance(self._at + (2 if double else 1))
        path: Path = ()
        keys = self._keys()
        for at, key in enumerate(keys):
            path = (*path, key)
            self._note(path, self._line)
            if double and at == len(keys) - 1:
                self._items[path] = self._items.get(path, -1) + 1
            if path in self._items:
                path = (*path, self._items[path])
        self._expect("]]" if double else "]")
        return path

    def _pair(self, table: Path) -> None:
        line = self._line
        path = table
        for key in self._keys():
            path = (*path, key)
            self._note(path, line)
        self._expect("=")
        self._skip(_BLANK)
        self._value(path)

    def _keys(self) -> list[str]:
        keys = []
        while True:
            self._skip(_BLANK)
            keys.append(self._key())
            if len(keys) > _DEEPEST:
                raise _Lost
            self._skip(_BLANK)
            if self._peek() != ".":
                return keys
            self._advance(self._at + 1)

    def _key(self) -> str:
        if match := _BARE.match(self.text, self._at):
            self._advance(match.end())
            return match.group()
        if match := _STRING.match(self.text, self._at):
            self._advance(match.end())
            return str(tomllib.loads(f"key = {match.group()}")["key"])
        raise _Lost

    def _value(self, path: Path) -> None:
        opened = self._peek()
        if opened == "[":
            self._array(path)
        elif opened == "{":
            self._inline_table(path)
        elif match := _STRING.match(self.text, self._at) or _SCALAR.match(self.text, self._at):
            self._advance(match.end())
        else:
            raise _Lost

    def _array(self, path: Path) -> None:
        self._expect("[")
        index = 0
        while True:
            self._skip(_SPACE)
            if self._peek() == "]":
                break
            self._note((*path, index), self._line)
            self._value((*path, index))
            index += 1
            self._skip(_SPACE)
            if self._peek() == ",":
                self._advance(self._at + 1)
            elif self._peek() != "]":
                raise _Lost
        self._expect("]")

    def _inline_table(self, path: Path) -> None:
        self._expect("{")
        while True:
            self._skip(_SPACE)
            if self._peek() == "}":
                break
            self._pair(path)
            self._skip(_SPACE)
            if self._peek() == ",":
                self._advance(self._at + 1)
            elif self._peek() != "}":
                raise _Lost
        self._expect("}")

    def _note(self, path: Path, line: int) -> None:
        self.lines.setdefault(path, line)

    def _peek(self) -> str:
        return self.text[self._at : self._at + 1]

    def _expect(self, wanted: str) -> None:
        if not self.text.startswith(wanted, self._at):
            raise _Lost
        self._advance(self._at + len(wanted))

    def _skip(self, pattern: re.Pattern[str]) -> bool:
        match = pattern.match(self.text, self._at)
        end = match.end() if match else self._at
        moved = end > self._at
        self._advance(end)
        return moved

    def _advance(self, to: int) -> None:
        self._line += self.text.count("\n", self._at, to)
        self._at = to
