"""Files written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from onnx_ci.errors import UsageError
from onnx_ci.records import codec
from onnx_ci.records.result import Result


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Holds a folder for this process, so that two runs do not write one artifact at once.

    Raises:
        UsageError: Another process holds it.
    """
    try:
        import fcntl
    except ImportError:  # Windows: nothing is held there
        yield
        return
    with (folder / ".lock").open("a", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(
                "another onnx-ci is writing to this folder",
                where=str(folder),
                hint="Wait for it, or give another --out.",
            ) from error
        yield


def write_result(folder: Path, name: str, result: Result) -> None:
    """Writes a result whole or not at all."""
    write_text(folder / f"{name}.json", codec.dumps(result))


def write_text(path: Path, text: str) -> None:
    """Writes a file by renaming a finished one, so that a full disk leaves what was there before."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".part-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.chmod(temporary, 0o644)  # a temporary file is private; a result is read by later jobs of other users
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
