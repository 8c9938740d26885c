"""Whether a committed calibration counts on this leg: made for this contract, provider and these versions. No files."""

from __future__ import annotations

from dataclasses import replace

from onnx_ci.artifact import golden
from onnx_ci.records.calibration import Calibration
from onnx_ci.records.changes import changes
from onnx_ci.records.contract import Contract
from onnx_ci.records.environment import Environment
from onnx_ci.records.model import ParitySpec, TargetSpec
from onnx_ci.records.result import Finding, finding

RULE = "parity.calibration"
_MADE_BY = ("torch", "onnx", "onnxscript")
_RUN_BY = "onnxruntime"


def apply(
    spec: ParitySpec, target: TargetSpec, contract: Contract | None, environment: Environment
) -> tuple[ParitySpec, list[Finding]]:
    """The spec with the calibration that counts on this target, and what is to be said of it; nothing without one.

    A calibration that was made under other conditions loosens nothing: it is told, and the plain budget holds.
    """
    found = spec.calibrations.get(target.name)
    if found is None or contract is None:
        return spec, []
    moved = _moved(found, target, contract, environment)
    if moved:
        message = f"the calibration of {found.date} does not count, the budget is {spec.budget:g}: {'; '.join(moved)}"
        hint = "Run `onnx-ci calibrate` on the new artifacts, and commit the file."
        return spec, [finding(RULE, "warn", "", message, hint=hint, data={"changes": moved})]
    spec = replace(spec, calibration=found)
    budgets = {output: spec.budget_of(output) for output in sorted(found.observed)}
    raised = {output: budget for output, budget in budgets.items() if budget != spec.budget}
    told = (
        ", ".join(f"{output} {budget:.3g}" for output, budget in raised.items()) or f"{spec.budget:g} for all outputs"
    )
    message = f"budget {told}; calibrated on {found.date} in {len(found.runs)} benign runs of {len(found.cases)} cases"
    return spec, [finding(RULE, "pass", "", message, data={"budgets": budgets, "observed": found.observed})]


def versions(contract: Contract, environment: Environment) -> dict[str, str]:
    """What the numbers hang on: the packages that made the file and those that run it, without local versions."""
    made = {name: contract.environment.packages.get(name, "") for name in _MADE_BY}
    run = {name: version for name, version in environment.packages.items() if name.startswith(_RUN_BY)}
    return {name: version.partition("+")[0] for name, version in (made | run).items() if version}


def contract_digest(contract: Contract) -> str:
    """Of what the cases and the outputs depend on: what goldens are held to as well."""
    return golden.digest(golden.promise(contract))


def _moved(found: Calibration, target: TargetSpec, contract: Contract, environment: Environment) -> list[str]:
    moved = [] if found.contract == contract_digest(contract) else ["it was made for another contract"]
    now = {"provider": target.provider, "options": target.options}
    moved += changes({"provider": found.provider, "options": found.options}, now)
    return moved + changes(found.versions, versions(contract, environment))
