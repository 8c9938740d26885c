"""onnx's own node tests, cast to double: the twin agrees with every one, but for those listed with their reason."""

from __future__ import annotations

import importlib
import pkgutil
import warnings

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.defs import OpSchema

from onnx_ci.twin import Twin, Unoracled
from onnx_ci.twin.kernels import KERNELS

SLOW = {"averagepool", "lppool", "maxpool"}  # seconds to make; pools are held against torch
NOT_IN_FLOAT64 = {
    "Bernoulli": "drawn anew each time",
    "BitCast": "about the bits of a float32",
    "ImageDecoder": "decoded by a library",
    "MelWeightMatrix": "float32 in every implementation",
    "TfIdfVectorizer": "float32 in every implementation",
}
BY_REFERENCE = {"CausalConvWithState", "LinearAttention", "StringNormalizer", "TopK"}
OTHERWISE = {
    "test_dynamicquantizelinear": "a half, which float32 rounds down before it is rounded to even",
    "test_gridsample_bicubic": "expected to four digits",
    "test_resize_downsample_scales_cubic_align_corners": "the runtime and torch take the whole length, onnx not",
    "test_resize_downsample_scales_linear_align_corners": "the runtime and torch take the whole length, onnx not",
    "test_roialign_aligned_false": "expected to four digits",
    "test_roialign_aligned_true": "expected to four digits",
}


@pytest.fixture(scope="module")
def cases():
    import onnx.backend.test.case.node as folder

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # made by numpy in float32, overflow and all
        for module in pkgutil.iter_modules(folder.__path__):
            if module.name not in SLOW:
                importlib.import_module(f"{folder.__name__}.{module.name}")
    return [case for case in folder._NodeTestCases if not case.name.endswith("_expanded")]


def test_the_twin_agrees_with_onnxs_node_tests(cases):
    wrong, by_reference, right = {}, set(), 0
    for case in cases:
        operators = {node.op_type for node in case.model.graph.node}
        if any(node.domain not in ("", "ai.onnx") for node in case.model.graph.node) or "expanded" in case.name:
            continue
        for inputs, outputs in case.data_sets:
            try:
                run = Twin(case.model).run(dict(zip(names(case.model), map(loaded, inputs), strict=True)))
            except Unoracled as error:
                if not operators & NOT_IN_FLOAT64.keys() and not meant(error, case.name):
                    wrong[case.name] = str(error)
                continue
            by_reference.update(run.by_reference)
            found = zip(run.outputs.values(), map(loaded, outputs), strict=True)
            if all(same(actual, expected) for actual, expected in found):
                right += 1
            elif case.name not in OTHERWISE:
                wrong[case.name] = "other values"
    assert wrong == {}
    assert right > 1000
    assert by_reference <= BY_REFERENCE


def meant(error, name):
    """Refusals that stand for more than an operator: training, formats that round, an opset that is long past."""
    to_eight = error.operator in ("Cast", "CastLike", "QuantizeLinear") and "float" in error.reason
    return to_eight or error.reason == "training mode" or name == "test_scan_sum"


def names(model):
    return [item.name for item in model.graph.input]


def loaded(value):
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def same(actual, expected):
    """Within float32's rounding; text and booleans exactly, items of sequences one by one."""
    if actual is None or expected is None:
        return actual is None and expected is None
    if isinstance(expected, list):
        return len(actual) == len(expected) and all(map(same, actual, expected))
    expected = np.asarray(expected)
    if actual.shape != expected.shape:
        return False
    if expected.dtype.kind in "OUSb":
        return bool((actual == expected).all())
    coarse = expected.dtype.name in ("float16", "bfloat16")
    if expected.dtype.kind != "c":
        actual, expected = actual.astype(np.float64), expected.astype(np.float64)
    tolerance = 2e-2 if coarse else 1e-5
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=0)
    return np.allclose(actual, expected, rtol=tolerance, atol=tolerance / 10 * largest, equal_nan=True)


def test_operators_with_a_float_attribute_have_an_own_kernel():
    floats = (OpSchema.AttrType.FLOAT, OpSchema.AttrType.FLOATS)
    schemas = [schema for schema in onnx.defs.get_all_schemas_with_history() if not schema.domain]
    with_floats = {item.name for item in schemas if any(a.type in floats for a in item.attributes.values())}
    # LinearAttention: reference only. MaxRoiPool: float32 only. Pad: only before opset 11.
    assert with_floats - KERNELS.keys() <= {"LinearAttention", "MaxRoiPool", "Pad"}


def test_own_kernels_are_of_operators_that_exist():
    known = {schema.name for schema in onnx.defs.get_all_schemas_with_history() if not schema.domain}
    assert KERNELS.keys() - known - {"SwiGLU", "BitCast", "Swish"} == set()
