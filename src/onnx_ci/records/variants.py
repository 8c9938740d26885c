"""The variants of one model, for who picks one of them by its sizes: ``<model>.variants.json`` beside their folders."""

from __future__ import annotations

from dataclasses import field

from onnx_ci.records.base import record

SCHEMA_VERSION = 1
"""Version of variant lists. 1: the first."""


@record
class Variant:
    """One artifact of the model.

    Attributes:
        folder: The name of its folder, beside the list itself.
        artifact: The artifact's digest: the sha256 of its manifest, which has those of all its other files.
        contract: sha256 of the folder's ``contract.json``.
        inputs: Shape by input as the contract has it; None for an unknown rank.
    """

    variant: str
    folder: str
    artifact: str
    contract: str
    inputs: dict[str, list[int | str] | None] = field(default_factory=dict)


@record
class VariantList:
    """All variants of a model, in the config's order."""

    schema_version: int
    model: str
    variants: list[Variant]
