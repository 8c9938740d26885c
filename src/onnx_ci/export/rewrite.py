"""The rewrite check: what was adapted for export against the original, beside each other in float64.

Every aspect has its own verdict: refused sizes, outputs, forward, input gradients, parameters, parameter gradients.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from onnx_ci.errors import OnnxCiError
from onnx_ci.export import entrypoint
from onnx_ci.export.forward import Ran
from onnx_ci.export.state import RandomState
from onnx_ci.export.subject import Subject
from onnx_ci.export.sweep import Aspect, Sweep
from onnx_ci.export.types import RunCase
from onnx_ci.records.model import ModelSpec
from onnx_ci.records.result import Finding, finding

PROVES = "This proves the rewrite at these inputs, and nothing about ONNX."
_LOOK = "Look at this place: only you can tell whether the answer there matters."
_STOPPED = "Look in both modules for detach(), .data, .item(), no_grad, or a backward of their own."
_CHANGED = "Look for another rounding, window, offset or order of axes in what was adapted."


def judge(
    subject: Subject,
    example: RunCase,
    user: Sequence[RunCase],
    root: Path,
    start: RandomState,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> list[Finding]:
    """Compares the module with the reference that its config names.

    Args:
        subject: The adapted module, which is what is exported.
        example: What the export runs on.
        user: The user's cases.
        root: The config's folder.
        start: Where the random generators stood before the adapted module was built: the original is built from there,
            so that two builds that draw the same numbers have the same weights.
        clock: Seconds.
    """
    now = RandomState.now()
    start.restore()
    try:
        module = entrypoint.reference(subject.spec, root)
    except OnnxCiError as error:
        return [_unbuilt(error, subject.spec)]
    finally:
        now.restore()
    swept = Sweep(subject, module, clock)
    swept.run(example, user)
    name = str(subject.spec.reference)
    return [
        _refused(swept, name, subject.where),
        _outputs(swept, name),
        _agreement("rewrite.forward", "the outputs", swept.values, swept, name),
        _agreement("rewrite.input-gradients", "the input gradients", swept.inputs, swept, name),
        _parameters(swept),
        _agreement("rewrite.parameter-gradients", "the gradients of shared parameters", swept.parameters, swept, name),
    ]


def skipped(spec: ModelSpec) -> list[Finding]:
    """What is said where the adapted module itself does not run; nothing without a reference."""
    said = "the module raises on the export example, so that there is nothing to compare"
    return [finding("rewrite.forward", "skip", "", said)] if spec.reference is not None else []


def _refused(swept: Sweep, name: str, where: str) -> Finding:
    rule, count = "rewrite.refused", len(swept.compared)
    refused = [ran for ran in swept.ran if ran.adapted.error and not ran.original.error]
    wider = [ran for ran in swept.ran if ran.original.error and not ran.adapted.error]
    data = {"inputs": count, "refused": [ran.case for ran in refused], "wider": [ran.case for ran in wider]}
    if refused:
        first = refused[0]
        said = f"the adapted module refuses {_place(first)}{_more(len(refused) - 1)}, where {name} runs"
        hint = f"Declare the sizes that it serves under {where}.dims, or let it serve the others too."
        return finding(rule, "fail", first.case, f"{said}: {_line(first.adapted.error)}", hint=hint, data=data)
    if not count and wider:
        hint = (
            "Let the reference take the inputs of the adapted module, by the names of its forward: wrap the original."
        )
        said = f"{name} takes none of the inputs that the adapted module takes: {_line(wider[0].original.error)}"
        return finding(rule, "error", "", said, hint=hint, data=data)
    both = sum(bool(ran.original.error and ran.adapted.error) for ran in swept.ran)
    if not count:
        return finding(rule, "skip", "", f"both modules refuse all {both} inputs", data=data)
    parts = [f"both modules take {count} inputs"]
    parts += [f"both refuse {both}"] if both else []
    parts += [f"{name} refuses {len(wider)} that the adapted module takes"] if wider else []
    parts += [f"{swept.left_out} were left out to stay within the time"] if swept.left_out else []
    return finding(rule, "pass", "", f"{'; '.join(parts)}. {PROVES}", data=data)


def _outputs(swept: Sweep, name: str) -> Finding:
    rule, compared = "rewrite.outputs", swept.compared
    if not compared:
        return finding(rule, "skip", "", "no input runs in both modules")
    first, data = compared[0], {"inputs": len(compared)}
    if not first.pairs and first.original.values:
        said = f"the adapted module gives no output, and {name} gives {len(first.original.values)}"
        return finding(rule, "fail", "", said, data=data)
    wrong = [ran for ran in compared if ran.misshapen]
    if wrong:
        output, said = wrong[0].misshapen[0]
        said = f"{output} of {_place(wrong[0])}{_more(len(wrong) - 1)} {said}"
        hint = "Compute the size as the original does: round() takes halves to the even number, int() cuts off."
        return finding(rule, "fail", output, said, hint=hint, data=data | {"cases": [ran.case for ran in wrong]})
    rest = swept.unmatched
    said = f"{len(first.pairs)} output{'s' * (len(first.pairs) != 1)} as {name} gives, in number and shape, "
    said += f"on {len(compared)} inputs" + (f"; not compared: {rest}" if rest else "")
    return finding(rule, "pass", "", f"{said}. {PROVES}", data=data)


def _agreement(rule: str, what: str, aspect: Aspect, swept: Sweep, name: str) -> Finding:
    worst, gap = aspect.worst, aspect.worst.gap
    if worst.status == "skip":
        return finding(rule, "skip", "", f"{what} are not compared: {worst.why or 'no input gave two that could be'}")
    coarse = next((ran.coarse for ran in swept.compared if ran.coarse), "")
    how = f"in their own dtype, with wider limits ({coarse})" if coarse else "in float64"
    data: dict[str, Any] = {"inputs": aspect.count, "case": aspect.case, "of": worst.subject}
    if gap:
        data |= {"max_abs": gap.figure, "limit": gap.limit, "at": gap.at, "kind": gap.kind}
    figure = f"{worst.subject} of {aspect.case}" + (f", {gap}" if gap else "")
    why = f"; {worst.why}" if worst.why else ""
    if worst.status == "pass":
        said = (
            f"{what} agree with those of {name} {how} on {aspect.count} inputs; the largest difference: {figure}{why}"
        )
        return finding(rule, "pass", "", f"{said}. {PROVES}", data=data)
    if not rule.endswith("gradients"):
        hint = _CHANGED if worst.status == "fail" else _LOOK
    else:
        hint = "The outputs differ already: look there first." if swept.values.worst.status == "fail" else _STOPPED
    said = f"{what} are not those of {name} {how}: {figure}{why}"
    return finding(rule, worst.status, worst.subject, said, hint=hint, data=data)


def _parameters(swept: Sweep) -> Finding:
    rule, held = "rewrite.parameters", swept.shared
    data = {
        "shared": len(held.parameters), "changed": [one.name for one in held.changed],
        "only_original": held.only_original, "only_adapted": held.only_adapted,
    }  # fmt: skip
    apart = [f"only the original has {_some(held.only_original)}"] if held.only_original else []
    apart += [f"only the adapted module has {_some(held.only_adapted)}"] if held.only_adapted else []
    if held.changed:
        worst = max(held.changed, key=lambda one: (one.largest != one.largest, one.largest))
        names = [one.name for one in held.changed]
        said = f"other values in the adapted module: {_some(names)}; the largest difference is {worst.largest:.3g}, "
        said += f"in {worst.name} at {worst.at}"
        if swept.values.worst.status in ("fail", "skip"):
            hint = "Build both modules from the same checkpoint, or from the same seed."
            return finding(rule, "fail", worst.name, "; ".join([said, *apart]), hint=hint, data=data)
        said += ", and the outputs agree all the same, as after folding a norm: their gradients are not compared"
        if any(one.learned for one in held.changed):
            return finding(rule, "warn", worst.name, "; ".join([said, *apart]), hint=_LOOK, data=data)
        apart = [said, *apart]
    if not held.parameters:
        said = "no parameter is shared by name, shape and value" if apart else "neither module has parameters"
        return finding(rule, "skip", "", "; ".join([said, *apart]), data=data)
    said = f"{len(held.parameters)} parameters are shared, with equal values"
    return finding(rule, "pass", "", f"{'; '.join([said, *apart])}. {PROVES}", data=data)


def _unbuilt(error: OnnxCiError, spec: ModelSpec) -> Finding:
    file, colon, line = error.where.rpartition(":")
    at: dict[str, Any] = {"file": file, "line": int(line)} if colon and line.isdigit() else {}
    said = f"models.{spec.name}.reference, {spec.reference}, gives no module to compare with: {error.what}"
    return finding("rewrite.reference", "error", "", said, hint=error.hint, **at)


def _place(ran: Ran) -> str:
    return f"{ran.case} ({ran.size})"


def _more(count: int) -> str:
    return f" and {count} more" if count else ""


def _line(text: str) -> str:
    return text.splitlines()[0][:200] if text else ""


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + _more(max(len(names) - 5, 0))
