"""Which of all possible mutants are made: each kind has its turn, so that the many do not crowd out the rare."""

from __future__ import annotations

import itertools

import numpy as np
from benchmarks.mutation.mutant import Mutant
from benchmarks.mutation.mutators import find
from onnx import ModelProto


def chosen(model: ModelProto, count: int, seed: int) -> list[Mutant]:
    """At most `count` mutants: one of each kind in turn, drawn within the kind."""
    rng = np.random.default_rng(seed)
    by_kind: dict[str, list[Mutant]] = {}
    for mutant in find(model):
        by_kind.setdefault(mutant.kind, []).append(mutant)
    shuffled = [[ones[at] for at in rng.permutation(len(ones))] for ones in by_kind.values()]
    rounds = itertools.chain.from_iterable(itertools.zip_longest(*shuffled))
    return list(itertools.islice((one for one in rounds if one is not None), count))
