"""Files written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from onnx_ci.records import codec
from onnx_ci.records.result import Result


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
