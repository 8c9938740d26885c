"""The kinds of faults: each finds all the places in a graph where it can be made. Nothing is drawn at random here."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import onnx
from benchmarks.mutation.mutant import Graph, Mutant, Site, attribute
from onnx import ModelProto, NodeProto, TensorProto, helper

POOLS = frozenset({"AveragePool", "LpPool", "MaxPool"})
WINDOWS = POOLS | {"Conv", "ConvTranspose"}
NORMS = frozenset({"BatchNormalization", "GroupNormalization", "InstanceNormalization", "LayerNormalization"})
_SMALL = 1e-3
_AXES_INPUT = {"Squeeze": 1, "Unsqueeze": 1}
"""Which input holds the axes; input 1 of every Reduce* too."""


def pool_kernel(graph: Graph) -> Iterator[Mutant]:
    """A pool's window is one larger or smaller along one axis."""
    for site in _of(graph, POOLS):
        yield from _stepped(site, "pool-kernel", "kernel_shape", attribute(site.node, "kernel_shape"))


def stride(graph: Graph) -> Iterator[Mutant]:
    """A window steps one further or less far along one axis."""
    for site in _of(graph, WINDOWS):
        yield from _stepped(site, "stride", "strides", attribute(site.node, "strides", [1] * _window_rank(graph, site)))


def dilation(graph: Graph) -> Iterator[Mutant]:
    """A window is spread one wider along one axis."""
    for site in _of(graph, WINDOWS):
        old = attribute(site.node, "dilations", [1] * _window_rank(graph, site))
        yield from _stepped(site, "dilation", "dilations", old, steps=(1,))


def pads(graph: Graph) -> Iterator[Mutant]:
    """Padding is shifted from one end of an axis to the other, so that all shapes stay."""
    for site in _of(graph, WINDOWS):
        old = attribute(site.node, "pads", [])
        for new in _shifted(list(old)):
            yield site.set_attribute("pads", "pads", list(old), new)
    for site in _of(graph, {"Pad"}):
        value = graph.constant(site.node.input[1])
        for new in _shifted(value.tolist()) if value is not None else []:
            what = f"pads {value.tolist()} → {new}"
            yield graph.set_constant("pads", site.node.input[1], np.array(new, value.dtype), what, site)


def epsilon(graph: Graph) -> Iterator[Mutant]:
    """A guard against division by zero is ten times as large."""
    for site in _of(graph, NORMS):
        old = attribute(site.node, "epsilon", 1e-5)
        yield site.set_attribute("epsilon", "epsilon", f"{old:.3g}", old * 10)
    for name, value, site in graph.read_constants():
        if site.node.op_type in ("Add", "Max", "Clip") and _is_epsilon(value):
            yield graph.set_constant("epsilon", name, value * 10, f"{value.item():.3g} × 10")


def gelu(graph: Graph) -> Iterator[Mutant]:
    """GELU by its approximation instead of the error function, or the other way round."""
    for site in _of(graph, {"Gelu"}):
        old = attribute(site.node, "approximate", b"none").decode()
        yield site.set_attribute("gelu", "approximate", old, "none" if old == "tanh" else "tanh")


def axis(graph: Graph) -> Iterator[Mutant]:
    """An operator works along a neighbouring axis."""
    for site in graph.sites:
        old = attribute(site.node, "axis")
        if old is not None:
            for step in (-1, 1):
                yield site.set_attribute("axis", "axis", old, old + step)
        place = 1 if site.node.op_type.startswith("Reduce") else _AXES_INPUT.get(site.node.op_type)
        name = site.node.input[place] if place is not None and len(site.node.input) > place else ""
        value = graph.constant(name) if name else None
        if value is not None and value.size:
            for step in (-1, 1):
                yield graph.set_constant("axis", name, value + step, f"axes {value.tolist()} {step:+d}", site)


def index(graph: Graph) -> Iterator[Mutant]:
    """A fixed index that is gathered, or an end of a slice, is one off."""
    for site in _of(graph, {"Gather", "GatherElements", "GatherND"}):
        yield from _one_off(graph, site, "gather-index", 1)
    for site in _of(graph, {"Slice"}):
        for place in (1, 2):
            yield from _one_off(graph, site, "slice", place)


def permutation(graph: Graph) -> Iterator[Mutant]:
    """Two neighbours of a transposition change places."""
    for site in _of(graph, {"Transpose"}):
        old = list(attribute(site.node, "perm", []))
        for at in range(len(old) - 1):
            new = [*old[:at], old[at + 1], old[at], *old[at + 2 :]]
            yield site.set_attribute("permutation", "perm", old, new)


def bypass(graph: Graph) -> Iterator[Mutant]:
    """A node hands on its first computed input where it has the shape and dtype of the result."""
    types = _types(graph.model)
    for site in graph.sites:
        if site.node.op_type in ("Identity", "Cast", "Constant") or len([o for o in site.node.output if o]) != 1:
            continue
        result = types.get(site.node.output[0])
        alike = [name for name in site.node.input if name and result and types.get(name) == result]
        if alike and graph.constant(alike[0]) is None:
            yield site.mutant("bypass", f"{site.node.op_type} → its input {alike[0]}", _becomes_identity(alike[0]))


def scalar(graph: Graph) -> Iterator[Mutant]:
    """A float scalar, constant or attribute, is 1 % larger."""
    for name, value, _ in graph.read_constants():
        if value.dtype.kind == "f" and value.size == 1 and not _is_epsilon(value):
            new = _larger(value)
            if np.isfinite(new).all() and _changes(value, new):
                yield graph.set_constant("scalar", name, new, f"{value.item():.6g} × 1.01")
    for site in graph.sites:
        for one in site.node.attribute:
            if one.type == onnx.AttributeProto.FLOAT and one.name != "epsilon" and one.f not in (0.0, float("inf")):
                yield site.set_attribute("scalar", one.name, f"{one.f:.6g}", one.f * 1.01)


def weight(graph: Graph) -> Iterator[Mutant]:
    """A weight tensor is 1 % larger; or one of its elements, the largest, is."""
    for name, value in _weights(graph):
        yield graph.set_constant("weight", name, _larger(value), f"{name} × 1.01")
        place = np.unravel_index(np.abs(value).argmax(), value.shape)
        new = value.copy()
        new[place] *= 1.01
        yield graph.set_constant("element", name, new, f"{name}{[int(at) for at in place]} × 1.01")


def half(graph: Graph) -> Iterator[Mutant]:
    """A weight tensor was rounded to half precision."""
    for name, value in _weights(graph):
        with np.errstate(over="ignore"):
            new = value.astype(np.float16).astype(value.dtype)
        if _changes(value, new):
            yield graph.set_constant("half", name, new, f"{name} through float16")


def outputs(graph: Graph) -> Iterator[Mutant]:
    """An output is missing, or two have changed places."""
    names = [one.name for one in graph.model.graph.output]
    for at, name in enumerate(names) if len(names) > 1 else []:
        yield Mutant("output-dropped", "", "", f"no {name}", _drops(at))
    for one, other in itertools.pairwise(names):
        yield Mutant("output-swapped", "", "", f"{one} ↔ {other}", _swaps(one, other))


def narrow(graph: Graph) -> Iterator[Mutant]:
    """A float value goes through half precision; an output has a narrower dtype."""
    types = _types(graph.model)
    for site in graph.sites:
        name = next(iter(site.node.output), "")
        if name and site.node.op_type != "Constant" and types.get(name, (0,))[0] == TensorProto.FLOAT:
            what = f"{name} through float16"
            yield Mutant("narrowed", site.node.name, site.node.op_type, what, _goes_through_half(site.at))
    narrower = {TensorProto.FLOAT: TensorProto.FLOAT16, TensorProto.DOUBLE: TensorProto.FLOAT}
    narrower |= {TensorProto.INT64: TensorProto.INT32}
    for at, output in enumerate(graph.model.graph.output):
        to = narrower.get(output.type.tensor_type.elem_type)
        if to is not None:
            what = f"{output.name} as {TensorProto.DataType.Name(to).lower()}"
            yield Mutant("output-dtype", "", "", what, _ends_in(at, to))


MUTATORS: tuple[Callable[[Graph], Iterator[Mutant]], ...] = (
    pool_kernel, stride, dilation, pads, epsilon, gelu, axis, index, permutation, bypass, scalar, weight, half, outputs,
    narrow,
)  # fmt: skip


def find(model: ModelProto) -> list[Mutant]:
    """Every fault that can be made in a model with its weights in it, in a fixed order."""
    graph = Graph(model)
    return [mutant for mutator in MUTATORS for mutant in mutator(graph)]


def _of(graph: Graph, operators: frozenset[str] | set[str]) -> list[Site]:
    return [site for site in graph.sites if site.node.op_type in operators]


def _stepped(
    site: Site, kind: str, name: str, old: Sequence[int], steps: tuple[int, ...] = (-1, 1)
) -> Iterator[Mutant]:
    for at, size in enumerate(old):
        for step in steps:
            if size + step >= 1:
                yield site.set_attribute(kind, name, list(old), [*old[:at], size + step, *old[at + 1 :]])


def _window_rank(graph: Graph, site: Site) -> int:
    kernel = attribute(site.node, "kernel_shape")
    weights = graph.constant(site.node.input[1]) if kernel is None and len(site.node.input) > 1 else None
    return len(kernel) if kernel is not None else (weights.ndim - 2 if weights is not None else 0)


def _shifted(old: list[int]) -> Iterator[list[int]]:
    """ONNX's pads, all begins before all ends: one less at an end and one more at the other."""
    half_way = len(old) // 2
    for at in range(half_way):
        for gives, takes in ((at + half_way, at), (at, at + half_way)):
            if old[gives] >= 1:
                new = list(old)
                new[gives] -= 1
                new[takes] += 1
                yield new


def _one_off(graph: Graph, site: Site, kind: str, place: int) -> Iterator[Mutant]:
    name = site.node.input[place] if len(site.node.input) > place else ""
    value = graph.constant(name) if name else None
    if value is None or not value.size or np.abs(value).max() > 1 << 31:
        return
    for step in (-1, 1):
        yield graph.set_constant(kind, name, value + step, f"{value.ravel()[:4].tolist()} {step:+d}", site)


def _is_epsilon(value: np.ndarray) -> bool:
    return value.dtype.kind == "f" and value.size == 1 and 0 < value.item() < _SMALL


def _larger(value: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return (value * 1.01).astype(value.dtype)


def _changes(old: np.ndarray, new: np.ndarray) -> bool:
    return not np.array_equal(old, new.astype(old.dtype), equal_nan=True)


def _weights(graph: Graph) -> Iterator[tuple[str, np.ndarray]]:
    for name, value, _ in graph.read_constants():
        if value.dtype.kind == "f" and value.size > 1 and np.any(value):
            yield name, value


def _types(model: ModelProto) -> dict[str, tuple[int, tuple[object, ...]]]:
    """Dtype and shape of each value that inference can tell; a dim is a number or a name."""
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except onnx.shape_inference.InferenceError:
        inferred = model
    found = {one.name: (one.data_type, tuple(one.dims)) for one in model.graph.initializer}
    for one in (*inferred.graph.value_info, *inferred.graph.input, *inferred.graph.output):
        tensor = one.type.tensor_type
        dims = tuple(dim.dim_value or dim.dim_param or None for dim in tensor.shape.dim)
        if tensor.elem_type and None not in dims and tensor.HasField("shape"):
            found[one.name] = (tensor.elem_type, dims)
    return found


def _becomes_identity(value: str) -> Callable[[NodeProto], None]:
    def change(node: NodeProto) -> None:
        node.op_type, node.domain = "Identity", ""
        del node.attribute[:]
        del node.input[:]
        node.input.append(value)

    return change


def _drops(at: int) -> Callable[[ModelProto], None]:
    def change(model: ModelProto) -> None:
        del model.graph.output[at]

    return change


def _swaps(one: str, other: str) -> Callable[[ModelProto], None]:
    def change(model: ModelProto) -> None:
        swapped = {one: other, other: one}
        for node in model.graph.node:
            for names in (node.input, node.output):
                names[:] = [swapped.get(name, name) for name in names]
        for info in model.graph.value_info:
            info.name = swapped.get(info.name, info.name)

    return change


def _goes_through_half(at: int) -> Callable[[ModelProto], None]:
    def change(model: ModelProto) -> None:
        node = model.graph.node[at]
        name = node.output[0]
        node.output[0] = f"{name}_whole"
        there = helper.make_node("Cast", [f"{name}_whole"], [f"{name}_half"], to=TensorProto.FLOAT16)
        back = helper.make_node("Cast", [f"{name}_half"], [name], to=TensorProto.FLOAT)
        there.name, back.name = f"{node.name}_to_half", f"{node.name}_from_half"
        nodes = [*model.graph.node]
        del model.graph.node[:]
        model.graph.node.extend([*nodes[: at + 1], there, back, *nodes[at + 1 :]])

    return change


def _ends_in(at: int, dtype: int) -> Callable[[ModelProto], None]:
    def change(model: ModelProto) -> None:
        output = model.graph.output[at]
        name = output.name
        for node in model.graph.node:
            for names in (node.input, node.output):
                names[:] = [f"{name}_wide" if one == name else one for one in names]
        model.graph.node.append(helper.make_node("Cast", [f"{name}_wide"], [name], name=f"{name}_narrow", to=dtype))
        output.type.tensor_type.elem_type = dtype

    return change
