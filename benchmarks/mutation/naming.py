"""Whether the node that a finding names is the one that the fault was put into. A process of its own for each model.

python -m benchmarks.mutation.naming CONFIG MODEL [--mutants 40] [--seed 2026]
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
from benchmarks.mutation import choose
from benchmarks.mutation.exporting import resized
from benchmarks.mutation.mutant import Mutant

from onnx_ci.artifact import layout
from onnx_ci.config.load import load as load_config
from onnx_ci.export import arrays, graph, job, made, save
from onnx_ci.export.diverge import Rounded, diverge, in_float64
from onnx_ci.export.inner import Replay
from onnx_ci.export.loading import load
from onnx_ci.export.subject import Graph, Subject
from onnx_ci.numerics.deviation import FLOOR
from onnx_ci.numerics.divergence import function_gap
from onnx_ci.twin import Twin, Unoracled

SIDE = 64


@dataclass(frozen=True, slots=True)
class Exported:
    """A module, its graph, its sound file with the weights in it, and which of its constants the exporter made."""

    subject: Subject
    graph: Graph
    model: onnx.ModelProto
    made: Sequence[str]


@dataclass(frozen=True, slots=True)
class Named:
    """What was found of one fault.

    Attributes:
        shows: Whether an output is another one at all; False, too, where the file can't be run in float64.
        node: Name of the first node that goes wrong; None where no value does.
        right: Whether that is the faulty node, or the first one after it whose value the program has, too.
    """

    shows: bool

    node: str | None = None
    right: bool = False


def exported(config: Path, model: str) -> Exported:
    """Exports a model in this process, whose folder becomes the config's.

    Raises:
        RuntimeError: The export stops.
    """
    read = load_config(config, cwd=Path.cwd())
    os.chdir(read.root)
    spec = resized(next(one for one in read.models if one.name == model), SIDE)
    subject, findings = job.prepare(load(spec, Path.cwd()))
    built = graph.build(subject, lambda _: contextlib.nullcontext()) if subject is not None else findings
    if subject is None or not isinstance(built, Graph):
        raise RuntimeError(f"{model} is not exported")
    with TemporaryDirectory() as folder:
        save.save(built.model, Path(folder), single_file=True)
        proto = onnx.load(str(Path(folder) / layout.MODEL))
    return Exported(subject, built, proto, made.names(Twin(proto).float_constants(), made.Own.of(subject.module)))


def named(exported: Exported, mutant: Mutant) -> Named:
    """Names the node at which a mutant's twin parts from the program, as the export's own check does."""
    faulty = mutant.of(exported.model)
    feeds = {name: arrays.to_value(leaf.value) for name, leaf in exported.graph.inputs.items()}
    twin, sound = (Rounded(Twin(model), list(exported.made)) for model in (faulty, exported.model))
    replay = Replay(exported.subject, exported.graph, exported.subject.example)
    with TemporaryDirectory() as folder:
        file = Path(folder) / layout.MODEL
        onnx.save(faulty, str(file))
        try:
            made, wanted = twin.twin.run(feeds).outputs, sound.twin.run(feeds).outputs
            shows = made.keys() == wanted.keys() and any(
                function_gap(name, made[name], wanted[name], FLOOR).divergent for name in wanted
            )
            located = diverge(replay, file, feeds, list(wanted), in_float64(twin, feeds, sound)) if shows else None
        except Unoracled:
            return Named(shows=False)
    if located is None:
        return Named(shows)
    return Named(shows, located.nodes[-1].name, right=mutant.node in [node.name for node in located.nodes])


def main() -> None:
    """Prints what is named wrongly, and how many there are of each sort."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("model")
    parser.add_argument("--mutants", type=int, default=40)
    parser.add_argument("--seed", type=int, default=2026)
    arguments = parser.parse_args()
    sound = exported(arguments.config, arguments.model)
    right = shown = 0
    for mutant in choose.chosen(sound.model, arguments.mutants, arguments.seed):
        found = named(sound, mutant)
        if mutant.node and found.shows:  # what swaps the outputs is in no node
            shown += 1
            right += found.right
            if not found.right:
                print(f"{mutant.kind} in {mutant.node} ({mutant.operator}; {mutant.what}): {found.node} is named")
    print(f"{arguments.model}: {right} of {shown} faults that show at the example are named")


if __name__ == "__main__":
    main()
