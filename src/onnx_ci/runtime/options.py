"""A target's options as ONNX Runtime takes them: one place for what is judged and what is served."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnx_ci.records.model import TargetSpec

RECORD_PLACEMENT = "session.record_ep_graph_assignment_info"


def configure(options: Any, target: TargetSpec) -> None:
    """Sets in an onnxruntime.SessionOptions what a target asks for, and that placement is recorded."""
    import onnxruntime  # a service pays for it with its first session

    options.intra_op_num_threads = target.threads
    options.use_deterministic_compute = target.deterministic
    options.graph_optimization_level = level(target.optimization)
    for name, value in target.session.items():
        options.add_session_config_entry(name, text(value))
    if hasattr(onnxruntime.InferenceSession, "get_provider_graph_assignment_info"):
        options.add_session_config_entry(RECORD_PLACEMENT, "1")


def provider(target: TargetSpec) -> tuple[str, dict[str, str]]:
    """The provider with its options."""
    return target.provider, texts(target.options)


def level(name: str) -> Any:
    """An optimization level by its name."""
    import onnxruntime

    levels = onnxruntime.GraphOptimizationLevel
    return {
        "disabled": levels.ORT_DISABLE_ALL,
        "basic": levels.ORT_ENABLE_BASIC,
        "extended": levels.ORT_ENABLE_EXTENDED,
        "all": levels.ORT_ENABLE_ALL,
    }[name]


def texts(options: Mapping[str, Any]) -> dict[str, str]:
    """Options as text; a truth value as 1 or 0."""
    return {name: text(value) for name, value in options.items()}


def text(value: Any) -> str:
    """One option as text."""
    return str(int(value)) if isinstance(value, bool) else str(value)
