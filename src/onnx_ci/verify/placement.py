"""Stage provider: is the provider that was asked for the one that runs, and where does each node run?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

from onnx_ci.records import strict
from onnx_ci.records.model import CPU, TargetSpec
from onnx_ci.records.result import Finding, finding
from onnx_ci.records.source_map import Origin
from onnx_ci.runtime.placement import PlacedNode, elsewhere

Witness = Literal["assignment", "probe", "profile"]
"""What tells where nodes run: the session's own record, a session that may not use the CPU, the profile of a run."""
_ALLOWED_SHARE = 0.01
_SHOWN = 5
_PACKAGES = {
    "CUDAExecutionProvider": "onnxruntime-gpu",
    "TensorrtExecutionProvider": "onnxruntime-gpu",
    "NvTensorRTRTXExecutionProvider": "onnxruntime-trt-rtx",
    "DmlExecutionProvider": "onnxruntime-directml",
    "OpenVINOExecutionProvider": "onnxruntime-openvino",
    "QNNExecutionProvider": "onnxruntime-qnn",
    "MIGraphXExecutionProvider": "onnxruntime-migraphx",
    "ROCMExecutionProvider": "onnxruntime-rocm",
    "VitisAIExecutionProvider": "onnxruntime-vitisai",
}


def missing(
    target: TargetSpec, available: Sequence[str], known: Sequence[str], installed: Mapping[str, str]
) -> Finding | None:
    """Says that the asked provider is not in the installed build, before anything is measured; None when it is.

    Args:
        target: Where the model is to run.
        available: What the installed build holds.
        known: Every name that this version of ONNX Runtime knows.
        installed: Version by distribution name.
    """
    if target.provider in available:
        return None
    runtimes = {name: version for name, version in installed.items() if name.startswith("onnxruntime")}
    here = ", ".join(f"{name} {version}" for name, version in sorted(runtimes.items())) or "onnxruntime"
    package = _PACKAGES.get(target.provider)
    if target.provider not in known:
        by_lower = {name.lower(): name for name in known}
        close = [by_lower[name] for name in get_close_matches(target.provider.lower(), by_lower, n=1)]
        hint = "ONNX Runtime knows no such provider" + (f"; did you mean {close[0]}?" if close else ": check its name.")
    elif package and package in runtimes:
        hint = f"Two onnxruntime packages overwrite each other: uninstall all of them, then install {package} alone."
        if len(runtimes) == 1:
            hint = f"The installed {package} was built without it: install a build for this machine."
    elif package:
        hint = f"Uninstall onnxruntime, then `pip install {package}`, on a runner with the device and its driver."
    else:
        hint = "Install a build of ONNX Runtime that has it, on a machine with the device."
    return finding(
        "provider.active",
        "error",
        target.provider,
        f"{target.provider} was asked for and is not there: {here} has {', '.join(available) or 'no provider'}; "
        "nothing was measured",
        hint=hint,
        data={"asked": target.provider, "available": list(available), "packages": runtimes},
    )


def active(
    target: TargetSpec, providers: Sequence[str], options: Mapping[str, str], environment: Mapping[str, str]
) -> Finding:
    """Compares the asked provider with those of the open session, and records the options it really has.

    Args:
        target: As it was opened.
        providers: Of the session.
        options: Of the asked provider, defaults included.
        environment: Of the process.
    """
    data: dict[str, Any] = {
        "asked": target.provider,
        "active": list(providers),
        "options": dict(options),
        "given": target.options,
        "session": target.session,
        "optimization": target.optimization,
        "deterministic": target.deterministic,
        "threads": target.threads,
        "environment": {name: environment.get(name) for name in strict.environment(target)},
    }
    if target.provider in providers:
        message = f"{target.provider} is active"
        if "use_tf32" in options:
            message += f" (use_tf32={options['use_tf32']})"
        return finding("provider.active", "pass", target.provider, message, data=data)
    return finding(
        "provider.active",
        "error",
        target.provider,
        f"{target.provider} was asked for, the session runs {', '.join(providers)}: ONNX Runtime could not load the "
        "provider and took another; nothing was measured",
        hint=_not_loaded(target),
        data=data,
    )


def _not_loaded(target: TargetSpec) -> str:
    given = f", or it takes none of these options: {', '.join(target.options)}" if target.options else ""
    hint = (
        f"The build has the provider, its libraries or the device do not load{given}. The leg's log has what it said."
    )
    if not strict.environment(target):
        return hint
    return (
        f"{hint} Check the driver (nvidia-smi), and that CUDA and cuDNN have the versions this build needs "
        "(pip install 'onnxruntime-gpu[cuda,cudnn]')."
    )


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the nodes run, and which of them have no business there.

    Attributes:
        strays: Nodes on the CPU, beside shape arithmetic and `cpu_ops`, while another provider was asked for.
        allowed: How many nodes of each operator of `cpu_ops` are there.
    """

    counts: dict[str, int]
    strays: list[PlacedNode]
    allowed: dict[str, int]
    operators: dict[str, dict[str, int]]


def sort_nodes(nodes: Sequence[PlacedNode], target: TargetSpec, shape_nodes: Collection[str]) -> Placement:
    """Counts the nodes per provider and picks the strays."""
    operators: dict[str, Counter[str]] = {}
    for node in nodes:
        operators.setdefault(node.provider, Counter())[node.op] += 1
    apart = elsewhere(nodes, target, shape_nodes)
    strays = [node for node in apart if node.op not in target.cpu_ops]
    allowed = dict(Counter(node.op for node in apart if node.op in target.cpu_ops))
    counts = dict(Counter(node.provider for node in nodes))
    return Placement(
        counts, strays, allowed, {name: dict(sorted(ops.items())) for name, ops in sorted(operators.items())}
    )


def judge(
    nodes: Sequence[PlacedNode] | None,
    target: TargetSpec,
    shape_nodes: Collection[str],
    share: float | None,
    origins: Mapping[str, Origin],
    witness: Witness = "assignment",
) -> list[Finding]:
    """Judges where each node runs.

    Args:
        nodes: As the runtime placed them, or as they ran; none where a probe told; None where nothing tells.
        target: Where the model was to run.
        shape_nodes: Names of nodes that are shape arithmetic.
        share: Part of the time that strays took, 0 to 1; None when it was not measured.
        origins: Source lines by name of the node.
        witness: What told it.
    """
    if nodes is None:
        return [
            finding(
                "provider.placement-unknown",
                "warn",
                target.provider,
                "nothing tells on which provider each node runs, neither this ONNX Runtime's own record nor a profile: "
                "a fallback would go unseen",
                hint="Verify with onnxruntime 1.24 or newer, which records the assignment.",
            )
        ]
    placed = sort_nodes(nodes, target, shape_nodes)
    data: dict[str, Any] = {"nodes": placed.counts, "operators": placed.operators, "witness": witness}
    found = [finding("provider.placement", "pass", target.provider, _told(nodes, placed, target, witness), data=data)]
    if target.provider == CPU:
        return found
    return [*found, _fallback(placed, target, share, origins)]


def _told(nodes: Sequence[PlacedNode], placed: Placement, target: TargetSpec, witness: Witness) -> str:
    if witness == "probe" and target.provider == CPU:
        return f"every node runs on {CPU}, the session's only provider"
    if witness == "probe":
        return f"every node runs on {target.provider}: a session that may not use the CPU opens"
    listed = ", ".join(f"{count} on {name}" for name, count in sorted(placed.counts.items()))
    message = f"{len(nodes)} {'node' if len(nodes) == 1 else 'nodes'}: {listed or 'none'}"
    if witness == "profile":
        message += " (as they ran in a profile of the example; this ONNX Runtime keeps no record of its assignment)"
    return message


def _fallback(placed: Placement, target: TargetSpec, share: float | None, origins: Mapping[str, Origin]) -> Finding:
    strays = placed.strays
    if not strays:
        message = f"beside shape arithmetic and cpu_ops every node runs on {target.provider}"
        if placed.allowed:
            message += f"; allowed on the CPU: {', '.join(_reason(op, placed, target) for op in placed.allowed)}"
        return finding("provider.fallback", "pass", target.provider, message, data={"allowed": placed.allowed})
    operators = Counter(node.op for node in strays)
    listed = ", ".join(f"{count} × {op}" for op, count in operators.most_common(_SHOWN))
    # A node that was fused is called for its first part: node_matmul/MatMulAddFusion.
    known = [origins.get(node.name) or origins.get(node.name.partition("/")[0]) for node in strays]
    lines = [one for one in known if one is not None and one.file]
    of_time = f", {share:.1%} of the time" if share is not None else ", their share of the time is not known"
    of_time = of_time if target.fallback == "forbid" else ""
    data = {"operators": dict(operators), "nodes": [node.name for node in strays][:100], "share": share}
    count = "1 node runs" if len(strays) == 1 else f"{len(strays)} nodes run"
    message = f"{count} on {_others(strays)} instead of {target.provider}: {listed}{of_time}"
    if target.fallback == "allow":
        return finding("provider.fallback", "pass", target.provider, message + " (fallback = allow)", data=data)
    broken = share is not None and not share <= _ALLOWED_SHARE
    return finding(
        "provider.fallback",
        "fail" if broken else "warn",
        target.provider,
        message,
        hint="Rewrite these operators, list them under cpu_ops if the CPU is right for them, or set fallback = "
        '"allow".',
        file=lines[0].file if lines else None,
        line=lines[0].line if lines else None,
        data=data,
    )


def _reason(op: str, placed: Placement, target: TargetSpec) -> str:
    why = target.cpu_reasons.get(op)
    return f"{placed.allowed[op]} × {op}" + (f" ({why})" if why else "")


def _others(strays: Sequence[PlacedNode]) -> str:
    return ", ".join(sorted({node.provider for node in strays}))
