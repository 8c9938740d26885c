"""What a service imports: the check of its inputs against the contract, and the choice among a model's variants.

Importing it costs numpy and a few milliseconds; ONNX Runtime is imported when the first session is opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnx_ci.runtime.problems import ContractError, Problem
from onnx_ci.runtime.validator import Validator, load_contract, validate

if TYPE_CHECKING:
    from onnx_ci.runtime.router import NoVariantError, Router

__all__ = ["ContractError", "NoVariantError", "Problem", "Router", "Validator", "load_contract", "validate"]


def __getattr__(name: str) -> Any:
    if name in ("Router", "NoVariantError"):  # reading artifacts takes as long to import as all the rest
        from onnx_ci.runtime import router

        return getattr(router, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
