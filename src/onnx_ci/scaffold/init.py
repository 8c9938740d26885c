"""Writes a first config and the workflows; what is there already stays as it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from onnx_ci import lock
from onnx_ci.config.source import NAME, locate
from onnx_ci.errors import ExitCode, OnnxCiError, UsageError
from onnx_ci.records.model import LockSpec
from onnx_ci.scaffold.find import Candidate, find_entrypoints

WORKFLOW = ".github/workflows/onnx-ci.yml"
COMMENT = ".github/workflows/onnx-ci-comment.yml"
_LOCKS = ("uv.lock", "poetry.lock", "pylock.toml", "requirements.lock", "requirements.txt")
_INSTALL = "pip install -r requirements.txt"
_INSTALLS = {
    "uv.lock": 'pip install uv && uv export --frozen --no-emit-project -o "$RUNNER_TEMP/locked.txt" '
    '&& pip install -r "$RUNNER_TEMP/locked.txt"',
    "poetry.lock": "pip install poetry && poetry config virtualenvs.create false && poetry install --no-root",
    "requirements.lock": "pip install -r requirements.lock",
    "requirements.txt": _INSTALL,
}
_NO_LOCK = "pip install torch onnx onnxruntime onnxscript numpy"
_MOST_MODELS = 8
_INPUTS = """\
# What production sends: an axis that varies has a name, one that does not is a number.
# inputs.images = { dtype = "float32", shape = ["batch", 3, "height", "width"] }
# dims.batch = { min = 1, max = 32, example = 2 }
# Real inputs, in place of generated ones; the first is the export example.
# cases = ["FILE.py:cases", "samples/*.npz"]
"""
_PLACEHOLDER = """\
# No function that builds a model was found: name yours.
[models.model]
entrypoint = "FILE.py:FUNCTION"
"""


def init(root: Path, say: Callable[[str], object]) -> ExitCode:
    """Writes what is missing of config and workflows, and says what comes next.

    Args:
        root: The project's folder.
        say: Takes a line for the user.

    Raises:
        OnnxCiError: A file can't be written.
    """
    candidates = find_entrypoints(root)
    written = write_files(root, candidates, say)
    if NAME in written:
        names = ", ".join(f"{one.name} ({one.entrypoint})" for one in candidates[:_MOST_MODELS])
        say(f"Models found: {names}" if names else "No model was found: name its entrypoint in onnx-ci.toml.")
        if len(candidates) > _MOST_MODELS:
            say(f"{len(candidates) - _MOST_MODELS} more were left out.")
    say("Next: look over onnx-ci.toml, then run: onnx-ci run" if written else "Nothing to do: all is there.")
    return ExitCode.PASS


def write_files(root: Path, candidates: list[Candidate], say: Callable[[str], object]) -> list[str]:
    """Writes the files that are not there, and gives back their paths in the project."""
    locked = find_lock(root)
    texts = {
        NAME: "" if _has_config(root) else config_text(candidates, locked),
        WORKFLOW: _template("workflow.yml.tmpl").replace(_INSTALL, _INSTALLS.get(locked, _install(root))),
        COMMENT: _template("comment.yml.tmpl"),
    }
    written = []
    for path, text in texts.items():
        if text and _write_new(root / path, text):
            say(f"wrote  {path}")
            written.append(path)
        else:
            say(f"kept   {path}" if (root / path).exists() else f"       {path}: the config is in pyproject.toml")
    return written


def config_text(candidates: list[Candidate], locked: str) -> str:
    """The text of a first onnx-ci.toml."""
    parts = ["# Checked by onnx-ci. `onnx-ci run` tries it here; docs/config.md of onnx-ci lists all keys.\n"]
    for one in candidates[:_MOST_MODELS]:
        inputs = _INPUTS.replace("FILE.py", one.entrypoint.partition(":")[0]) if ":" in one.entrypoint else ""
        parts.append(f"[models.{one.name}]\nentrypoint = {json.dumps(one.entrypoint)}\n{inputs}")
    if not candidates:
        parts.append(_PLACEHOLDER + _INPUTS)
    parts.append('[targets.cpu]\nprovider = "CPUExecutionProvider"\n')
    if locked:
        parts.append(f"[lock]\nfiles = [{json.dumps(locked)}]\n")
    return "\n".join(parts)


def find_lock(root: Path) -> str:
    """The first lock file that fixes a version; empty when there is none."""
    for name in _LOCKS:
        try:
            if (root / name).is_file() and lock.read(LockSpec(files={name: ""}), root).pins:
                return name
        except UsageError:
            continue
    return ""


def _install(root: Path) -> str:
    return _INSTALL if (root / "requirements.txt").is_file() else _NO_LOCK


def _has_config(root: Path) -> bool:
    try:
        return locate(None, cwd=root).parent == root
    except UsageError:
        return (root / NAME).exists()  # two of them are a fault, and not ours to mend


def _write_new(path: Path, text: str) -> bool:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        return False
    except OSError as error:
        raise OnnxCiError(f"can't be written: {error.strerror or error}", where=str(path)) from error
    return True


def _template(name: str) -> str:
    return (resources.files("onnx_ci.scaffold") / name).read_text(encoding="utf-8")
