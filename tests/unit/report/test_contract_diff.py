"""Two contracts: what changed, and whom it breaks."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.results import contract

from onnx_ci.records.contract import DimContract, TensorContract
from onnx_ci.report import contract_diff
from onnx_ci.report.contract_diff import compare, judge
from onnx_ci.report.contract_shapes import Sizes

BASE = contract(
    "net",
    inputs=[
        TensorContract(name="images", dtype="float32", shape=["batch", 3, "height", "width"], low=0.0, high=1.0),
        TensorContract(name="mask", dtype="bool", shape=["batch", 64]),
    ],
    outputs=[
        TensorContract(name="logits", dtype="float32", shape=["batch", 10]),
        TensorContract(name="grid", dtype="float32", shape=["batch", "height//2", "?"]),
    ],
    frozen={"scale": 1.0},
    kwargs={"classes": 10},
    preprocessing={"io.py": "a" * 64},
    domains={"": 20, "com.microsoft": 1},
)
IMAGES, MASK = BASE.inputs
LOGITS, GRID = BASE.outputs


def dims(**changed):
    return {"dims": BASE.dims | changed}


def dim(low, high, step=1, *, declared=True):
    return DimContract(min=low, max=high, multiple_of=step, declared=declared)


def told(base, head):
    return [(change.kind, change.message) for change in compare(base, head)]


def test_a_contract_has_not_changed_against_itself():
    assert compare(BASE, BASE) == []
    (found,) = judge(BASE, BASE)
    assert (found.rule, found.status, found.message) == ("contract.compatible", "pass", "the contract is the base's")


@pytest.mark.parametrize(
    ("changed", "kind", "message"),
    [
        # inputs
        ({"inputs": [IMAGES]}, "breaking", "the input mask is gone: feeding it is an error now"),
        (
            {"inputs": [IMAGES, MASK, replace(MASK, name="extra")]},
            "breaking",
            "the input extra is new: who serves the base's file does not feed it",
        ),
        ({"inputs": [IMAGES, replace(MASK, name="keep")]}, "breaking", "the input mask is called keep now"),
        (
            {"inputs": [MASK, IMAGES]},
            "breaking",
            "the inputs come in another order: [images, mask] became [mask, images]",
        ),
        ({"inputs": [IMAGES, replace(MASK, dtype="int64")]}, "breaking", "the input mask was bool and is int64"),
        ({"inputs": [IMAGES, replace(MASK, shape=["batch"])]}, "breaking", "the input mask had 2 axes and has 1 axes"),
        (
            {"inputs": [IMAGES, replace(MASK, shape=["batch", 32])]},
            "breaking",
            "axis 1 of mask was 64 only and is 32 only",
        ),
        (
            {"inputs": [IMAGES, replace(MASK, shape=["batch", "height"])]},
            "compatible",
            "axis 1 of mask was 64 only and is height [32, 512]",
        ),
        (
            {
                "inputs": [replace(IMAGES, shape=["batch", 3, 64, "width"]), MASK],
                "outputs": [LOGITS, replace(GRID, shape=["batch", 32, "?"])],
            },
            "breaking",
            "axis 2 of images was height [32, 512] and is 64 only",
        ),
        (
            {"inputs": [replace(IMAGES, shape=["batch", 3, "height", "height"]), MASK]},
            "breaking",
            "height and width are one dim now (height): they can't differ any more",
        ),
        (
            {"inputs": [replace(IMAGES, high=255.0), MASK]},
            "may break",
            "the values of images were 0 to 1 and are 0 to 255",
        ),
        ({"inputs": [IMAGES, replace(MASK, values=[0.0, 1.0])]}, "compatible", "the values of mask were not declared"),
        (
            {"inputs": [replace(IMAGES, nonfinite=["nan"]), MASK]},
            "may break",
            "the values of images were 0 to 1 and are 0 to 1 and nan",
        ),
        # ranges
        (dims(height=dim(64, 512)), "breaking", "the range of height was narrowed from [32, 512] to [64, 512]"),
        (dims(height=dim(32, 256)), "breaking", "the range of height was narrowed from [32, 512] to [32, 256]"),
        (
            dims(height=dim(32, 512, 16)),
            "breaking",
            "the range of height was narrowed from [32, 512] to [32, 512] in steps of 16",
        ),
        (dims(height=dim(16, 256)), "breaking", "the range of height was moved from [32, 512] to [16, 256]"),
        (dims(height=dim(16, None)), "compatible", "the range of height was widened from [32, 512] to [16, …]"),
        # outputs
        ({"outputs": [LOGITS]}, "breaking", "the output grid is gone"),
        (
            {"outputs": [LOGITS, GRID, replace(LOGITS, name="more")]},
            "compatible",
            "the output more was added at the end",
        ),
        (
            {"outputs": [LOGITS, replace(LOGITS, name="more"), GRID]},
            "breaking",
            "the output more was added before others: places in the list moved",
        ),
        ({"outputs": [replace(LOGITS, name="scores"), GRID]}, "breaking", "the output logits is called scores now"),
        (
            {"outputs": [GRID, LOGITS]},
            "breaking",
            "the outputs come in another order: [logits, grid] became [grid, logits]",
        ),
        (
            {"outputs": [replace(LOGITS, dtype="float16"), GRID]},
            "breaking",
            "the output logits was float32 and is float16",
        ),
        ({"outputs": [replace(LOGITS, shape=["batch", 11]), GRID]}, "breaking", "axis 1 of logits was 10 and is 11"),
        (
            {"outputs": [LOGITS, replace(GRID, shape=["batch", "height//4", "?"])]},
            "breaking",
            "axis 1 of grid was height//2 and is height//4: with height 32 that is 16 and 8",
        ),
        (
            {"outputs": [LOGITS, replace(GRID, shape=["batch", "height//2", "width"])]},
            "compatible",
            "axis 2 of grid was unknown and is width",
        ),
        (
            {"outputs": [LOGITS, replace(GRID, shape=["batch", "?", "?"])]},
            "may break",
            "axis 1 of grid was height//2 and is unknown",
        ),
        # what else is promised
        ({"batch": "mixed"}, "breaking", "batch was independent and is mixed: a row's result may depend on"),
        ({"frozen": {"scale": 2.0}}, "breaking", "the argument scale, frozen into the file, was 1.0 and is 2.0"),
        ({"frozen": {}}, "may break", "the argument scale, frozen into the file, was 1.0 and is absent"),
        ({"kwargs": {"classes": 12}}, "may break", "kwargs.classes was 10, is 12"),
        ({"preprocessing": {"io.py": "b" * 64}}, "may break", "io.py was changed (aaaaaaaa → bbbbbbbb): what prepares"),
        ({"contract_version": 0}, "breaking", "contract_version was 1 and is 0: it is only ever raised"),
        # the file
        ({"opset": 21}, "may break", "the opset was raised from 20 to 21: the runtime in production has to read it"),
        ({"opset": 18}, "compatible", "the opset was lowered from 20 to 18"),
        ({"ir_version": 11}, "may break", "the IR version was raised from 10 to 11"),
        ({"domains": {"": 20}}, "compatible", "the file has no operators of com.microsoft any more"),
        ({"domains": BASE.domains | {"mine": 1}}, "may break", "the file has operators of mine now"),
        ({"strategy": "public"}, "compatible", "the strategy was own and is public"),
    ],
)
def test_a_change_is_named_and_sorted_by_whom_it_breaks(changed, kind, message):
    ((found, said),) = told(BASE, replace(BASE, **changed))
    assert found == kind
    assert said.startswith(message)


def test_what_the_base_did_not_declare_may_break_only():
    base = replace(BASE, **dims(height=dim(2, None, declared=False)))
    ((kind, said),) = told(base, BASE)
    assert (kind, said.endswith("the base did not declare it")) == ("may break", True)


def test_dims_of_other_names_are_the_same_dims():
    renamed = {"batch": "n", "height": "h", "width": "w"}
    images, mask = ([renamed.get(axis, axis) for axis in one.shape] for one in (IMAGES, MASK))
    head = replace(
        BASE,
        inputs=[replace(IMAGES, shape=images), replace(MASK, shape=mask)],
        outputs=[replace(LOGITS, shape=["n", 10]), replace(GRID, shape=["n", "(h)//2", "?"])],
        dims={renamed[name]: value for name, value in BASE.dims.items()},
    )
    assert {kind for kind, _ in told(BASE, head)} == {"compatible"}
    assert ("compatible", "the dim height is called h now") in told(BASE, head)


def test_an_output_size_that_is_only_written_otherwise_has_not_changed():
    head = replace(BASE, outputs=[LOGITS, replace(GRID, shape=["batch", "(height + height)//4", "?"])])
    assert told(BASE, head) == []


def test_dims_that_were_tied_and_are_free_break_nobody():
    tied = replace(BASE, inputs=[replace(IMAGES, shape=["batch", 3, "height", "height"]), MASK])
    assert told(tied, BASE) == [
        ("compatible", "height was one dim and is now height and width, which may differ"),
    ]


def test_a_break_fails_unless_the_contract_version_was_raised():
    head = replace(BASE, batch="mixed", opset=21)
    assert [(one.rule, one.status) for one in judge(BASE, head)] == [
        ("contract.breaking", "fail"),
        ("contract.breaking", "warn"),
    ]
    meant, warned = judge(BASE, replace(head, contract_version=2))
    assert (meant.status, warned.status) == ("warn", "warn")
    assert meant.message.endswith("contract_version was raised from 1 to 2, so this is meant")


def test_many_changes_are_counted():
    many = [replace(LOGITS, name=f"y{at}") for at in range(200)]
    found = judge(BASE, replace(BASE, outputs=[*many, *BASE.outputs]))
    assert len(found) == contract_diff.MOST + 1
    assert found[-1].message == f"{200 - contract_diff.MOST} more changes"
    assert found[-1].status == "fail"


ranges = st.builds(
    lambda low, more, step: DimContract(min=low, max=None if more is None else low + more, multiple_of=step),
    st.integers(0, 20),
    st.none() | st.integers(0, 20),
    st.integers(1, 6),
)


@given(ranges, ranges)
@settings(max_examples=300, deadline=None)
def test_one_range_lies_within_another_where_each_size_does(one, other):
    a, b = Sizes.of(one), Sizes.of(other)
    end = 200  # beyond it, what has no end goes on in the same way
    sizes = [size for size in range(end) if a.holds(size)]
    if a.high is not None and not sizes:
        return  # a range without a size: the config refuses it
    assert a.within(b) == (all(b.holds(size) for size in sizes) and not (a.high is None and b.high is not None))


TENSORS = st.builds(
    TensorContract,
    name=st.sampled_from(["x", "y", "z"]),
    dtype=st.sampled_from(["float32", "int64"]),
    shape=st.none()
    | st.lists(st.integers(0, 10**30) | st.sampled_from(["a", "b", "?", "2*a", "a//b", "((", "a" * 3000]), max_size=3),
    low=st.none() | st.floats(),
)
CONTRACTS = st.builds(
    contract,
    inputs=st.lists(TENSORS, max_size=4),
    outputs=st.lists(TENSORS, max_size=4),
    dims=st.dictionaries(
        st.sampled_from(["a", "b"]),
        st.builds(
            DimContract,
            min=st.integers(-(10**5000), 10**4000),
            max=st.none() | st.integers(-5, 10**4000),
            multiple_of=st.integers(-5, 10**4000),
            declared=st.booleans(),
        ),
    ),
    frozen=st.dictionaries(st.text(max_size=3), st.none() | st.floats() | st.lists(st.integers(), max_size=2)),
    contract_version=st.integers(0, 3),
)


@given(CONTRACTS, CONTRACTS)
@settings(max_examples=100, deadline=None)
def test_any_two_contracts_are_compared(base, head):
    for found in judge(base, head):
        assert found.message
    names = [[one.name for one in listed] for listed in (base.inputs, base.outputs)]
    if all(len(set(listed)) == len(listed) for listed in names):
        assert [one.status for one in judge(base, base)] == ["pass"]
