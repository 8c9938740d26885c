"""One change of a contract, and whom it breaks."""

from __future__ import annotations

from typing import Literal, get_args

from onnx_ci.records.base import record

Kind = Literal["breaking", "may break", "compatible"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@record
class Change:
    """What changed.

    Attributes:
        kind: "breaking" fails a service that did all right with the base; "may break" is for its owners to tell.
        subject: The input, output or dim; else the contract's field.
        message: What it was and what it is, in one sentence.
    """

    kind: Kind
    subject: str
    message: str


def breaking(subject: str, message: str) -> Change:
    """A change that fails a service."""
    return Change(kind="breaking", subject=subject, message=message)


def may_break(subject: str, message: str) -> Change:
    """A change of which only its users can tell."""
    return Change(kind="may break", subject=subject, message=message)


def compatible(subject: str, message: str) -> Change:
    """A change that nobody minds."""
    return Change(kind="compatible", subject=subject, message=message)
