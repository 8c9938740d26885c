"""Names the node at which a file first becomes another function than the module, by its twin in float64."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import onnx

from onnx_ci.artifact import layout
from onnx_ci.divergence import tell
from onnx_ci.divergence.dataflow import Dataflow
from onnx_ci.divergence.locate import Located
from onnx_ci.divergence.tell import Diagnosis
from onnx_ci.export import blame
from onnx_ci.export.diverge import diverge, in_float64
from onnx_ci.export.inner import NotReplayed, Replay
from onnx_ci.export.seen import Seen
from onnx_ci.export.translation import Wrong
from onnx_ci.records.result import Finding
from onnx_ci.twin import Unoracled


def named(seen: Seen, wrong: Sequence[Wrong], known: Collection[str]) -> Iterator[Finding]:
    """One finding for each case and graph that is wrong; none where no inner value tells.

    Args:
        seen: The subject, its graph and its file.
        wrong: By `translation.judge`.
        known: Outputs for which a node is named already.
    """
    for one in wrong:
        left = [name for name in one.outputs if name not in known]
        located = _located(seen, replace(one, outputs=left)) if left else None
        if located is not None:
            diagnosis = Diagnosis(outputs=left, case=one.case.name, rung=one.rung, located=located)
            flow = Dataflow(onnx.load(str(seen.folder / layout.MODEL), load_external_data=False))
            yield tell.told(blame.removed(diagnosis, seen.graph), flow, seen.graph.source_map)


def _located(seen: Seen, wrong: Wrong) -> Located | None:
    file, feeds = seen.folder / layout.MODEL, seen.values(wrong.case, "input")
    try:
        replay = Replay(seen.subject, seen.graph, seen.inputs(wrong.case))
        return diverge(replay, file, feeds, wrong.outputs, in_float64(wrong.file, feeds, wrong.before))
    except (NotReplayed, Unoracled):  # the finding on the output stands without it
        return None
