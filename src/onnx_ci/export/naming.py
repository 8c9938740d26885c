"""Names and order of the file's inputs and outputs: what the config asks for, laid over what the exporter gave."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from onnx_ci.errors import UsageError
from onnx_ci.export.types import Leaf
from onnx_ci.records.result import Finding, finding

_NOT_A_NAME = re.compile(r"\W+")


@dataclass(frozen=True, slots=True)
class Naming:
    """Where each input or output of the file comes from.

    Attributes:
        names: In the file's order.
        order: For each of them its place among the exporter's.
        findings: What the declaration and the module disagree on.
    """

    names: list[str]
    order: list[int]
    findings: list[Finding]


def plain(path: str) -> str:
    """A name for a file, made of a path: "batch.images" is "batch_images", as the exporter writes it."""
    return _NOT_A_NAME.sub("_", path).strip("_") or "value"


def inputs(tensors: Sequence[Leaf], parameters: Sequence[str] | None, where: str) -> Naming:
    """Long form: inputs are called as forward's parameters, in the order of ``input_names``.

    Raises:
        UsageError: A name that is no parameter, or one of a tensor that is left out.
    """
    order = list(range(len(tensors)))
    if parameters is not None:
        known = {leaf.parameter for leaf in tensors}
        unknown = [name for name in parameters if name not in known]
        left_out = sorted(known - set(parameters))
        if unknown or left_out:
            raise UsageError(
                f"forward has no tensor {', '.join(unknown)}" if unknown else f"{', '.join(left_out)} is left out",
                where=f"{where}.input_names",
                hint=f"List each of these once, in the order of the file: {', '.join(sorted(known))}.",
            )
        place = {name: at for at, name in enumerate(parameters)}
        order.sort(key=lambda at: (place[tensors[at].parameter], at))
    return Naming(_distinct([plain(tensors[at].path) for at in order]), order, [])


def inputs_by_position(tensors: Sequence[Leaf], given: Sequence[str] | None, order: Sequence[int]) -> Naming:
    """Short form: ``input_names`` by position, as torch.onnx.export takes them; fewer than inputs are allowed.

    A name that belongs to another parameter is a finding: the service feeds by name, so the two swap without a word.
    """
    names = [plain(tensors[at].path) for at in order]
    findings = []
    for place, name in enumerate((given or [])[: len(names)]):
        path = tensors[order[place]].path
        others = {leaf.path for leaf in tensors} | {leaf.parameter for leaf in tensors}
        if name in others - {path, tensors[order[place]].parameter}:
            findings.append(
                finding(
                    "contract.input-name", "fail", name,
                    f"the file's input {name} is forward's parameter {path}, while forward has a parameter {name} too: "
                    f"whoever feeds by name swaps them",
                    hint="input_names are positional: list them in the order of forward's parameters.",
                )
            )  # fmt: skip
        names[place] = name
    return Naming(_distinct(names), list(order), findings)


def outputs(keys: Sequence[str], wanted: Sequence[str] | None, defaults: Sequence[str], where: str) -> Naming:
    """Long form: ``outputs`` in order; those of a module that gives a dict are matched by key.

    Args:
        keys: The module's own name of each output, "" where it has none.
        wanted: From the config.
        defaults: The exporter's names.
        where: The model's path in the config, for messages.
    """
    order = list(range(len(keys)))
    natural = [plain(key) if key else default for key, default in zip(keys, defaults, strict=True)]
    if wanted is None:
        return Naming(_distinct(natural), order, [])
    if all(keys) and set(wanted) <= set(keys):
        chosen = [list(keys).index(name) for name in wanted]
        rest = [at for at in order if at not in chosen]
        problems = [_not_declared(where, [keys[at] for at in rest])] if rest else []
        return Naming(_distinct([*wanted, *(natural[at] for at in rest)]), chosen + rest, problems)
    if all(keys) or len(wanted) != len(keys):
        given = ", ".join(key or default for key, default in zip(keys, defaults, strict=True))
        problem = finding(
            "contract.outputs", "fail", "outputs",
            f"{len(wanted)} outputs are declared ({', '.join(wanted)}), but the module gives {len(keys)}: {given}",
            hint=f"Change {where}.outputs, or what forward returns; the outputs of a dict are matched by key.",
        )  # fmt: skip
        return Naming(_distinct(natural), order, [problem])
    return Naming(_distinct(list(wanted)), order, [])


def outputs_by_position(keys: Sequence[str], given: Sequence[str] | None, defaults: Sequence[str]) -> Naming:
    """Short form: ``output_names`` by position, as torch.onnx.export takes them."""
    names, findings = list(defaults), []
    for place, name in enumerate((given or [])[: len(names)]):
        key = keys[place]
        if key and name in set(keys) - {key, ""}:
            findings.append(
                finding(
                    "contract.output-name", "fail", name,
                    f"the file's output {name} is the module's {key}, while the module gives a {name} too: "
                    f"the labels stick to the wrong tensors",
                    hint="output_names are positional: list them in the order of what forward returns.",
                )
            )  # fmt: skip
        names[place] = name
    return Naming(_distinct(names), list(range(len(names))), findings)


def apart(
    names: Sequence[str], asked: Sequence[str], inputs: Sequence[str], where: str
) -> tuple[list[str], list[Finding]]:
    """Output names that no input has: one that does gets "_out", which is a finding where that name was asked for.

    Args:
        names: Of the outputs.
        asked: Those that the user gave, in the config or to the exporter.
        inputs: The names of the inputs.
        where: What the user gave them in, for messages.
    """
    made: list[str] = []
    findings = []
    for name in names:
        unique = name
        while unique in inputs or unique in made or (unique != name and unique in names):
            unique = f"{unique}_out"
        made.append(unique)
        if unique != name and name in asked:
            findings.append(
                finding(
                    "contract.output-name", "fail", name,
                    f"the output {name} can't have that name: an input of the file is called {name} already, and names "
                    f"in ONNX are unique; it was exported as {unique}",
                    hint=f"Give the output a name of its own in {where}, {unique} say.",
                )
            )  # fmt: skip
    return made, findings


def _not_declared(where: str, extra: Sequence[str]) -> Finding:
    return finding(
        "contract.outputs", "fail", "outputs",
        f"the module also gives {', '.join(extra)}, which the config does not declare",
        hint=f"Add them to {where}.outputs, or leave them out of what forward returns.",
    )  # fmt: skip


def _distinct(names: list[str]) -> list[str]:
    """A file's names are unique: a second one of the same gets a number."""
    taken: set[str] = set()
    made = []
    for name in names:
        unique, count = name, 2
        while unique in taken:
            unique, count = f"{name}_{count}", count + 1
        taken.add(unique)
        made.append(unique)
    return made
