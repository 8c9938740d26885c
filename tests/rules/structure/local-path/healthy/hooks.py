"""A tool wrote into the file where it is from, and no path of a machine."""

from pathlib import Path

import onnx

from onnx_ci.artifact import layout


def tamper(artifact: Path) -> None:
    model = onnx.load(str(artifact / "model.onnx"))
    model.doc_string = "Trained by https://example.org/training/main.py; 3/4 of the data; see docs/model.md."
    model.producer_name = "a/b"
    entry = model.metadata_props.add()
    entry.key, entry.value = "licence", "MIT and/or Apache-2.0"
    onnx.save(model, str(artifact / "model.onnx"))
    layout.write_manifest(artifact)
