"""Writes the report's files whole or not at all, and what GitHub's runner takes from a step."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Mapping
from pathlib import Path

from onnx_ci.errors import OnnxCiError


def files(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Writes texts by file name into a folder, each atomically: whoever reads sees the old or the new, never half.

    Raises:
        OnnxCiError: The folder is a link, or can't be written to.
    """
    if folder.is_symlink():
        # an artifact may have brought it along; what is written must stay in the output folder
        raise OnnxCiError("the report folder is a link", where=str(folder), hint="Remove it and run again.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [atomically(folder / name, text) for name, text in texts.items()]
    except OSError as error:
        raise OnnxCiError(
            f"the report can't be written: {error.strerror}",
            where=str(error.filename or folder),
            hint="Is the folder read-only, or the disk full? Results that were written before are untouched.",
        ) from error


def append(path: str, text: str) -> None:
    """Appends to a file that the runner reads when the step ends."""
    with Path(path).open("a", encoding="utf-8", newline="\n") as stream:
        stream.write(text)


def outputs(values: Mapping[str, str]) -> str:
    """Step outputs, each between delimiters that no value can guess and so none can close."""
    lines = []
    for name, value in values.items():
        delimiter = f"onnx-ci-{secrets.token_hex(16)}"
        lines.append(f"{name}<<{delimiter}\n{value}\n{delimiter}\n")
    return "".join(lines)


def atomically(path: Path, text: str) -> Path:
    """Writes a file whole or not at all; a link in its place is replaced, not followed."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".onnx-ci-")
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        os.chmod(temporary, 0o644)  # made for its owner only; a later job may run as another user
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path
