"""Opens the file of one artifact on one target, as often and in as many ways as the stages ask for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onnx_ci.artifact.layout import Artifact
from onnx_ci.records.model import CPU, TargetSpec
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
        self,
        *,
        model: Path | None = None,
        optimized: bool | Level = True,
        profile: Path | None = None,
        forbid_cpu: bool = False,
    ) -> Session:
        """Opens the file.

        Args:
            model: Another one in its place.
            optimized: As of `open_session`.
            profile: Likewise.
            forbid_cpu: Likewise.

        Raises:
            RuntimeFault: It can't be opened.
        """
        libraries = [Path(path).resolve() for path in self.custom_ops]
        path = model or self.artifact.model
        return open_session(
            path, self.target, custom_ops=libraries, optimized=optimized, profile=profile, forbid_cpu=forbid_cpu
        )

    def on_cpu(self) -> Opener:
        """The same on the CPU provider."""
        return replace(self, target=TargetSpec(name=CPU, provider=CPU, threads=self.target.threads))

    def part(self, *, optimized: bool | Level = True) -> Callable[[bytes], Session]:
        """What opens a changed copy of the file, or a part of it."""
        libraries = [Path(path).resolve() for path in self.custom_ops]
        data = self.artifact.model.parent
        return lambda copy: open_session(copy, self.target, custom_ops=libraries, optimized=optimized, data=data)

    def inner(self, *, optimized: bool | Level = True) -> InnerScores:
        """What looks inside the graph, in the way that `open` with the same argument runs it."""
        return InnerScores(self.artifact.model, self.part(optimized=optimized))
