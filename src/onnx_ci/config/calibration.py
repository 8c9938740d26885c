"""The committed calibrations beside the config: `onnx-ci.calibration.json`, read and checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

from pydantic import TypeAdapter, ValidationError

from onnx_ci.config.problems import ConfigError, Problem
from onnx_ci.records.calibration import HIGHEST, SCHEMA_VERSION, CalibrationFile

NAME = "onnx-ci.calibration.json"
_FILE = TypeAdapter(CalibrationFile)
_LARGEST = 16 << 20
_HINT = "run `onnx-ci calibrate` again; delete the file first if it can't be read at all"


def read(folder: Path) -> CalibrationFile:
    """Reads the file of a project; without one there are no calibrations.

    Args:
        folder: The config's.

    Raises:
        ConfigError: It is not what `onnx-ci calibrate` writes. A budget is never guessed.
    """
    path = folder / NAME
    if not path.is_symlink() and not path.exists():
        return CalibrationFile(schema_version=SCHEMA_VERSION)
    if not path.is_file() or path.stat().st_size > _LARGEST:
        _stop("is not a regular file of at most 16 MiB")
    try:
        text = path.read_text(encoding="utf-8")
        version = json.loads(text)["schema_version"]
    except OSError as error:
        _stop(f"can't be read: {error.strerror or error}")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        _stop(f"is not a calibration file: {error}")
    if version != SCHEMA_VERSION:
        _stop(f"has schema version {version!r:.20}, this onnx-ci reads {SCHEMA_VERSION}")
    try:
        found = _FILE.validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        _stop(f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
    for model, targets in found.models.items():
        for target, one in targets.items():
            for output, value in one.observed.items():
                if not 0 <= value <= HIGHEST:
                    _stop(f"models.{model}.{target}.observed.{output}: {value:g} is not between 0 and {HIGHEST:g}")
    return found


def _stop(message: str) -> NoReturn:
    raise ConfigError(NAME, [Problem(path=(), message=message, hint=_HINT)]) from None
