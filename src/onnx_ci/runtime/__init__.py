"""What a service imports: the check of its inputs against the contract, its session, and the choice of a variant.

Importing it costs numpy and a few milliseconds; ONNX Runtime is imported when the first session is opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnx_ci.runtime.problems import ContractError, Problem
from onnx_ci.runtime.validator import Validator, load_contract, validate

if TYPE_CHECKING:
    from onnx_ci.runtime.router import NoVariantError, Router
    from onnx_ci.runtime.session import ServingSession, SessionRefusedError, open_session

__all__ = [
    "ContractError",
    "NoVariantError",
    "Problem",
    "Router",
    "ServingSession",
    "SessionRefusedError",
    "Validator",
    "load_contract",
    "open_session",
    "validate",
]


def __getattr__(name: str) -> Any:
    # Reading artifacts takes as long to import as all the rest.
    if name in ("Router", "NoVariantError"):
        from onnx_ci.runtime import router

        return getattr(router, name)
    if name in ("ServingSession", "SessionRefusedError", "open_session"):
        from onnx_ci.runtime import session

        return getattr(session, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
