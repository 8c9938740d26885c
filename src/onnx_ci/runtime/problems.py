"""What is wrong with a service's inputs, told to its developer: all of it at once."""

from __future__ import annotations

from collections.abc import Sequence

from onnx_ci.records.base import record


@record
class Problem:
    """One thing that is wrong with one input.

    Attributes:
        input: Its name; empty where the inputs as a whole are meant.
        axis: From 0; None where no axis is meant.
        message: What came, what is allowed, and what to do.
        dim: What the contract calls the axis; empty for a fixed size.
        item: Of a list of tensors; None elsewhere.
    """

    input: str
    axis: int | None
    message: str
    dim: str = ""
    item: int | None = None

    def __str__(self) -> str:
        where = self.input + (f"[{self.item}]" if self.item is not None else "")
        if self.axis is not None:
            where += f", axis {self.axis}" + (f" ({self.dim})" if self.dim else "")
        return f"{where}: {self.message}" if where else self.message


class ContractError(ValueError):
    """Inputs that the model does not take.

    Attributes:
        model: The model's name, with its variant.
        problems: All that is wrong, by input in the file's order.
    """

    def __init__(self, model: str, problems: Sequence[Problem]) -> None:
        super().__init__(model, problems)  # args, so that it can be pickled from process to process
        self.model = model
        self.problems = list(problems)

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return f"{self.model} does not take these inputs: {self.problems[0]}"
        lines = [f"{self.model} does not take these inputs ({len(self.problems)} problems):"]
        return "\n  - ".join([*lines, *map(str, self.problems)])
