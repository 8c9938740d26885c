"""Stage contract: the validator that a service imports takes the inputs of every case that PyTorch took."""

from __future__ import annotations

from collections.abc import Sequence

from onnx_ci.artifact.layout import Artifact, ArtifactError
from onnx_ci.records.cases import Case
from onnx_ci.records.contract import Contract
from onnx_ci.records.result import Finding, finding
from onnx_ci.runtime import Problem, Validator
from onnx_ci.verify.parity import read_inputs

_SHOWN = 3


def judge(artifact: Artifact, contract: Contract, cases: Sequence[Case]) -> Finding:
    """Whether the validator takes the inputs of every case that PyTorch took."""
    validator = Validator(contract)
    names = [item.name for item in contract.inputs]
    refused: dict[str, list[Problem]] = {}
    taken = 0
    for case in cases:
        if case.refused:
            continue
        try:
            given = read_inputs(artifact, case)
        except ArtifactError:
            continue  # parity.not-told says so
        problems = validator.problems({name: given[name] for name in names if name in given})
        if problems:
            refused[case.name] = problems
        taken += not problems
    rule = "contract.validator"
    if not refused:
        if not taken:
            return finding(rule, "skip", "", "there is no case to hold against the contract")
        return finding(rule, "pass", "", f"the validator for services takes the inputs of all {taken} cases")
    told = "; ".join(f"{name}: {problems[0]}" for name, problems in list(refused.items())[:_SHOWN])
    # A range that nobody declared came from the capture: that a case leaves it may be the range's fault.
    guessed = all(_is_guess(problem, contract) for problems in refused.values() for problem in problems)
    return finding(
        rule,
        "warn" if guessed else "fail",
        ", ".join(list(refused)[:_SHOWN]),
        f"the validator for services refuses the inputs of {len(refused)} of {taken + len(refused)} cases: {told}",
        hint="Declare what production sends (dtype, shape, dims with min, max and multiple_of), or correct the case.",
        data={"cases": {name: [str(problem) for problem in problems] for name, problems in refused.items()}},
    )


def _is_guess(problem: Problem, contract: Contract) -> bool:
    dim = contract.dims.get(problem.dim)
    return dim is not None and not dim.declared
