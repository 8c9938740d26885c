"""The scores inside a graph that an index or a mask was chosen by, where they are no output: measured when it flips.

What they should be, the twin says in float64; what the target makes of them, a second session on it with these values
as outputs. Neither is opened before an output flips.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from onnx_ci.artifact.tensors import Array, Value
from onnx_ci.numerics.dtypes import float_dtype
from onnx_ci.numerics.figures import relative_error
from onnx_ci.numerics.ties import Pairs, Rule, ScorePair
from onnx_ci.twin import Twin, Unoracled
from onnx_ci.verify.session import RuntimeFault, Session

_SAME = {"Cast", "Identity", "Squeeze", "Unsqueeze", "Reshape", "Flatten", "Transpose", "Slice", "Gather", "Not"}
"""What hands a choice on: indices stay indices. What moves them to another place is told by their shape."""
_PICKS = {"ArgMax": 0, "ArgMin": 0, "TopK": 0, "NonMaxSuppression": 1}
"""Operators that pick by scores, with the number of the input that holds these."""
_RULES: dict[str, Rule] = {"NonMaxSuppression": "order"}
_COMPARES = {"Greater", "GreaterOrEqual", "Less", "LessOrEqual"}


@dataclass(frozen=True, slots=True)
class Choice:
    """A node that chooses: by the scores named, or by which of two values is larger."""

    operator: str
    scores: tuple[str, ...]


def choices(graph: onnx.GraphProto, output: str) -> list[Choice]:
    """The choices that an output of a graph hands on; none where it is computed in any other way."""
    makers = {name: node for node in graph.node for name in node.output if name}
    found: list[Choice] = []
    name = output
    while (node := makers.get(name)) is not None:
        if node.op_type in _PICKS and not (node.op_type == "TopK" and name != node.output[1]):
            found.append(Choice(node.op_type, (node.input[_PICKS[node.op_type]],)))
        elif node.op_type in _COMPARES:
            found.append(Choice(node.op_type, (node.input[0], node.input[1])))
        if node.op_type not in _SAME:
            break
        name = node.input[0]
    return found


class InnerScores:
    """Measures the scores behind outputs that flipped.

    Args:
        path: The file.
        open_bytes: Opens a changed copy of it on the target, in the way whose outputs flipped.
    """

    def __init__(self, path: Path, open_bytes: Callable[[bytes], Session]) -> None:
        self._path, self._open = path, open_bytes
        self._made: tuple[Twin, Session, dict[str, list[Choice]]] | None = None
        self._hopeless: set[str] = set()

    def of(self, outputs: Iterable[str], feeds: Mapping[str, Value]) -> dict[str, Pairs]:
        """The scores of each of these outputs at these inputs, by the name they go by in messages.

        An output is asked for once more only where the time before was of use: one unexplained flip is a failure
        already. Scores that are themselves wrong, or that can't be had, explain nothing.
        """
        wanted = [name for name in outputs if name not in self._hopeless]
        if not wanted:
            return {}
        try:
            twin, session, known = self._made = self._made or self._prepare()
            named = {name: known.get(name, []) for name in wanted}
            names = {score for found in named.values() for one in found for score in one.scores}
            if not names:
                return {}
            true = twin.run({name: one for name, one in feeds.items() if not isinstance(one, dict)}, keep=names).kept
            actual = {name: one for name, one in session.run(feeds).items() if name in names}
        except (Unoracled, RuntimeFault):
            self._hopeless.update(wanted)
            return {}
        actual |= _fed(feeds)
        return {name: dict(_pairs(found, true, actual)) for name, found in named.items()}

    def give_up(self, outputs: Iterable[str]) -> None:
        """These were not explained; they fail, and are not looked at again."""
        self._hopeless.update(outputs)

    def close(self) -> None:
        """Lets go of the session's copy of the weights."""
        if self._made is not None:
            self._made[1].close()

    def _prepare(self) -> tuple[Twin, Session, dict[str, list[Choice]]]:
        model = onnx.load(str(self._path), load_external_data=False)
        known = {item.name: choices(model.graph, item.name) for item in model.graph.output}
        made = {name for node in model.graph.node if node.op_type != "Constant" for name in node.output}
        there = {item.name for item in model.graph.output}
        wanted = {score for found in known.values() for one in found for score in one.scores}
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in sorted((wanted & made) - there))
        return Twin.open(self._path), self._open(model.SerializeToString()), known


def _fed(feeds: Mapping[str, Value]) -> dict[str, Array]:
    return {name: value for name, value in feeds.items() if isinstance(value, np.ndarray)}


def _pairs(
    found: list[Choice], true: Mapping[str, Value], actual: Mapping[str, Value]
) -> Iterator[tuple[str, ScorePair]]:
    for one in found:
        wide = [true.get(name) for name in one.scores]
        given = [actual.get(name) for name in one.scores]
        kinds = [array.dtype for array in given if isinstance(array, np.ndarray) and float_dtype(array.dtype)]
        if not kinds or not all(isinstance(array, np.ndarray) for array in wide):
            continue
        expected = [np.asarray(array).astype(kinds[0]) for array in wide]
        # A constant is what it is: the target has it as the file does.
        got = [array if isinstance(array, np.ndarray) else want for array, want in zip(given, expected, strict=True)]
        if not all(_sound(a, want) for a, want in zip(got, expected, strict=True)):
            continue
        name = f"inner value {one.scores[0]}" if len(one.scores) == 1 else f"inner values {' and '.join(one.scores)}"
        if one.operator in _COMPARES:
            apart = [sides[0] - sides[1] for sides in (expected, got)]
            yield name, ScorePair(expected=apart[0], actual=apart[1], rule="zero")
        else:
            yield name, ScorePair(expected=expected[0], actual=got[0], rule=_RULES.get(one.operator, "any"))


def _sound(actual: Array, expected: Array) -> bool:
    """Whether scores are right but for rounding: to as many digits as are asked of an output without an oracle."""
    kind = float_dtype(actual.dtype)
    return kind is not None and actual.shape == expected.shape and relative_error(actual, expected) <= kind.rtol
