"""What a model accepts is shown: its inputs, their ranges, and which of these nobody declared."""

from dataclasses import replace

import pytest
from tests.fakes.results import healthy
from tests.golden.test_reports import CONTEXT

from onnx_ci.records.contract import Contract, DimContract, TensorContract
from onnx_ci.records.environment import Environment
from onnx_ci.report import markdown, page
from onnx_ci.report.merge import merge
from onnx_ci.report.promises import Promise, promises


def contract(*inputs: TensorContract, dims: dict[str, DimContract], **frozen: object) -> Contract:
    return Contract(
        schema_version=1,
        model="classifier",
        variant=None,
        contract_version=1,
        inputs=list(inputs),
        outputs=[],
        dims=dims,
        batch="independent",
        strategy="own",
        exporter="dynamo",
        opset=20,
        ir_version=10,
        domains={},
        environment=Environment(onnx_ci="", python="", platform="", cpu="", cores=1),
        frozen=frozen,
    )


@pytest.fixture
def results():
    images = TensorContract(name="images", dtype="float32", shape=["batch", 3, "height", "2*height"])
    free = TensorContract(name="odd", dtype="int64", shape=None)
    dims = {
        "batch": DimContract(min=1, max=32, declared=True),
        "height": DimContract(min=6, max=None, multiple_of=2),
    }
    export, *others = healthy("classifier", 4.05, 6.31)
    return [replace(export, contract=contract(images, free, dims=dims, gain=2.0)), *others]


def test_each_input_is_told_with_its_ranges_and_what_was_frozen(results):
    assert promises(results) == [
        Promise(
            model="classifier",
            name="images",
            form="float32 [batch, 3, height, 2*height]",
            sizes="batch 1 to 32, height 6 and more, multiples of 2 (captured)",
        ),
        Promise(model="classifier", name="odd", form="int64 of any rank", sizes=""),
        Promise(model="classifier", name="gain", form="", sizes="always 2.0: frozen into the file"),
    ]


def test_the_comment_and_the_page_show_it(results):
    report = merge(results, None, [])
    comment = markdown.summary(report, CONTEXT).replace("\N{NO-BREAK SPACE}", " ")
    assert "What 1 model accepts" in comment
    assert "height 6 and more, multiples of 2 (captured)" in comment.replace("\\", "")
    assert "height 6 and more, multiples of 2 (captured)" in page.render(report, CONTEXT)


def test_a_name_from_outside_stays_text(results):
    export, *others = results
    odd = replace(export.contract.inputs[0], name="<img src=x>@all", shape=["<b>", "no such (expression"])
    report = merge([replace(export, contract=replace(export.contract, inputs=[odd])), *others], None, [])
    assert "<img" not in page.render(report, CONTEXT)
    assert "`<img src=x>@all float32 [<b>, no such (expression]`" in markdown.summary(report, CONTEXT)


def test_without_contracts_there_is_nothing_to_show():
    assert promises(healthy("classifier", 4.05, 6.31)) == []
