"""Which interpreter is the user's, and what it may see of our environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from onnx_ci.errors import UsageError

_PACKAGE = Path(__file__).resolve().parent.parent

BOOT = (
    "import importlib.util as u, sys;"
    "p = sys.argv.pop(1);"
    "s = u.spec_from_file_location('onnx_ci', p + '/__init__.py', submodule_search_locations=[p]);"
    "m = u.module_from_spec(s); sys.modules['onnx_ci'] = m; s.loader.exec_module(m);"
    "from onnx_ci.worker.serve import main; main(sys.argv[1:])"
)
"""Loads our package by its path alone: nothing else of the tool's environment can be imported, or shadow anything."""

_SECRET = re.compile(r"^(GITHUB_TOKEN|GH_TOKEN|ACTIONS_.*|INPUT_.*|ONNX_CI_.*TOKEN.*|RUNNER_TRACKING_ID)$")
_CHANNELS = {"GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY"}


def boot_command(python: Path, arguments: Sequence[str]) -> list[str]:
    """The command line that starts our side in an interpreter."""
    return [str(python), "-c", BOOT, str(_PACKAGE), *arguments]


def user_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What user code may see: no tokens, none of the files through which a step speaks to the runner.

    `OMP_WAIT_POLICY` is set because spinning OpenMP threads cost up to ten times the time beside a busy neighbour.
    """
    kept = {name: value for name, value in environment.items() if not _SECRET.match(name) and name not in _CHANNELS}
    return {"OMP_WAIT_POLICY": "passive", **kept}


def find_python(
    asked: str | None,
    environment: Mapping[str, str],
    modules: Sequence[str],
    has_modules: Callable[[Path, Sequence[str]], bool] | None = None,
) -> Path:
    """The user's interpreter: as asked, else $VIRTUAL_ENV's, else the first of PATH's and our own that has the modules.

    Raises:
        UsageError: None of them is there, or has what the job needs.
    """
    probe = has_modules or _has_modules
    if asked:
        found = shutil.which(asked, path=environment.get("PATH"))
        if not found:
            raise UsageError(f"--python {asked}: no such interpreter", hint="Give the path of a Python executable.")
        return _absolute(found)
    active = environment.get("VIRTUAL_ENV")
    if active:
        for name in ("bin/python", "Scripts/python.exe"):
            if (Path(active) / name).exists():
                return _absolute(Path(active) / name)
    on_path = shutil.which("python", path=environment.get("PATH")) or shutil.which(
        "python3", path=environment.get("PATH")
    )
    candidates = [_absolute(found) for found in (on_path, sys.executable) if found]
    for candidate in candidates:
        if probe(candidate, modules):
            return candidate
    looked = ", ".join(str(candidate) for candidate in dict.fromkeys(candidates))
    raise UsageError(
        f"no interpreter with {' and '.join(modules)} was found (looked at {looked})",
        hint="Activate the environment that your model runs in, or name its interpreter with --python.",
    )


def _absolute(python: str | Path) -> Path:
    """An interpreter's path from any folder; links stay, since a virtual environment is found by its own path."""
    return Path(os.path.abspath(python))


def _has_modules(python: Path, modules: Sequence[str]) -> bool:
    code = "import importlib.util, sys; sys.exit(any(importlib.util.find_spec(m) is None for m in sys.argv[1:]))"
    try:
        done = subprocess.run([str(python), "-c", code, *modules], capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def can_fork() -> bool:
    """Whether workers are forked from a warm server; macOS can fork, but not safely once frameworks are loaded."""
    return hasattr(os, "fork") and sys.platform.startswith("linux")
