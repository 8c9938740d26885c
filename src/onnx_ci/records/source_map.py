"""Where each value of a graph came from: ``source_map.json``, kept out of the shipped file."""

from __future__ import annotations

from dataclasses import field

from onnx_ci.records.base import record

SCHEMA_VERSION = 1
"""Version of source maps. 1: the first."""


@record
class Origin:
    """The origin of one node's outputs.

    Attributes:
        node: Name of the ONNX node.
        op: Its operator, with the domain where it is not ai.onnx.
        file: Deepest frame inside the repository, relative to its root.
        line: From 1.
        module: Path of the submodule: "layer1.0.conv1".
        fx: Name of the FX node.
        rewrite: The rule that rewrote it, if one did.
    """

    node: str
    op: str
    file: str | None = None
    line: int | None = None
    module: str = ""
    fx: str = ""
    rewrite: str = ""


@record
class SourceMap:
    """Origins by the name of the ONNX value that the node makes."""

    schema_version: int
    values: dict[str, Origin] = field(default_factory=dict)
