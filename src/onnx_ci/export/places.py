"""Which frames are the user's own code, and how a line of it is named in a report."""

from __future__ import annotations

import inspect
import itertools
import re
import sysconfig
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import torch

from onnx_ci.records.model import ModelSpec
from onnx_ci.records.result import Finding

_OURS = Path(__file__).resolve().parents[1].as_posix() + "/"
_LIBRARIES = tuple({sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib")})
_FOREIGN_PARTS = ("/site-packages/", "/dist-packages/")
_TRACED_LINE = re.compile(r"^(?P<file>.+)\((?P<line>\d+)\): ", re.MULTILINE)
_FRAME_LINE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')

_DEFINES = ("class ", "def ", "async def ")
_OF_A_CLASS = frozenset({"contract.state", "export.training-mode"})
_OF_FORWARD = frozenset(
    {
        "contract.batch-mixed",
        "contract.frozen-argument",
        "contract.outputs",
        "contract.vanished-input",
        "contract.vanished-output",
        "export.stopped",
    }
)


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the user's code.

    Attributes:
        file: Relative to the repository's root, with forward slashes; None for a file outside of it.
        line: From 1.
        shown: How a message names it: never with an absolute path.
    """

    file: str | None
    line: int
    shown: str


def spot(place: Place | None) -> dict[str, Any]:
    """The file and line of a finding; nothing where none is known, or it lies outside of the repository."""
    return {"file": place.file, "line": place.line} if place and place.file else {}


@dataclass(frozen=True, slots=True)
class Places:
    """Finds user code. `root` is the config's folder; `repository` the folder that holds ``.git``, if one does."""

    root: Path
    repository: Path

    @classmethod
    def of(cls, root: Path) -> Places:
        """Looks for the repository above the config's folder."""
        root = root.resolve()
        above = [folder for folder in (root, *root.parents) if (folder / ".git").exists()]
        return cls(root, above[0] if above else root)

    def relative(self, file: str) -> str | None:
        """The path inside the repository, or None."""
        try:
            return Path(file).resolve().relative_to(self.repository).as_posix()
        except (ValueError, OSError):
            return None

    def deepest(self, frames: Iterable[tuple[str, int]]) -> Place | None:
        """The innermost user frame of (file, line) pairs, outermost first; the repository's own before other code."""
        inside: Place | None = None
        outside: Place | None = None
        for file, line in frames:
            if not _is_user_code(file):
                continue
            relative = self.relative(file)
            if relative is not None:
                inside = Place(relative, line, f"{relative}:{line}")
            else:
                outside = Place(None, line, f"{Path(file).name}:{line}")
        return inside or outside

    def of_error(self, error: BaseException) -> Place | None:
        """The user's line in an exception's traceback, or in those of its causes, the root cause first."""
        for link in reversed(list(chain(error))):
            found = self.deepest(_traceback_frames(link.__traceback__))
            if found:
                return found
        return None

    def of_definition(self, thing: Any) -> Place | None:
        """The user's line on which a class or a function is defined, below its decorators."""
        thing = inspect.unwrap(thing) if callable(thing) else thing
        try:
            lines, start = inspect.getsourcelines(thing)
            file = inspect.getsourcefile(thing)
        except (TypeError, OSError):  # torch's own in C, or code without a file
            return None
        at = next((at for at, line in enumerate(lines) if line.lstrip().startswith(_DEFINES)), 0)
        return self.deepest([(file or "", start + at)])

    def located(self, found: Finding, module: torch.nn.Module, spec: ModelSpec) -> Finding:
        """A finding with a line where it has none: of the class or of forward it speaks of, else of the config."""
        if found.file is not None or found.status not in ("fail", "warn"):
            return found
        place: Place | None = None
        if found.rule in _OF_A_CLASS:
            owners = [part for name, part in module.named_modules() if f"{found.subject}.".startswith(f"{name}.")]
            places = [self.of_definition(type(part)) for part in [module, *owners]]
            place = next((one for one in reversed(places) if one is not None and one.file), None)
        elif found.rule in _OF_FORWARD:
            place = self.of_definition(module.forward)
        if place is not None and place.file:
            return replace(found, file=place.file, line=place.line)
        return replace(found, file=spec.declared_in or None, line=spec.declared_at if spec.declared_in else None)

    def of_stack_text(self, text: str) -> Place | None:
        """The user's line in a formatted stack, outermost frame first, as FX nodes carry it."""
        return self.deepest((match["file"], int(match["line"])) for match in _FRAME_LINE.finditer(text))

    def of_traced_text(self, text: str) -> Place | None:
        """The user's line in the stack of a TorchScript node: innermost frame first, as ``file(line): function``."""
        frames = ((match["file"], int(match["line"])) for match in _TRACED_LINE.finditer(text))
        return self.deepest(reversed(list(itertools.takewhile(lambda one: not _is_ours(one[0]), frames))))

    def of_frame(self, frame: FrameType | None) -> Place | None:
        """The user's line among the callers of a frame."""
        inner = [(caller.f_code.co_filename, line) for caller, line in traceback.walk_stack(frame)]
        below = itertools.dropwhile(lambda one: _is_ours(one[0]), inner)
        return self.deepest(reversed(list(itertools.takewhile(lambda one: not _is_ours(one[0]), below))))


def chain(error: BaseException) -> Iterator[BaseException]:
    """An exception, then what caused it, down to the root."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _traceback_frames(trace: TracebackType | None) -> list[tuple[str, int]]:
    """What we called, and not who called us."""
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(trace)]
    ours = [at for at, (file, _) in enumerate(frames) if _is_ours(file)]
    return frames[ours[-1] + 1 :] if ours else frames


def _is_ours(file: str) -> bool:
    return file.replace("\\", "/").startswith(_OURS)


def _is_user_code(file: str) -> bool:
    if not file or file.startswith("<"):
        return False
    normal = file.replace("\\", "/")
    if any(part in normal for part in _FOREIGN_PARTS) or _is_ours(file):
        return False
    # torch writes some frames of its own by a path from its installation's root: no such file is here.
    return not normal.startswith(_LIBRARIES) and (Path(file).is_absolute() or Path(file).is_file())
