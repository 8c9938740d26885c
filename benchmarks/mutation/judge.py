"""Puts a mutant in the place of an artifact's file and asks the verify job, and the usual checks, about it."""

from __future__ import annotations

import contextlib
import io
import itertools
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from benchmarks.mutation import usual
from benchmarks.mutation.feeds import Feeds, drawn
from benchmarks.mutation.mutant import Mutant

from onnx_ci.artifact import layout, tensors
from onnx_ci.artifact.layout import Artifact
from onnx_ci.records.cases import Case
from onnx_ci.records.messages import VerifyRequest
from onnx_ci.records.model import LatencySpec
from onnx_ci.records.result import Finding, Result
from onnx_ci.twin import Twin, Unoracled
from onnx_ci.verify.job import verify

_INPUTS = 100
_LARGEST = 1 << 14
"""Elements of the inputs at sizes inside the declared range."""
_LARGEST_AT_ENDS = 1 << 18
_NO_TIME = LatencySpec(budget_seconds=0.001)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What became of one mutant.

    Attributes:
        verdict: "structure": the file does not load; "caught"; "equal": the same function, bit by bit; "survived".
        rules: What failed, sorted.
        allclose: Whether rtol 1e-4 with atol 1e-5 would have caught it; likewise `cosine` and `exporter`.
    """

    architecture: str
    kind: str
    node: str
    operator: str
    what: str
    verdict: str
    rules: list[str] = field(default_factory=list)
    allclose: bool = False
    cosine: bool = False
    exporter: bool = False
    seconds: float = 0.0


class Bench:
    """One exported architecture.

    Args:
        exported: Its artifact, which stays as it is.
        folder: Where a copy may be made and changed.
        seed: Of the inputs that survivors are compared on.

    Raises:
        ValueError: The gate fails the sound file: then nothing is learnt from a faulty one.
    """

    def __init__(self, exported: Artifact, folder: Path, seed: int) -> None:
        self.name = exported.folder.name
        shutil.copytree(exported.folder, folder)
        self.artifact, self._seed = Artifact(folder), seed
        self.model = onnx.load(str(exported.model))
        self._sound = Twin(self.model)
        self._sound_outputs: dict[int, Mapping[str, np.ndarray]] = {}
        job = exported.job()
        self._request = VerifyRequest(
            artifact=str(folder.resolve()), target=job.targets[0], job=replace(job, latency=_NO_TIME)
        )
        cases = [case for case in exported.cases().cases if not case.refused]
        self._cases = [(case, self._read(case, "input"), self._read(case, "output")) for case in cases]
        # The export ran on the first; it has this origin only where the user gave none.
        self._example = next((case for case in cases if case.origin == "example"), cases[0])

        alarms = self._broken()
        if alarms:
            raise ValueError(f"{self.name} fails without any fault in it: {alarms[0].message}")

    def verify(self) -> Result:
        """The product's own verdict on what lies in the folder now; the cases that it names in a log are not shown."""
        with contextlib.redirect_stderr(io.StringIO()):
            return verify(self._request, lambda stage: None)

    def judge(self, mutant: Mutant) -> Judged:
        """Writes the mutant, asks everyone, and looks closer at one that got through."""
        start = time.perf_counter()
        faulty = mutant.of(self.model)
        onnx.save(faulty, str(self.artifact.model))
        layout.write_manifest(self.artifact.folder)
        broken = self._broken()
        rules = sorted({one.rule for one in broken})
        if any(one.stage == "structure" for one in broken):
            verdict = "structure"
        elif rules:
            verdict = "caught"
        else:
            verdict = "equal" if self._equal(faulty) else "survived"
        allclose, cosine, exporter = (True, True, True) if verdict == "structure" else self._usual()
        return Judged(
            architecture=self.name,
            kind=mutant.kind,
            node=mutant.node,
            operator=mutant.operator,
            what=mutant.what,
            verdict=verdict,
            rules=rules,
            allclose=allclose,
            cosine=cosine,
            exporter=exporter,
            seconds=round(time.perf_counter() - start, 3),
        )

    def _broken(self) -> list[Finding]:
        return [one for one in self.verify().findings if one.status in ("fail", "error")]

    def _usual(self) -> tuple[bool, bool, bool]:
        """Whether the usual checks catch it: two of them on all of the gate's cases, the exporter's on the example."""
        options = onnxruntime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 4, 1
        session = onnxruntime.InferenceSession(str(self.artifact.model), options, providers=["CPUExecutionProvider"])
        names = [one.name for one in session.get_outputs()]
        close = alike = verified = True
        for case, inputs, expected in self._cases:
            try:
                feeds = {one.name: inputs[one.name] for one in session.get_inputs()}
                actual = dict(zip(names, session.run(None, feeds), strict=True))
            except Exception:  # ONNX Runtime's errors have no common base; each of the three would stop here
                close = alike = False
                verified = verified and case != self._example
                continue
            close = close and usual.allclose(expected, actual)
            alike = alike and usual.cosine(expected, actual)
            if case == self._example:
                verified = verified and usual.exporter(list(expected.values()), list(actual.values()))
        return not close, not alike, not verified

    def _equal(self, faulty: onnx.ModelProto) -> bool:
        """Whether both are the same function in float64, bit by bit, on all inputs tried."""
        twin = Twin(faulty)
        try:
            return all(self._agree(twin, at, feeds) for at, feeds in enumerate(self._inputs()))
        except Unoracled:
            return False

    def _inputs(self) -> Iterator[Feeds]:
        """A hundred inputs, the same each time: the gate's own cases but for the largest, then drawn ones."""
        rng = np.random.default_rng(self._seed)
        own = (feeds for _, feeds, _ in self._cases if sum(one.size for one in feeds.values()) <= _LARGEST_AT_ENDS)
        contract = self.artifact.contract()
        made = drawn(contract.inputs, contract.dims, rng, inside=_LARGEST, at_ends=_LARGEST_AT_ENDS)
        return itertools.islice(itertools.chain(own, made), _INPUTS)

    def _agree(self, twin: Twin, at: int, feeds: Feeds) -> bool:
        faulty = twin.run(feeds).outputs
        if at not in self._sound_outputs:
            self._sound_outputs[at] = self._sound.run(feeds).outputs
        sound = self._sound_outputs[at]
        return sound.keys() == faulty.keys() and all(_same_bits(sound[name], faulty[name]) for name in sound)

    def _read(self, case: Case, kind: tensors.Kind) -> Mapping[str, np.ndarray]:
        return tensors.read_values(self.artifact.case_folder(case.index), kind)


def _same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
