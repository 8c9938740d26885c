"""A tool sends the output through half precision: too little for a tolerance to notice, and it brings no gain."""

from pathlib import Path

import onnx
from onnx import TensorProto, helper

from onnx_ci.artifact import layout


def tamper(artifact: Path) -> None:
    model = onnx.load(str(artifact / "model.onnx"), load_external_data=False)
    last = model.graph.node[-1]
    name = last.output[0]
    last.output[0] = "whole"
    model.graph.node.append(helper.make_node("Cast", ["whole"], ["half"], name="narrow", to=TensorProto.FLOAT16))
    model.graph.node.append(helper.make_node("Cast", ["half"], [name], name="widen", to=TensorProto.FLOAT))
    onnx.save(model, str(artifact / "model.onnx"))
    layout.write_manifest(artifact)
