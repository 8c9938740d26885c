"""A target without what loosens its arithmetic: the model is judged with these options, and then with the deployment's.

ONNX Runtime's names, from its lists of provider options and of session config keys. What is not listed here is taken
to leave the numbers alone, and is kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from onnx_ci.records.model import TargetSpec


class _Switch(NamedTuple):
    """An option that loosens.

    Attributes:
        rounding: The float whose rounding it lets in; "" where it loosens in another way.
        default: Whether it is on unless it is set.
        off: What switches it off.
    """

    rounding: str
    default: bool = False
    off: Any = 0


_TF32 = "float16"
"""TF32 keeps eleven bits of a product's operands, as float16 does."""
_EIGHT_BITS = "bfloat16"
"""What bfloat16 and integers of eight bits keep."""
_PROVIDERS: dict[str, dict[str, _Switch]] = {
    "CUDAExecutionProvider": {"use_tf32": _Switch(_TF32, default=True)},
    "TensorrtExecutionProvider": {
        "trt_fp16_enable": _Switch("float16"),
        "trt_bf16_enable": _Switch(_EIGHT_BITS),
        "trt_int8_enable": _Switch(_EIGHT_BITS),
    },
    "MIGraphXExecutionProvider": {
        "migraphx_fp16_enable": _Switch("float16"),
        "migraphx_bf16_enable": _Switch(_EIGHT_BITS),
        "migraphx_fp8_enable": _Switch(_EIGHT_BITS),
        "migraphx_int8_enable": _Switch(_EIGHT_BITS),
    },
    "ACLExecutionProvider": {"enable_fast_math": _Switch("float16")},
}
_SESSION = {
    "session.set_denormal_as_zero": _Switch(""),
    "optimization.enable_gelu_approximation": _Switch("float16"),
    "mlas.enable_gemm_fastmath_arm64_bfloat16": _Switch(_EIGHT_BITS),
}
_BY_ENVIRONMENT = ("CUDAExecutionProvider", "TensorrtExecutionProvider", "NvTensorRTRTXExecutionProvider")
TF32_OVERRIDE = "NVIDIA_TF32_OVERRIDE"
"""NVIDIA's libraries read it once per process. cuDNN of some builds uses TF32 though use_tf32 is 0, and TensorRT has no
option for it."""
_WIDTH = {"": 24, "float16": 11, "bfloat16": 8}
"""Bits of significand."""


def strict(target: TargetSpec) -> TargetSpec:
    """The same target with all off that loosens."""
    switches = _PROVIDERS.get(target.provider, {})
    options = target.options | {name: one.off for name, one in switches.items() if _is_on(one, target.options, name)}
    session = target.session | {name: one.off for name, one in _SESSION.items() if _is_on(one, target.session, name)}
    return replace(target, options=options, session=session, deterministic=True)


def environment(target: TargetSpec) -> dict[str, str]:
    """What the environment of a process has to hold for the strict options to be strict."""
    return {TF32_OVERRIDE: "0"} if target.provider in _BY_ENVIRONMENT else {}


def loosened(target: TargetSpec) -> dict[str, str]:
    """What loosens the arithmetic of a target as it is deployed, by name, each with the rounding it lets in."""
    switches = _PROVIDERS.get(target.provider, {})
    found = {name: one.rounding for name, one in switches.items() if _is_on(one, target.options, name)}
    found |= {name: one.rounding for name, one in _SESSION.items() if _is_on(one, target.session, name)}
    if target.provider in _BY_ENVIRONMENT and "use_tf32" not in switches:
        found["TF32"] = _TF32
    return found if target.deterministic else found | {"deterministic = false": ""}


def narrowest(found: dict[str, str]) -> str:
    """The narrowest of these roundings; "" where none is narrower than float32's."""
    return min(["", *found.values()], key=lambda one: _WIDTH[one])


def _is_on(switch: _Switch, options: dict[str, Any], name: str) -> bool:
    given = options.get(name, switch.default)
    return str(given).lower() in ("1", "true") if not isinstance(given, (bool, float)) else bool(given)
