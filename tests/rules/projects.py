"""Small projects that break one rule each, and their healthy siblings: found, run through the real workers, judged.

An example is a folder ``<stage>/<rule>/[<which>/]`` with ``broken/`` and ``healthy/``, each a project of its own:

- ``onnx-ci.toml`` and what it names;
- ``expect.toml`` beside a broken one: the findings that must come, each with `rule` and `status` ("pass" where another
  rule must not see it), and, where they matter, `leg` ("export" or a target), `subject`, `message` (a text, or several,
  that it contains), `file`, and `line` (a text that stands in the line it points to);
- ``hooks.py``, not part of the project: ``prepare(project)`` before the export, ``tamper(artifact)`` between export and
  verify, ``tamper_golden(golden)`` once the golden is accepted;
- ``before/`` beside the two: a project that is exported first, and whose outputs are accepted as golden; its latency is
  the base with ``COMPARED_WITH_BEFORE = True`` in ``hooks.py``.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import tomllib

from onnx_ci import lock
from onnx_ci.artifact import golden
from onnx_ci.artifact.layout import Artifact
from onnx_ci.config.load import load
from onnx_ci.records.model import Config
from onnx_ci.records.result import Finding, Result, label
from onnx_ci.worker import job
from onnx_ci.worker.launch import Workers
from tests.fakes.workers import Quiet

HERE = Path(__file__).parent
_TO_COMPARE = 10.0  # seconds; a difference of many times is told at the first look, on a busy machine a little later
_NOT_THE_PROJECTS = ("expect.toml", "hooks.py", "__pycache__")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """A finding that a broken project must give."""

    rule: str
    status: str
    leg: str | None = None
    subject: str | None = None
    message: list[str] = field(default_factory=list)
    file: str | None = None
    line: str | None = None

    def but(self, **changed: Any) -> Expected:
        """The same with something else in it."""
        return replace(self, **changed)


@dataclass(frozen=True, slots=True)
class Example:
    """A folder with a broken project, a healthy one, or both."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.relative_to(HERE).as_posix()

    @property
    def rule(self) -> str:
        stage, rule = self.folder.relative_to(HERE).parts[:2]
        return f"{stage}.{rule}"

    @property
    def broken(self) -> Path:
        return self.folder / "broken"

    @property
    def healthy(self) -> Path:
        return self.folder / "healthy"

    @property
    def before(self) -> Path | None:
        found = self.folder / "before"
        return found if found.is_dir() else None

    def expected(self) -> list[Expected]:
        read = tomllib.loads((self.broken / "expect.toml").read_text(encoding="utf-8"))
        assert read.keys() == {"finding"}, f"{self.name}: expect.toml holds findings only"
        return [Expected(**{**one, "message": _texts(one.get("message", []))}) for one in read["finding"]]


def examples() -> list[Example]:
    """All of them, by name."""
    folders = {found.parent for kind in ("broken", "healthy") for found in HERE.glob(f"*/**/{kind}/")}
    return sorted((Example(folder) for folder in folders), key=lambda one: one.name)


@dataclass(frozen=True, slots=True)
class Played:
    """What a project gave: the result of each leg, in order."""

    root: Path
    results: list[Result]

    def findings(self) -> Iterator[tuple[str, Finding]]:
        """Each with its leg."""
        for result in self.results:
            for found in result.findings:
                yield result.target, found

    def told(self, *statuses: str) -> list[str]:
        """Findings of these statuses as lines, for messages."""
        return [
            f"{leg}: {one.status} {one.rule} [{one.subject}] {one.message} ({one.file}:{one.line})"
            for leg, one in self.findings()
            if one.status in statuses
        ]

    def source(self, found: Finding) -> str:
        """The line of the project's files that a finding points to."""
        if found.file is None or found.line is None:
            return ""
        return (self.root / found.file).read_text(encoding="utf-8").splitlines()[found.line - 1]


@dataclass(frozen=True, slots=True)
class Stage:
    """Where projects are played, one after the other: the folder that both servers work in.

    A project is copied there because what it names is relative to the folder that its worker runs in.
    """

    room: Path
    exporters: Workers
    verifiers: Workers
    known: dict[str | None, tuple[list[Result], Path]] = field(default_factory=dict)

    def play(self, project: Path, out: Path, *, before: Path | None = None) -> Played:
        """Exports and judges a project as `onnx-ci run` does, with its hooks."""
        hooks = _hooks(project)
        if before is not None:
            self._enter(before)
            self._export(self._config(), out / "before", _digest(before))
            for artifact in sorted((out / "before" / "artifacts").iterdir()):
                golden.accept(artifact, out / "golden" / artifact.name)
                _call(hooks, "tamper_golden", out / "golden" / artifact.name)
        self._enter(project)
        _call(hooks, "prepare", self.room)
        compared = getattr(hooks, "COMPARED_WITH_BEFORE", False)
        config = self._config(_TO_COMPARE) if compared else self._config()
        if before is not None:
            shutil.copytree(out / "golden", self.room / config.golden_dir)
        alone = before is None and not hasattr(hooks, "prepare")
        results = self._export(config, out, _digest(project) if alone else None)
        folders = self._folders(config, out)
        artifacts = []
        for model in config.models:
            folder = out / "artifacts" / label(model.name, model.variant)
            if (folder / "manifest.json").exists():
                _call(hooks, "tamper", folder)
                artifacts.append((Artifact(folder), config.job(model)))
        base = out / "before" / "artifacts" if compared else None
        verified = job.verify_artifacts(artifacts, [], folders, self.verifiers, Quiet(), base=base)
        results += [one.result for one in verified]
        return Played(self.room, results)

    def _enter(self, project: Path) -> None:
        for entry in self.room.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        shutil.copytree(project, self.room, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*_NOT_THE_PROJECTS))

    def _config(self, budget: float = 0.05) -> Config:
        config = load(self.room / "onnx-ci.toml", cwd=self.room)
        config = replace(config, latency=replace(config.latency, budget_seconds=budget))
        return replace(config, lock=lock.read(config.lock, self.room))

    def _folders(self, config: Config, out: Path) -> job.Folders:
        folders = job.Folders(root=self.room, out=out, golden=self.room / config.golden_dir)
        folders.prepare()
        return folders

    def _export(self, config: Config, out: Path, digest: str | None) -> list[Result]:
        """Exports what is in the room; equal projects, which differ only in what is done to the artifact, once."""
        if digest in self.known:
            results, artifacts = self.known[digest]
            shutil.copytree(artifacts, out / "artifacts")
            return list(results)
        folders = self._folders(config, out)
        results = [one.result for one in job.export_models(config, config.models, folders, self.exporters, Quiet())]
        if digest is not None and (out / "artifacts").is_dir():
            kept = self.room.with_name("exported") / digest
            shutil.copytree(out / "artifacts", kept)
            self.known[digest] = results, kept
        return list(results)


def matches(played: Played, leg: str, found: Finding, wanted: Expected) -> bool:
    """Whether a finding is the expected one, in all that is said of it."""
    return (
        found.rule == wanted.rule
        and found.status == wanted.status
        and wanted.leg in (None, leg)
        and wanted.subject in (None, found.subject)
        and wanted.file in (None, found.file)
        and all(text in found.message for text in wanted.message)
        and (wanted.line is None or wanted.line in played.source(found))
    )


def unmet(played: Played, wanted: Sequence[Expected]) -> list[Expected]:
    """The expected findings that did not come."""
    found = list(played.findings())
    return [one for one in wanted if not any(matches(played, leg, finding, one) for leg, finding in found)]


def _digest(project: Path) -> str:
    """Of all that belongs to a project."""
    digest = hashlib.sha256()
    for file in sorted(project.rglob("*")):
        if file.is_file() and not set(_NOT_THE_PROJECTS) & {*file.relative_to(project).parts}:
            digest.update(f"{file.relative_to(project)}\0{file.stat().st_size}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def _hooks(project: Path) -> ModuleType | None:
    file = project / "hooks.py"
    if not file.is_file():
        return None
    spec = importlib.util.spec_from_file_location(f"hooks_of_{'_'.join(project.relative_to(HERE).parts)}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _call(hooks: ModuleType | None, name: str, *arguments: Any) -> None:
    hook: Callable[..., None] | None = getattr(hooks, name, None)
    if hook is not None:
        hook(*arguments)


def _texts(given: str | list[str]) -> list[str]:
    return [given] if isinstance(given, str) else given
