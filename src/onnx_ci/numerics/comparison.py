"""What the first pass of parity leaves of a case: figures and broken layers, no arrays."""

from __future__ import annotations

from onnx_ci.numerics.figures import Measures
from onnx_ci.records.base import record
from onnx_ci.records.cases import Case
from onnx_ci.records.result import Status


@record
class Fault:
    """A broken layer of one output in one case; `status` is "warn" where PyTorch itself is not sure."""

    rule: str
    text: str
    status: Status = "fail"


@record
class ExactFigures:
    """An exact output: elements that differ, and those whose difference is explained by a tie.

    Attributes:
        differ: Elements that differ without an explanation; `at`, `expected` and `actual` show the first.
        max_abs: Largest difference, for numbers.
    """

    count: int
    differ: int
    explained: int
    at: list[int]
    expected: str
    actual: str
    max_abs: float | None
    note: str


@record
class OutputComparison:
    """One output of one case.

    Attributes:
        output: Its name; an item of a sequence is "name[2]".
        base: The name without the item.
        given: The shape that the target gave; None where it gave no tensor.
        fault: The first broken layer; then there are no figures.
        floats: For float dtypes.
        exact: For all others.
        nans: NaN in PyTorch's own output.
        unoracled: Why a float output is judged against PyTorch itself; empty when the oracle is there.
        over_default: Largest error over what atol and rtol by dtype allow (1 is the limit); for unoracled outputs.
        over_manual: The same for the manual tolerance of the config.
        manual_at: Where that is.
        beyond: Share of elements over the elementwise limit of this case.
        left_out: Elements left out, since an explained flip chose them.
        varies: Whether two runs of one session gave different bits; the worse one stands here.
        unsure: Whether PyTorch itself gave another answer when called twice.
    """

    output: str
    base: str
    dtype: str
    shape: list[int]
    given: list[int] | None = None
    fault: Fault | None = None
    floats: Measures | None = None
    exact: ExactFigures | None = None
    nans: int = 0
    unoracled: str = ""
    over_default: float | None = None
    over_manual: float | None = None
    beyond: float = 0.0
    left_out: int = 0
    varies: bool = False
    unsure: bool = False


@record
class CaseComparison:
    """All outputs of one case; with `stopped`, what the runtime said instead of giving any."""

    case: Case
    outputs: list[OutputComparison]
    names: str = ""
    stopped: str = ""
