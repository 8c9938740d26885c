"""One case in which outputs fail: what is at fault, by a ladder from the module to the runtime, and at which node."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir

from onnx_ci.artifact import layout
from onnx_ci.artifact.tensors import Value
from onnx_ci.divergence import repro, session, tell
from onnx_ci.divergence.dataflow import Dataflow, NotExtracted, Part
from onnx_ci.divergence.locate import Located
from onnx_ci.divergence.session import CpuSession
from onnx_ci.divergence.tell import Assumption, Diagnosis, Rung
from onnx_ci.export import blame, program
from onnx_ci.export.diverge import How, diverge
from onnx_ci.export.inner import NotReplayed, Replay
from onnx_ci.export.seen import Seen
from onnx_ci.numerics import divergence
from onnx_ci.records.cases import Case
from onnx_ci.records.model import CPU, TargetSpec
from onnx_ci.records.result import Finding, Status

_SAME = 1e-7
"""relL2 of two runs in float64 that compute one function, be it in another order."""
_NARROWED = ("contract.range", "contract.static-dim", "contract.tied-dim")


class Fault:
    """One case with outputs that fail."""

    def __init__(self, seen: Seen, case: Case, outputs: Sequence[str]) -> None:
        self._seen, self._case, self._outputs = seen, case, list(outputs)
        self._feeds = seen.values(case, "input")
        self._model = onnx.load(str(seen.folder / layout.MODEL), load_external_data=False)
        self._flow = Dataflow(self._model)
        self._unseen = ""
        try:
            self._replay: Replay | None = Replay(seen.subject, seen.graph, seen.inputs(case))
        except NotReplayed as error:
            self._replay, self._unseen = None, str(error)

    def told(self, targets: Sequence[TargetSpec], repros: Path | None) -> Finding | None:
        """None where no more is wrong than an index that rounding may turn: the target's own job explains that."""
        rung, located, culprits = self._climb()
        shown = located is not None and located.alone is not None and located.alone.gap.divergent
        if not shown and self._seen.are_exact(self._case, self._outputs):
            return None
        diagnosis = Diagnosis(
            outputs=self._outputs,
            case=self._case.name,
            rung=rung,
            located=located,
            culprits=culprits,
            unseen=self._unseen,
            assumed=self._assumed() if rung == "capture" else None,
        )
        diagnosis = blame.removed(diagnosis, self._seen.graph)
        promised = any(target.provider == CPU for target in targets)
        status: Status = "fail" if promised and rung != "runtime" else "warn"
        status = status if located is None or located.is_cause else "pass"
        made = tell.told(diagnosis, self._flow, self._seen.graph.source_map, status)
        if repros is not None:
            diagnosis = replace(diagnosis, repro=self._reproduced(made, diagnosis, repros))
        return tell.told(diagnosis, self._flow, self._seen.graph.source_map, made.status)

    def _assumed(self) -> Assumption | None:
        """What capture took for granted and is not so in this case: a branch, or a size that became a constant."""
        dims = self._case.dims
        for item in self._seen.graph.restrictions:
            if any(all(dims.get(name) == size for name, size in sizes.items()) for sizes in item.excluded):
                place = item.place
                return Assumption(item.text, place.file if place else None, place.line if place else None)
        narrowed = [one for one in self._seen.graph.findings if one.rule in _NARROWED and one.status == "fail"]
        return Assumption(f"what {narrowed[0].rule} tells", narrowed[0].file, narrowed[0].line) if narrowed else None

    def _reproduced(self, found: Finding, diagnosis: Diagnosis, repros: Path) -> str:
        """Writes the folder that shows it: the node alone where that is wrong alone, else all that makes the output."""
        output, rung = self._outputs[0], diagnosis.rung
        alone = diagnosis.located.alone if diagnosis.located else None
        folder = repros / repro.plain(output)
        if rung == "capture":
            return ""
        try:
            if alone is None or not alone.gap.divergent:
                part = self._whole(output, optimized=rung == "runtime")
            else:
                part = alone.part
            problem = repro.write(folder, part, title=found.message, optimized=rung == "runtime")
        except (NotExtracted, ValueError):  # onnx's own for a model that protobuf can't hold
            return ""
        return "" if problem else f"{repro.FOLDER}/{repros.name}/{folder.name}"

    def _whole(self, output: str, *, optimized: bool) -> Part:
        region, expected = self._flow.region(output, ()), self._seen.values(self._case, "output")[output]
        made = self._run(optimized=optimized) or {}
        return Part(
            model=self._flow.submodel(region, self._feeds, expected, self._seen.folder),
            inputs={name: self._feeds[name] for name in region.inputs},
            expected=expected,
            actual=made.get(output),
        )

    def _climb(self) -> tuple[Rung, Located | None, list[str]]:
        """The ladder, from the module on: the first rung that fails, and what it tells."""
        try:
            if self._replay is not None and self._differs(self._replay):
                return "capture", None, []
        except NotReplayed as error:  # a size that the program does not take, and the module does
            self._unseen = f"the captured program stops: {error}"
            return "capture", None, []
        if self._fails(self._run(optimized=False)):
            located = self._locate()
            if located is not None and not located.is_cause:
                return "translation", located, []
            return "translation" if self._fails(self._as_translated()) else "optimizer", located, []
        return "runtime", None, self._optimizers()

    def _fails(self, actual: Mapping[str, Value] | None) -> bool:
        """A rung that can't be stood on counts as one that fails from where it is not told."""
        return actual is None or self._seen.fails(self._case, actual, self._outputs)

    def _differs(self, replay: Replay) -> bool:
        """Whether the captured program is another function; one that only rounds elsewhere agrees in float64."""
        names = [name for name in self._outputs if name in replay.sizes()]
        if not self._fails(replay.expected(names)):
            return False
        truth = {} if self._case.unoracled else self._seen.values(self._case, "oracle")
        exact = replay.exact([name for name in names if name in truth])
        gaps = [divergence.function_gap(name, exact[name], truth[name], _SAME) for name in exact]
        return not gaps or any(one.divergent for one in gaps)

    def _run(self, **how: Any) -> dict[str, Value] | None:
        try:
            return self._seen.open(**how).run(self._feeds)
        except Exception:  # ONNX Runtime's errors have no common base
            return None

    def _as_translated(self) -> dict[str, Value] | None:
        """The outputs of the graph before the exporter's own optimizer."""
        graph, subject = self._seen.graph, self._seen.subject
        if graph.captured is None or graph.captured.onnx_program is not None or not subject.options.optimize:
            return None
        try:
            model = program.translate(graph.captured, replace(subject.options, optimize=False), {}).model
            program.fix_outputs(model)
            with tempfile.TemporaryDirectory(prefix="onnx-ci-") as folder:
                path = Path(folder) / layout.MODEL
                ir.save(model, str(path), external_data=layout.DATA)
                raw = CpuSession(path, optimized=False)
            by_path = {leaf.path: self._feeds[name] for name, leaf in graph.inputs.items()}
            feeds = {name: by_path[leaf.path] for name, leaf in zip(raw.inputs, subject.tensors, strict=True)}
            made = list(raw.run(feeds).values())
        except Exception:  # whatever it says: then it can't be told apart
            return None
        places = sorted(graph.outputs.values())
        return {name: made[places.index(at)] for name, at in graph.outputs.items()}

    def _optimizers(self) -> list[str]:
        names = session.applied_optimizers(lambda level: self._seen.open(log_level=level))

        def right(without: Sequence[str]) -> bool:
            return not self._fails(self._run(without=without))

        return session.culprit(names, right)

    def _locate(self) -> Located | None:
        if self._replay is None:
            return None
        try:
            how = How(budget=self._seen.spec.budget, custom_ops=self._seen.custom_ops)
            return diverge(self._replay, self._seen.folder / layout.MODEL, self._feeds, self._outputs, how)
        except NotReplayed as error:
            self._unseen = str(error)
        except Exception as error:  # of ONNX Runtime, which has no common base: a value that can't be an output
            self._unseen = " ".join(str(error).split())[:200]
        return None
