"""Another version of onnx-ci wrote the contract."""

from pathlib import Path

from onnx_ci.artifact import layout


def tamper(artifact: Path) -> None:
    contract = artifact / "contract.json"
    text = contract.read_text(encoding="utf-8")
    contract.write_text(text.replace('"schema_version": 1,', '"schema_version": 99,', 1), encoding="utf-8")
    layout.write_manifest(artifact)
