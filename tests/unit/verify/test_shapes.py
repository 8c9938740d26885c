"""Promised output sizes are evaluated at each case, and held against what PyTorch and the target gave."""

from __future__ import annotations

from tests.unit.verify.artifacts import ENVIRONMENT

from onnx_ci.numerics.comparison import CaseComparison, Fault, OutputComparison
from onnx_ci.records.cases import Case, CaseOutput
from onnx_ci.records.contract import Contract, DimContract, TensorContract
from onnx_ci.verify import shapes
from onnx_ci.verify.dims import Tensor


def contract(shape, exporter="dynamo"):
    return Contract(
        schema_version=1,
        model="m",
        variant=None,
        contract_version=1,
        inputs=[],
        outputs=[TensorContract(name="y", dtype="float32", shape=shape)],
        dims={"h": DimContract(min=1, max=100), "n": DimContract(min=0, max=None)},
        batch="independent",
        strategy="own",
        exporter=exporter,
        opset=20,
        ir_version=10,
        domains={"": 20},
        environment=ENVIRONMENT,
    )


def case(h, *shape, n=2, **more):
    output = CaseOutput(name="y", dtype="float32", shape=list(shape))
    return Case(index=h, name=f"h{h}", origin="boundary", why="", dims={"h": h, "n": n}, outputs=[output], **more)


def given(one, *shape, fault=None):
    item = OutputComparison(
        output="y", base="y", dtype="float32", shape=one.outputs[0].shape, given=list(shape), fault=fault
    )
    return CaseComparison(case=one, outputs=[item])


def judge(shape, cases, compared=(), file=None, **more):
    outputs = [Tensor("y", "float32", file)] if file else []
    return shapes.judge(contract(shape, **more), outputs, cases, compared)


def test_expressions_that_hold_pass_once():
    cases = [case(4, 2, 2), case(5, 2, 3), case(1, 0, 1, n=0)]
    (found,) = judge(["n", "(h + 1)//2"], cases, [given(cases[0], 2, 2)], file=("n", "(h + 1)//2"))
    assert (found.status, found.message) == ("pass", "the promised output sizes are those of 3 cases")


def test_an_expression_that_is_wrong_somewhere_fails_with_the_case():
    (found,) = judge(["n", "h//2"], [case(4, 2, 2), case(5, 2, 3), case(7, 2, 4)])
    assert (found.status, found.subject) == ("fail", "y")
    assert "promises h//2, that is 2, for axis 1, and PyTorch gives 3 in h5 (h 5, n 2)" in found.message
    assert "wrong in 2 of 3 cases" in found.message


def test_another_number_of_axes_fails():
    (found,) = judge(["n"], [case(4, 2, 2)])
    assert found.status == "fail"
    assert "1 axes and PyTorch gives 2" in found.message


def test_the_targets_shape_counts_too():
    one = case(5, 2, 3)
    fault = Fault(rule="parity.shape", text="expected [2, 3], got [2, 2]")
    (found,) = judge(["n", "(h+1)//2"], [one], [given(one, 2, 2, fault=fault)])
    assert found.status == "fail"
    assert "the target gives 2" in found.message


def test_a_size_that_hangs_on_rounding_is_a_warning():
    one = case(5, 2, 3)
    fault = Fault(rule="parity.shape", text="", status="warn")
    (found,) = judge(["n", "(h+1)//2"], [one], [given(one, 2, 2, fault=fault)])
    assert found.status == "warn"


def test_the_files_own_sizes_are_held_too():
    (found,) = judge(["n", "h"], [case(5, 2, 5)], file=("n", 4))
    assert found.status == "fail"
    assert "the file promises 4 for axis 1" in found.message


def test_names_of_the_older_exporter_are_a_warning_only():
    (found,) = judge(["n", "h"], [case(5, 2, 3)], exporter="torchscript")
    assert found.status == "warn"


def test_what_can_not_be_evaluated_is_left_out():
    for shape in (["?", "?"], ["rows", "cols"], None):
        (found,) = judge(shape, [case(5, 2, 3)], file=(None, "Mul_dim_1"))
        assert (found.status, found.message) == ("pass", "no output has a size that could be evaluated at a case")


def test_cases_that_pytorch_refuses_or_that_lie_outside_the_promise_are_left_out():
    (found,) = judge(["n", "h"], [case(101, 2, 3), case(5, 2, 3, refused="no")])
    assert found.status == "pass"
    assert "no output" in found.message
