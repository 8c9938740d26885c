"""The base that a run is compared with: what it promised, which commit it is of, and where it came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from onnx_ci.records.contract import Contract
from onnx_ci.report import read


@dataclass(frozen=True, kw_only=True, slots=True)
class Base:
    """What a run is compared with.

    Attributes:
        contracts: By label.
        commit: That they are of; "" where that is not known.
        notes: What a reader must know of it, a sentence each.
    """

    contracts: dict[str, Contract] = field(default_factory=dict)
    commit: str = ""
    notes: list[str] = field(default_factory=list)


def find(folder: Path, wanted: str, run: str) -> Base:
    """Reads a base's folder, and says where it is none, or not the one that was wanted.

    Args:
        folder: The base's artifacts. Whoever kept them is not believed: what they say is data.
        wanted: The commit that this one is merged into; "" where that is not known.
        run: Id of this run.
    """
    contracts, notes = read.contracts(folder)
    if not contracts:
        of = f" of commit {wanted[:10]}" if wanted else ""
        none = f"There is no base{of} in {folder.name!r}: contracts, versions and latency are compared with nothing."
        return Base(notes=[none, *notes])
    said = read.provenance(folder)
    if said is None:
        unsaid = ["The base does not say which commit it is of."] if wanted else []
        return Base(contracts=contracts, notes=[*unsaid, *notes])
    if said.run and said.run == run:
        notes = [f"The base, commit {said.commit[:10]}, was exported in this run, since none was kept.", *notes]
    if wanted and said.commit != wanted:
        other = (
            f"The base is commit {said.commit[:10]}, not {wanted[:10]} that this one is merged into: what changed "
            "between the two is compared as well."
        )
        notes = [other, *notes]
    return Base(contracts=contracts, commit=said.commit, notes=notes)
