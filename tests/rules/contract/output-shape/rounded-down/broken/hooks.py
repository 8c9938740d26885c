"""The promise is another one than the export wrote: half of the steps, rounded down."""

from dataclasses import replace
from pathlib import Path

from onnx_ci.artifact import layout
from onnx_ci.artifact.layout import Artifact


def tamper(artifact: Path) -> None:
    contract = Artifact(artifact).contract()
    (output,) = contract.outputs
    promised = replace(contract, outputs=[replace(output, shape=["batch", "time//2"])])
    layout.write_record(artifact, layout.CONTRACT, promised)
    layout.write_manifest(artifact)
