"""The artifact's first check: its cases through the shipped file on the CPU, and where one fails, what is at fault.

Here the module, the captured program and the way back to an unoptimized graph are still at hand; a target's own job has
none of them. What the file's twin showed is looked into likewise: there no provider has a part.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from onnx_ci.divergence import tell
from onnx_ci.export import function
from onnx_ci.export.fault import Fault
from onnx_ci.export.seen import Seen
from onnx_ci.export.subject import Graph, Subject
from onnx_ci.export.translation import Wrong
from onnx_ci.numerics import special
from onnx_ci.records.cases import Case
from onnx_ci.records.model import TargetSpec
from onnx_ci.records.result import Finding, finding

_MOST_CASES = 3


def judge(
    subject: Subject,
    graph: Graph,
    cases: Sequence[Case],
    folder: Path,
    targets: Sequence[TargetSpec],
    repros: Path | None,
    wrong: Sequence[Wrong] = (),
) -> list[Finding]:
    """Runs the cases once; nothing is found where all is well, or where the runtime does not take the file.

    Args:
        subject: With the module.
        graph: With the captured program.
        cases: Of the artifact.
        folder: Of the artifact.
        targets: A failure on the CPU is one only where a target promises the CPU.
        repros: Where folders that show a fault are written; None for nowhere.
        wrong: Outputs of which the twin says that they are another function's: named here where no run named them.
    """
    seen = Seen.of(subject, graph, cases, folder, targets)
    found, told = list[Finding](), set[str]()
    for case, outputs in seen.failing()[:_MOST_CASES]:
        fresh = [name for name in outputs if name not in told]
        if fresh:
            told.update(fresh)
            one = _told(seen, case, fresh, targets, repros)
            found += special.explained([one], [case]) if one is not None else []
    named = {name for one in found if one.status != "pass" and "node" in one.data for name in one.data["outputs"]}
    return [*found, *function.named(seen, wrong, named)]


def _told(
    seen: Seen, case: Case, outputs: Sequence[str], targets: Sequence[TargetSpec], repros: Path | None
) -> Finding | None:
    """Where it begins; what goes wrong in looking for it costs neither the file nor what else was found."""
    try:
        return Fault(seen, case, outputs).told(targets, repros)
    except OSError:
        raise
    except Exception as error:  # of torch, onnx or numpy, on a graph that is wrong somewhere
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        message = f"where {', '.join(outputs)} goes wrong in case '{case.name}' could not be told: {said}"
        return finding(tell.RULE, "skip", outputs[0], message, data={"case": case.name, "outputs": list(outputs)})
