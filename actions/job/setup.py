"""Makes the tool's own environment, away from the user's: found by the hash of what is in it, made once, then reused.

Written for Python 3.7, so that one that is too old gets a sentence instead of a syntax error. Standard library only.

    setup.py place      says where the environment belongs and under which key a cache may keep it
    setup.py install    makes it there unless it is whole already, and says its interpreter
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Callable, Iterator, Mapping, Sequence  # noqa: UP035 # collections.abc can't be subscripted in 3.7

OLDEST = (3, 11)
LOCK = Path(__file__).resolve().parent.parent.parent / "requirements" / "tool.lock"
COMPLETE = ".complete"
WINDOWS = os.name == "nt"
# What would send the packages elsewhere than into the new environment, or take others than the locked ones.
MISLEADING = {"PIP_TARGET", "PIP_PREFIX", "PIP_USER", "PIP_ROOT", "PIP_REQUIRE_VIRTUALENV", "PIP_CONSTRAINT"}


class SetupError(Exception):
    """Why the tool can't be set up, and what to do."""


def main(arguments: Sequence[str], environ: Mapping[str, str], say: Callable[[str, str], None]) -> None:
    """Runs one of the two verbs; `say` takes the step's outputs."""
    python = base_interpreter(candidates(environ))
    folder, key = place(python, environ)
    if list(arguments) == ["place"]:
        say("folder", str(folder))
        say("key", key)
        say("whole", "true" if is_whole(folder) else "false")
    elif list(arguments) == ["install"]:
        say("python", str(install(python, folder, environ)))
    else:
        raise SetupError("usage: setup.py place|install")


def base_interpreter(found: Iterator[Path]) -> Path:
    """The Python that the tool's environment is made with: the first that is new enough."""
    for candidate in found:
        version = version_of(candidate)
        if version is not None and version >= OLDEST:
            return candidate
    raise SetupError(
        f"onnx-ci needs Python {OLDEST[0]}.{OLDEST[1]} or newer for itself, and this runner has only "
        f"{sys.version.split()[0]}. Put actions/setup-python before it; the model may run in an older one, "
        "named by the input 'python'."
    )


def candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    """Interpreters worth a look, the likeliest first: this one, newer ones of PATH, then the runner's tool cache."""
    yield Path(sys.executable)
    for minor in range(OLDEST[1], 20):
        found = shutil.which(f"python3.{minor}", path=environ.get("PATH"))
        if found:
            yield Path(found)
    cache = environ.get("RUNNER_TOOL_CACHE")
    if cache:
        yield from sorted(Path(cache).glob("Python/*/*/python.exe" if WINDOWS else "Python/*/*/bin/python3"))


def version_of(python: Path) -> tuple[int, ...] | None:
    """(major, minor) of an interpreter, or None when it does not start."""
    try:
        return tuple(int(part) for part in ask(python, "import sys; print(*sys.version_info[:2])").split())
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None


def place(python: Path, environ: Mapping[str, str]) -> tuple[Path, str]:
    """The environment's folder and its cache key; both change with the lock, the interpreter and the machine."""
    built = ask(python, "import sys, sysconfig; print(sys.version, sys.base_prefix, sysconfig.get_platform())")
    digest = hashlib.sha256(LOCK.read_bytes() + b"\0" + built.encode()).hexdigest()[:20]
    return keeper(environ) / "onnx-ci" / digest, f"onnx-ci-tool-{digest}"


def keeper(environ: Mapping[str, str]) -> Path:
    """The folder that outlives the job where there is one that can be written, else the job's own."""
    for name in ("RUNNER_TOOL_CACHE", "RUNNER_TEMP"):
        folder = environ.get(name, "")
        if folder and Path(folder).is_dir() and os.access(folder, os.W_OK):
            return Path(folder)
    return Path(tempfile.gettempdir())


def install(python: Path, folder: Path, environ: Mapping[str, str]) -> Path:
    """Makes the environment beside its place and renames it there, so that no job ever sees half of one."""
    if is_whole(folder):
        return interpreter(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix=".making-", dir=folder.parent))
    try:
        run([str(python), "-m", "venv", "--without-pip", str(making)], environ, "the tool's environment can't be made")
        run([*pip(python, environ), *locked(making)], environ, "the tool's packages can't be installed")
        (making / COMPLETE).write_text("made by onnx-ci\n", encoding="utf-8")
        making.chmod(0o755)  # mkdtemp makes it for one user; a runner's tool cache may serve several
        publish(making, folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    if not is_whole(folder):
        raise SetupError(f"{folder} was made, and its interpreter does not start")
    return interpreter(folder)


def publish(making: Path, folder: Path) -> None:
    """Renames the finished environment to its place; another job's that got there first is as good."""
    if folder.is_dir() and not is_whole(folder):
        broken = Path(tempfile.mkdtemp(prefix=".broken-", dir=folder.parent))
        folder.rename(broken / "was")
        shutil.rmtree(broken, ignore_errors=True)
    try:
        making.rename(folder)
    except OSError:
        if not is_whole(folder):
            raise


def is_whole(folder: Path) -> bool:
    """Whether the environment was finished, and its interpreter (a link to the base's) still starts with packages."""
    if not (folder / COMPLETE).is_file():
        return False
    try:
        ask(interpreter(folder), "import click, pydantic")
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def interpreter(folder: Path) -> Path:
    """The Python of an environment."""
    return folder / "Scripts" / "python.exe" if WINDOWS else folder / "bin" / "python"


def pip(python: Path, environ: Mapping[str, str]) -> list[str]:
    """A pip that can install into another environment (22.3 or newer): the base's, else the one of PATH's python."""
    user = shutil.which("python", path=environ.get("PATH"))
    for candidate in [python, Path(user)] if user else [python]:
        try:
            major, minor = ask(candidate, "import pip; print(pip.__version__)").split(".")[:2]
            if (int(major), int(minor)) >= (22, 3):
                return [str(candidate), "-m", "pip"]
        except (OSError, ValueError, subprocess.CalledProcessError):
            continue
    raise SetupError(f"no pip 22.3 or newer was found beside {python}. Put actions/setup-python before onnx-ci.")


def locked(folder: Path) -> list[str]:
    """Arguments of pip for exactly the locked wheels, by hash: nothing is built, so no package's code runs here."""
    where = ["--python", str(interpreter(folder)), "--disable-pip-version-check", "--no-input"]
    return [*where, "install", "--quiet", "--require-hashes", "--only-binary=:all:", f"--requirement={LOCK}"]


def run(command: Sequence[str], environ: Mapping[str, str], fault: str) -> None:
    """Runs a command with what it says in the log; that it failed is `fault`."""
    kept = {name: value for name, value in environ.items() if name not in MISLEADING}
    code = subprocess.call(command, env=kept, stdout=sys.stderr)
    if code:
        raise SetupError(f"{fault}: exit code {code}; the lines above say why")


def ask(python: Path, code: str) -> str:
    """What a line of Python prints there, in isolation from the job's folder and variables."""
    return subprocess.check_output([str(python), "-I", "-c", code], stderr=subprocess.DEVNULL).decode().strip()


def write_output(name: str, value: str) -> None:
    """Writes a step's output; paths and hashes have no line ends."""
    with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as stream:
        stream.write(f"{name}={value}\n")


if __name__ == "__main__":
    try:
        main(sys.argv[1:], os.environ, write_output)
    except (SetupError, OSError) as problem:
        text = str(problem).replace("%", "%25").replace("\n", "%0A")
        print(f"::error title=onnx-ci::{text}")
        sys.exit(3)
