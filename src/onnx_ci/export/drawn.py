"""Numbers that were drawn and then became constants of the file: at the export, or when the module was made."""

from __future__ import annotations

from onnx_ci.export import arguments, entrypoint, state
from onnx_ci.export.agreement import differ
from onnx_ci.export.difference import Difference
from onnx_ci.export.loading import Loaded
from onnx_ci.export.types import Outputs, RunCase
from onnx_ci.records.result import Finding, finding
from onnx_ci.records.source_map import Origin

RULE = "export.drawn-constant"
_SEEDS = (11, 12)


def by_seed(given: Loaded, case: RunCase, difference: Difference) -> str:
    """How PyTorch's outputs differ with the seed, where a constant of the graph does; "" where that is not the cause.

    The entrypoint is run again for each seed: a module may keep what it drew at its first call.
    """
    if difference.kind != "constant":
        return ""
    one, other = (_first_call(given, case, seed) for seed in _SEEDS)
    if one.error or other.error:
        return ""
    found = differ(one, other)
    return str(found) if found else ""


def findings(asked: str, constant: str, difference: str, origin: Origin | None) -> list[Finding]:
    """The verdict on a drawn constant; `asked` is the rule that can't be judged for it."""
    place = f" ({origin.file}:{origin.line})" if origin and origin.file else ""
    inside = f" in {origin.module}" if origin and origin.module else ""
    return [
        finding(
            RULE, "fail", origin.module if origin else "",
            f"the file holds numbers that were drawn at the export: {constant}{inside}{place}, and PyTorch's own "
            f"outputs change with the seed ({difference})",
            hint="Draw them when the module is made and keep them in a buffer that the checkpoint holds, or take them "
            "as an input.",
            file=origin.file if origin else None, line=origin.line if origin and origin.file else None,
        ),
        finding(asked, "skip", "", f"two exports hold other numbers, since they are drawn anew each time: see {RULE}"),
    ]  # fmt: skip


def weights(asked: str) -> list[Finding]:
    """The verdict on an entrypoint that gives other weights each time, though all generators stood alike."""
    return [
        finding(
            RULE, "warn", "weights",
            "two loads of the entrypoint give other weights: the file can't be made again, and nobody else has its "
            "weights",
            hint="Load a checkpoint in the entrypoint, or seed the generator that its weights are drawn from.",
        ),
        finding(asked, "skip", "", "two loads of the entrypoint give other weights, so two exports can't be compared"),
    ]  # fmt: skip


def _first_call(given: Loaded, case: RunCase, seed: int) -> Outputs:
    before = state.RandomState.now()
    try:
        state.seed(0)  # what is drawn while the module is made is the same for both
        module = entrypoint.load(given.spec, given.places.root).module
        state.seed(seed)
        return arguments.call(module, arguments.bind(module, case.inputs))
    finally:
        before.restore()
