"""A tool wrapped the output in a sequence."""

from pathlib import Path

import onnx

from onnx_ci.artifact import layout


def tamper(artifact: Path) -> None:
    model = onnx.load(str(artifact / "model.onnx"))
    output = model.graph.output[0]
    for node in model.graph.node:
        node.output[:] = ["inner" if name == output.name else name for name in node.output]
    model.graph.node.append(onnx.helper.make_node("SequenceConstruct", ["inner"], [output.name]))
    output.CopyFrom(onnx.helper.make_tensor_sequence_value_info(output.name, onnx.TensorProto.FLOAT, None))
    onnx.save(model, str(artifact / "model.onnx"))
    layout.write_manifest(artifact)
