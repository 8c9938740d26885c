"""Opens the file of one artifact on one target, as often and in as many ways as the stages ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from onnx_ci.artifact.layout import Artifact
from onnx_ci.records.model import TargetSpec
from onnx_ci.verify.scores import InnerScores
from onnx_ci.verify.session import Level, Session, open_session


@dataclass(frozen=True, slots=True)
class Opener:
    """What every session of a leg shares.

    Attributes:
        custom_ops: Libraries of operators, relative to the project's root, which is where the worker runs.
    """

    artifact: Artifact
    target: TargetSpec
    custom_ops: Sequence[str] = ()

    def open(
        self, *, model: Path | None = None, optimized: bool | Level = True, profile: Path | None = None
    ) -> Session:
        """Opens the file.

        Args:
            model: Another one in its place.
            optimized: As of `open_session`.
            profile: Likewise.

        Raises:
            RuntimeFault: It can't be opened.
        """
        libraries = [Path(path).resolve() for path in self.custom_ops]
        path = model or self.artifact.model
        return open_session(path, self.target, custom_ops=libraries, optimized=optimized, profile=profile)

    def inner(self, *, optimized: bool | Level = True) -> InnerScores:
        """What looks inside the graph, in the way that `open` with the same argument runs it."""
        libraries = [Path(path).resolve() for path in self.custom_ops]
        data = self.artifact.model.parent
        return InnerScores(
            self.artifact.model,
            lambda copy: open_session(copy, self.target, custom_ops=libraries, optimized=optimized, data=data),
        )
