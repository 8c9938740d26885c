"""One node as a model, run by the twin; and inputs that no float32 holds."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from onnx_ci.twin import Twin
from onnx_ci.twin.by_runtime import RuntimeKernels

RUNTIME = RuntimeKernels()


def fine(*shape, seed=0, low=None, high=None):
    """Float64 values whose last bits float32 would lose."""
    rng = np.random.default_rng([seed, *shape])
    made = rng.standard_normal(shape) if low is None else rng.uniform(low, high, shape)
    assert not shape or (made != made.astype(np.float32)).any()
    return made


def node_of(op, inputs, outputs=1, **attributes):
    names = [f"x{at}" if value is not None else "" for at, value in enumerate(inputs)]
    return helper.make_node(op, names, [f"y{at}" for at in range(outputs)], **attributes)


def run(op, *inputs, outputs=1, version=22, **attributes):
    """The outputs of the twin of a node; the file's floats are float32, as shipped ones are."""
    node = node_of(op, inputs, outputs, **attributes)
    given = [_info(f"x{at}", value) for at, value in enumerate(inputs) if value is not None]
    made = [helper.make_empty_tensor_value_info(name) for name in node.output]
    graph = helper.make_graph([node], "node", given, made)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
    feeds = {f"x{at}": value for at, value in enumerate(inputs) if value is not None}
    found = list(Twin(model).run(feeds).outputs.values())
    return found[0] if outputs == 1 else found


def by_runtime(op, *inputs, outputs=1, version=22, **attributes):
    """The same by ONNX Runtime's kernel in double."""
    found = RUNTIME.run(node_of(op, inputs, outputs, **attributes), version, inputs)
    assert found is not None, f"no double kernel for {op}"
    return found[0] if outputs == 1 else list(found)


def near(actual, expected, limit=1e-13):
    """Fails unless the shapes are the same, and all elements within a share of the largest."""
    assert isinstance(actual, np.ndarray)
    expected = np.asarray(expected)
    assert actual.dtype == np.float64
    assert actual.shape == expected.shape
    np.testing.assert_array_equal(np.isfinite(actual), np.isfinite(expected))
    both = np.isfinite(actual)
    assert expected.size == 0 or float(np.abs(actual - expected)[both].max()) <= limit * float(
        np.abs(expected)[both].max()
    )


def _info(name, value):
    element = TensorProto.FLOAT if value.dtype == np.float64 else helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_value_info(name, element, None)
