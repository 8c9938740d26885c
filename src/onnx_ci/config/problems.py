"""What is wrong with a config, all of it at once, and how it is shown."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable
from typing import Any

from onnx_ci.errors import UsageError
from onnx_ci.records.base import record

Path = tuple[str | int, ...]
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SHOWN = 80


@record
class Problem:
    """One fault of a config.

    Attributes:
        path: Keys and indices from the top of the config: ``("models", "x", "cases", 0)``; empty for the file itself.
        message: What is wrong, without the path.
        hint: What to do; empty where nothing is known to help.
        line: Line in the file, from 1; None where unknown.
    """

    path: Path
    message: str
    hint: str = ""
    line: int | None = None


class ConfigError(UsageError):
    """A config that can't be used, with every problem that was found in it.

    Args:
        file: The config file as the user would name it.
        problems: In the order of the file; at least one.
    """

    def __init__(self, file: str, problems: Iterable[Problem]) -> None:
        self.file = file
        self.problems = sorted(problems, key=lambda problem: (problem.line or 0, show_path(problem.path)))
        super().__init__(self.render())

    def __str__(self) -> str:
        return self.render()

    def render(self) -> str:
        """Shows all problems, a line each: file, line, path, fault; and its hint below."""
        lines = []
        for problem in self.problems:
            lines.append(self._line(problem))
            if problem.hint:
                lines.append(f"    hint: {problem.hint}")
        if len(self.problems) > 1:
            lines.append(f"{len(self.problems)} problems in {self.file}")
        return "\n".join(lines)

    def _line(self, problem: Problem) -> str:
        where = f"{self.file}:{problem.line}" if problem.line else self.file
        parts = [where, show_path(problem.path), problem.message]
        return ": ".join(part for part in parts if part)


def show_path(path: Path) -> str:
    """Writes a path as TOML would: ``models."a b".cases[0]``."""
    shown = ""
    for part in path:
        if isinstance(part, int):
            shown += f"[{part}]"
        else:
            key = part if _BARE_KEY.fullmatch(part) else show(part)
            shown += f".{key}" if shown else key
    return shown


def show(value: Any) -> str:
    """Writes a value of the config on one line, shortened, with nothing in it that a terminal would act on."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        quoted = json.dumps(value, ensure_ascii=False)
        quoted = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in quoted)
        return quoted if len(quoted) <= _SHOWN else f'{quoted[: _SHOWN - 2]}…"'
    if isinstance(value, int):
        return str(value) if abs(value) < 10**40 else "a number of more than forty digits"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "an array"
    return str(value)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Names the closest of the known words as a question; empty when none is close."""
    close = closest(word, known)
    return f"did you mean {show_path((close,))}?" if close else ""


def closest(word: str, known: Iterable[str], *, likeness: float = 0.6) -> str:
    """The known word that is most like this one, whatever its case; empty when none is as like, from 0 to 1."""
    by_lower = {name.lower(): name for name in known}
    found = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=likeness)
    return by_lower[found[0]] if found else ""
