"""Stage latency against a base: both artifacts in one process, in interleaved pairs, on the sizes that count."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from onnx_ci.artifact import layout, safety
from onnx_ci.artifact.layout import Artifact
from onnx_ci.artifact.tensors import Value
from onnx_ci.errors import OnnxCiError
from onnx_ci.numerics import latency, regression
from onnx_ci.numerics.latency import PairRatio
from onnx_ci.numerics.regression import Comparison, Verdict
from onnx_ci.numerics.words import case_text
from onnx_ci.records.cases import Case
from onnx_ci.records.contract import Contract
from onnx_ci.records.model import LatencySpec, TargetSpec
from onnx_ci.records.result import Finding, Status, Timing, finding
from onnx_ci.records.source_map import Origin
from onnx_ci.verify import attribution, bench
from onnx_ci.verify.attribution import Open
from onnx_ci.verify.bench import Transfers
from onnx_ci.verify.parity import feeds_for, read_inputs
from onnx_ci.verify.session import RuntimeFault, Session

RULE = "latency.regression"


@dataclass(frozen=True, slots=True)
class Size:
    """A size of the request mix: the case that has it, and its weight."""

    case: Case
    weight: float


@dataclass(frozen=True, slots=True)
class Part:
    """One size, compared."""

    size: Size
    found: Comparison
    transfers: Transfers


def judge(
    head: Artifact,
    contract: Contract,
    base: Artifact,
    cases: Sequence[Case],
    target: TargetSpec,
    spec: LatencySpec,
    origins: Mapping[str, Origin],
    open_file: Open,
) -> tuple[list[Finding], list[Timing]]:
    """Compares the head's file with the base's; a base that can't be used is a finding that says why.

    Args:
        head: What is judged.
        contract: Its own.
        base: What it is compared with.
        cases: The head's, among which are the sizes of the request mix.
        target: Where both run.
        spec: What is allowed, and the time there is.
        origins: Source lines of the head by name of the node.
        open_file: Opens a file on the target.
    """
    reason = _unusable(base, contract)
    if reason:
        return [_skip(reason)], []
    if _same_bytes(head, base):
        said = "the file has the very bytes of the base's: there is nothing to compare"
        return [finding(RULE, "pass", "", said)], []
    sizes, lacking = mix(cases, spec.shapes)
    missing = [finding(RULE, "warn", "shapes", f"latency.shapes is not timed whole: {one}") for one in lacking]
    if not sizes:
        return missing or [_skip("there is no case to run")], []
    with ExitStack() as stack:
        try:
            sessions = [_open(stack, open_file, one) for one in (head, base, base)]
        except RuntimeFault as fault:
            return [*missing, _skip(f"the base's file does not open on {target.provider}: {fault.message}")], []
        try:
            parts = [_compare(sessions, head, size, target, spec, len(sizes)) for size in sizes]
        except (RuntimeFault, OnnxCiError, ValueError) as error:
            return [*missing, _skip(f"the base's file can't be timed: {error}")], []
    timings = [
        bench.timing(name, part.size.case, samples, target, part.found.samples.warmup, part.transfers)
        for part in parts
        for name, samples in (("head", part.found.samples.head), ("base", part.found.samples.base))
    ]
    found = _finding(parts, target, spec)
    if found.status == "fail":
        found = _explained(found, head, base, sizes[0], origins, open_file)
    return [*missing, found], timings


def mix(cases: Sequence[Case], shapes: Sequence[Mapping[str, float]]) -> tuple[list[Size], list[str]]:
    """The cases that have the sizes of the request mix, and a sentence for each size that none has.

    Without a mix it is the example alone.
    """
    example = bench.pick_case(cases)
    if not shapes or example is None:
        return [Size(example, 1.0)] if example else [], []
    found, notes = [], []
    for shape in shapes:
        wanted = {name: int(size) for name, size in shape.items() if name in example.dims}
        full = {**example.dims, **wanted}
        case = next((case for case in cases if case.dims == full and not (case.refused or case.is_special)), None)
        if case is None:
            notes.append(f"no case has {', '.join(f'{name}={size}' for name, size in wanted.items())}")
        else:
            found.append(Size(case, float(shape.get("weight", 1.0))))
    return found, notes


def _unusable(base: Artifact, contract: Contract) -> str:
    if not base.folder.is_dir():
        return "there is none of this model"
    try:
        # A kept base is without its cases: the head's are what both are timed on.
        changed = layout.changed_files(base, (layout.MODEL, layout.DATA, layout.CONTRACT))
        changed += _outside(base)
        theirs = base.contract()
    except OnnxCiError as error:
        return f"the base's artifact can't be read: {error}"
    if changed:
        return f"the base's artifact is not what was exported: {changed[0]}"
    ours = {one.name: one.dtype for one in contract.inputs}
    lacking = [one.name for one in theirs.inputs if ours.get(one.name) != one.dtype]
    if lacking:
        return f"the base takes other inputs ({', '.join(lacking)}): the same request can't be sent to both"
    return ""


def _outside(base: Artifact) -> list[str]:
    try:
        return safety.external_data_problems(base.model)
    except Exception as error:  # protobuf's own, which onnx gives no name to
        return [f"{layout.MODEL} can't be read: {error}"]


def _same_bytes(head: Artifact, base: Artifact) -> bool:
    names = (layout.MODEL, layout.DATA)
    ours, theirs = ({name: one.manifest().get(name) for name in names} for one in (head, base))
    return ours == theirs


def _open(stack: ExitStack, open_file: Open, artifact: Artifact) -> Session:
    session = open_file(artifact.model, None)
    stack.callback(session.close)
    return session


def _compare(
    sessions: Sequence[Session], head: Artifact, size: Size, target: TargetSpec, spec: LatencySpec, parts: int
) -> Part:
    inputs = read_inputs(head, size.case)
    runners = [_runner(session, inputs, spec.transfers) for session in sessions]
    transfers: Transfers = "outside" if all(one[1] == "outside" for one in runners) else "inside"
    found = regression.compare(
        *(run for run, _ in runners),
        max_regression=spec.max_regression,
        threads=target.threads,
        budget_seconds=spec.budget_seconds / parts,
    )
    return Part(size, found, transfers)


def _runner(
    session: Session, inputs: Mapping[str, Value], transfers: Transfers
) -> tuple[Callable[[], object], Transfers]:
    feeds, _ = feeds_for(session, inputs)
    session.run(feeds)  # what it says when it does not take them is worth more than what a bare call says
    return bench.runner(session, feeds, transfers)


def _explained(
    found: Finding, head: Artifact, base: Artifact, size: Size, origins: Mapping[str, Origin], open_file: Open
) -> Finding:
    """With what takes longer, by operator and node; the verdict stands without it."""
    try:
        inputs = read_inputs(head, size.case)
        ours, theirs = (attribution.profiled(open_file, one.model, inputs) for one in (head, base))
    except (RuntimeFault, OnnxCiError, OSError, ValueError):
        return found
    why = attribution.compare(ours, theirs, origins)
    told = attribution.told(why)
    return replace(
        found,
        message=f"{found.message}; by the profile {told}" if told else found.message,
        data={**found.data, "why": why},
        **attribution.line_of(why),
    )


_STATUS: dict[Verdict, Status] = {"slower": "fail", "not slower": "pass", "inconclusive": "warn"}


def _finding(parts: Sequence[Part], target: TargetSpec, spec: LatencySpec) -> Finding:
    whole = parts[0].found
    if len(parts) > 1:
        mixed = regression.weighted([(part.size.weight, part.found.samples) for part in parts])
        whole = regression.judge(mixed, spec.max_regression, target.threads)
    ratio, over = whole.ratio, ", ".join(case_text(part.size.case.name, part.size.case.dims) for part in parts)
    message = (
        f"{ratio.median:.3g} times the base's time for {over} (95 % interval {ratio.low:.3g} to {ratio.high:.3g}, "
        f"{ratio.pairs} pairs; allowed {whole.allowed:.3g}; the base against itself {_spread(whole.control)})"
    )
    if whole.verdict == "inconclusive":
        message = f"inconclusive: {message}"
    return finding(RULE, _STATUS[whole.verdict], "", message, hint=_hint(whole, spec), data=_data(whole, parts))


def _hint(whole: Comparison, spec: LatencySpec) -> str:
    if whole.verdict == "slower":
        return "Look at the operators that take longer; raise latency.max_regression if the time is well spent."
    if whole.verdict == "not slower":
        return ""
    if whole.ratio.low > whole.allowed:
        return "Two sessions of the base differ by as much on this machine: repeat it on a quieter one."
    if whole.seconds_needed is None:
        return "It lies so near to what is allowed that no budget would settle it."
    return (
        f"About {whole.seconds_needed:.0f} s would settle it: latency.budget_seconds is {spec.budget_seconds:g}, on a "
        "quieter machine less would do."
    )


def _data(whole: Comparison, parts: Sequence[Part]) -> dict[str, Any]:
    return {
        "verdict": whole.verdict,
        "ratio": whole.ratio.median,
        "low": whole.ratio.low,
        "high": whole.ratio.high,
        "pairs": whole.ratio.pairs,
        "allowed": whole.allowed,
        "limit": whole.limit,
        "control": [whole.control.low, whole.control.high],
        "sizes": [
            {"case": part.size.case.name, "dims": part.size.case.dims, "weight": part.size.weight,
             "ratio": part.found.ratio.median,
             "head_ms": _median(part.found.samples.head), "base_ms": _median(part.found.samples.base)}
            for part in parts
        ],
    }  # fmt: skip


def _spread(control: PairRatio) -> str:
    return f"{control.low:.3g} to {control.high:.3g}"


def _median(samples: Sequence[float]) -> float:
    return latency.percentiles(samples).p50


def _skip(reason: str) -> Finding:
    return finding(RULE, "skip", "", f"not compared with the base, since {reason}")
