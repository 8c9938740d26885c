"""Two graphs are the same by what they compute; else the first node or constant at which they part is named."""

import numpy as np
import onnx_ir as ir
import onnxscript
import pytest
from onnx import helper, numpy_helper
from onnx.parser import parse_model

from onnx_ci.export.difference import first_difference

HEAD = '<ir_version: 10, opset_import: ["" : 20]>\n'


def graph(body: str, edges: str = "agraph (float[n, 4] x) => (float[n, 4] y)", weights: str = "") -> ir.Model:
    return ir.serde.deserialize_model(parse_model(f"{HEAD}{edges} {weights} {{ {body} }}"))


def test_names_order_and_dead_nodes_play_no_part():
    one = graph("a = Relu(x) b = Neg(x) y = Add(a, b)")
    other = graph("q = Neg(x) dead = Sin(x) p = Relu(x) y = Add(p, q)")
    assert first_difference(one, other) is None


def test_a_constant_counts_by_its_content_wherever_it_is_kept():
    one = graph("y = Mul(x, w)", weights="<float[2] w = {1.0, 2.0}>")
    other = graph("v = Constant <value = float[2] {1.0, 2.0}> () y = Mul(x, v)")
    assert first_difference(one, other) is None


def test_an_attribute_is_compared_as_the_file_holds_it():
    inexact = float(np.float32(1e-5))
    one, other = graph("y = LeakyRelu <alpha = 1e-5> (x)"), graph("y = LeakyRelu <alpha = 1e-5> (x)")
    other.graph[0].attributes["alpha"] = ir.AttrFloat32("alpha", inexact)
    one.graph[0].attributes["alpha"] = ir.AttrFloat32("alpha", 1e-5)
    assert first_difference(one, other) is None


@pytest.mark.parametrize(
    ("here", "there", "kind", "text"),
    [
        ("y = Relu(x)", "y = Neg(x)", "operator", "Relu here, Neg there"),
        ("y = Elu <alpha = 1.0> (x)", "y = Elu <alpha = 2.0> (x)", "attribute", "Elu has alpha = 1 here, 2 there"),
        ("y = Elu <alpha = 1.0> (x)", "y = Elu (x)", "attribute", "Elu has alpha = 1 here, nothing there"),
        (
            "s = Constant <value_ints = [2, 4]> () y = Reshape(x, s)",
            "s = Constant <value_ints = [3, 4]> () y = Reshape(x, s)",
            "constant",
            "Reshape takes [2, 4] here, [3, 4] there",
        ),
        (
            "s = Constant <value_ints = [2, 4]> () y = Reshape(x, s)",
            "s = Shape(x) y = Reshape(x, s)",
            "constant",
            "Reshape takes [2, 4] here, a computed value there",
        ),
        ("y = Add(x, x)", "z = Relu(x) y = Add(z, x)", "operator", "Add takes another value at place 0"),
        ("y = Relu(x)", "z = Relu(x) y = Sin(z)", "operator", "Sin stands there only"),
    ],
)
def test_the_first_difference_is_named(here: str, there: str, kind: str, text: str):
    found = first_difference(graph(here), graph(there))
    assert found is not None
    assert (found.kind, found.text) == (kind, text)


def test_what_follows_from_a_difference_is_not_named():
    found = first_difference(
        graph("a = Relu(x) b = Elu <alpha = 1.0> (a) y = Sin(b)"), graph("p = Relu(x) q = Elu(p) y = Cos(q)")
    )
    assert found is not None
    assert found.text.startswith("Elu has alpha")
    assert (found.here, found.there) == ("b", "q")
    assert (found.here_nodes, found.there_nodes) == (3, 3)


def test_a_large_constant_with_other_values_is_named_by_its_form():
    models = []
    for start in (0.0, 1.0):
        weight = numpy_helper.from_array(np.arange(12, dtype=np.float32).reshape(3, 4) + start, "w")
        nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
        ends = [helper.make_tensor_value_info(name, 1, [3, 4]) for name in ("x", "y")]
        made = helper.make_graph(nodes, "g", ends[:1], ends[1:], [weight])
        models.append(ir.serde.deserialize_model(helper.make_model(made)))
    found = first_difference(*models)
    assert found is not None
    assert found.text == "Add takes float[3, 4] here, float[3, 4] with other values there"


def test_a_difference_inside_a_branch_is_found_there():
    def branching(inner: str) -> ir.Model:
        return graph(
            f"y = If (c) <then_branch = t () => (float[n, 4] a) {{ a = {inner}(x) }}, "
            "else_branch = e () => (float[n, 4] b) { b = Neg(x) }>",
            edges="agraph (float[n, 4] x, bool c) => (float[n, 4] y)",
        )

    assert first_difference(branching("Relu"), branching("Relu")) is None
    found = first_difference(branching("Relu"), branching("Sin"))
    assert found is not None
    assert found.text == "Relu here, Sin there"


def test_a_function_of_the_model_counts_by_its_body():
    domain = onnxscript.values.Opset("own", 1)
    models = []
    for text in ("Relu", "Sin"):
        body = helper.make_function(
            "own", "F", ["a"], ["b"], [helper.make_node(text, ["a"], ["b"])], [helper.make_opsetid("", 20)]
        )
        ends = [helper.make_tensor_value_info(name, 1, [3, 4]) for name in ("x", "y")]
        made = helper.make_graph([helper.make_node("F", ["x"], ["y"], domain=domain.domain)], "g", ends[:1], ends[1:])
        models.append(
            ir.serde.deserialize_model(
                helper.make_model(
                    made, functions=[body], opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
                )
            )
        )
    assert first_difference(models[0], models[0]) is None
    assert first_difference(*models) is not None


def test_exchanged_outputs_are_another_graph():
    edges = "agraph (float[n, 4] x) => (float[n, 4] y, float[n, 4] z)"
    found = first_difference(graph("y = Relu(x) z = Sin(x)", edges), graph("z = Relu(x) y = Sin(x)", edges))
    assert found is not None
    assert found.kind == "edge"


def test_an_input_that_became_static_is_another_graph():
    found = first_difference(
        graph("y = Relu(x)"), graph("y = Relu(x)", edges="agraph (float[7, 4] x) => (float[7, 4] y)")
    )
    assert found is not None
    assert found.text == "the input x is FLOAT[?, 4] here, FLOAT[7, 4] there"
