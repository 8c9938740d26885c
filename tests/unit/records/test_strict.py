"""What loosens the arithmetic of a target, and the same target without it."""

from __future__ import annotations

from typing import Any

import pytest

from onnx_ci.records import strict
from onnx_ci.records.model import TargetSpec


def target(provider: str = "CPU", **more: Any) -> TargetSpec:
    return TargetSpec(name="t", provider=f"{provider}ExecutionProvider", **more)


TF32 = {"use_tf32": "float16"}
MIGRAPHX = {"migraphx_fp16_enable": 0}


@pytest.mark.parametrize(
    ("given", "loosened", "options"),
    [
        (target("CUDA"), {"use_tf32": "float16"}, {"use_tf32": 0}),
        (target("CUDA", options={"use_tf32": 1, "device_id": 1}), TF32, {"use_tf32": 0, "device_id": 1}),
        (target("CUDA", options={"use_tf32": "True"}), {"use_tf32": "float16"}, {"use_tf32": 0}),
        (target("CUDA", options={"use_tf32": 0}), {}, {"use_tf32": 0}),
        (target("CUDA", options={"use_tf32": False}), {}, {"use_tf32": False}),
        (
            target("Tensorrt", options={"trt_fp16_enable": True, "trt_int8_enable": "0"}),
            {"trt_fp16_enable": "float16", "TF32": "float16"},
            {"trt_fp16_enable": 0, "trt_int8_enable": "0"},
        ),
        (target("MIGraphX", options={"migraphx_fp16_enable": "1"}), {"migraphx_fp16_enable": "float16"}, MIGRAPHX),
        (target(options={"use_tf32": 1}), {}, {"use_tf32": 1}),
    ],
)  # fmt: skip
def test_what_loosens_is_off(given: TargetSpec, loosened: dict[str, str], options: dict[str, Any]) -> None:
    assert strict.loosened(given) == loosened
    assert strict.strict(given).options == options


def test_session_entries_and_the_order_of_sums_loosen_too() -> None:
    given = target(
        session={"session.set_denormal_as_zero": 1, "session.intra_op.allow_spinning": 0}, deterministic=False
    )
    made = strict.strict(given)
    assert strict.loosened(given) == {"session.set_denormal_as_zero": "", "deterministic = false": ""}
    assert made.session == {"session.set_denormal_as_zero": 0, "session.intra_op.allow_spinning": 0}
    assert made.deterministic
    assert strict.loosened(made) == {}


def test_what_does_not_loosen_is_kept() -> None:
    given = target(threads=4, optimization="basic", session={"session.intra_op.allow_spinning": 0})
    assert strict.strict(given) == given


def test_the_process_is_strict_too() -> None:
    assert strict.environment(target("CUDA")) == {"NVIDIA_TF32_OVERRIDE": "0"}
    assert strict.environment(target()) == {}


@pytest.mark.parametrize(
    ("roundings", "narrowest"),
    [([], ""), ([""], ""), (["float16", ""], "float16"), (["float16", "bfloat16"], "bfloat16")],
)
def test_the_narrowest_rounding_counts(roundings: list[str], narrowest: str) -> None:
    assert strict.narrowest({f"option {at}": one for at, one in enumerate(roundings)}) == narrowest
