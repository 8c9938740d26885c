"""Which models and targets a run is about: the filters of the command line."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

from onnx_ci.errors import NothingMatchedError
from onnx_ci.records.model import Config, ModelSpec, TargetSpec
from onnx_ci.records.result import label

T = TypeVar("T")


def models(config: Config, patterns: Sequence[str]) -> list[ModelSpec]:
    """The models that at least one pattern names, in the config's order; without patterns all of them.

    A pattern is a model's name (all its variants), ``name@variant``, or a shell pattern such as ``bert-*``.

    Raises:
        NothingMatchedError: One of the patterns, or the config itself, names no model.
    """
    return _select("model", config.models, patterns, lambda spec: (spec.name, label(spec.name, spec.variant)))


def targets(config: Config, patterns: Sequence[str]) -> list[TargetSpec]:
    """The targets that at least one pattern names, in the config's order; without patterns all of them.

    Raises:
        NothingMatchedError: One of the patterns, or the config itself, names no target.
    """
    return _select("target", config.targets, patterns, lambda spec: (spec.name,))


def _select(kind: str, specs: Sequence[T], patterns: Sequence[str], names: Callable[[T], tuple[str, ...]]) -> list[T]:
    if not specs:
        raise NothingMatchedError(f"the config has no {kind}", hint=f"Add a table [{kind}s.NAME] to it.")
    known = list(dict.fromkeys(name for spec in specs for name in names(spec)))
    # A pattern that matches nothing is a typing error, also where its neighbours match: less would run than was asked.
    lost = [pattern for pattern in patterns if not any(fnmatchcase(name, pattern) for name in known)]
    if lost:
        close = difflib.get_close_matches(lost[0], known, n=1)
        raise NothingMatchedError(
            f"no {kind} matches {', '.join(map(repr, lost))}",
            where=f"--{kind}",
            hint=f"Did you mean {close[0]!r}?" if close else f"There are: {', '.join(known)}.",
        )
    if not patterns:
        return list(specs)
    return [spec for spec in specs if any(fnmatchcase(name, pattern) for name in names(spec) for pattern in patterns)]
