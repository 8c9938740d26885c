"""Exports one model by the product's own job; as a program it is a process of its own, which an export needs.

python -m benchmarks.mutation.exporting CONFIG MODEL FOLDER [--side 1024]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from onnx_ci.config.load import load
from onnx_ci.records.messages import ExportRequest
from onnx_ci.records.model import LatencySpec, ModelSpec

ROOT = Path(__file__).resolve().parents[2]
_SIDES = ("height", "width")


def export(config: str, model: str, folder: Path, *, side: int | None = None, environment: Mapping[str, str]) -> str:
    """Exports into a folder, in a process of its own; gives back what was wrong, "" for nothing.

    Args:
        config: Relative to the repository's root.
        model: Its name there.
        folder: Of the artifact.
        side: What heights and widths may be, instead of what the config declares.
        environment: Added to this process's: switches of the libraries under torch.
    """
    command = [sys.executable, "-m", "benchmarks.mutation.exporting", config, model, str(folder)]
    command += ["--side", str(side)] if side else []
    inherited = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    done = subprocess.run(command, cwd=ROOT, env={**inherited, **environment}, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"{done.stdout[-2000:]}{done.stderr[-2000:]}"


def resized(model: ModelSpec, side: int) -> ModelSpec:
    """A model that takes images up to another size, a few at a time; one that takes none stays as it is."""
    sides = {name: replace(dim, max=side) for name, dim in model.dims.items() if name in _SIDES}
    batch = {
        name: replace(dim, max=min(dim.max or 4, 4)) for name, dim in model.dims.items() if sides and name == "batch"
    }
    return replace(model, dims={**model.dims, **sides, **batch})


def main() -> int:
    """Exports and says what failed."""
    from onnx_ci.export.job import export as job  # not before: torch reads its switches when it is imported

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("model")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--side", type=int)
    arguments = parser.parse_args()
    config = load(arguments.config, cwd=Path.cwd())
    model = next(one for one in config.models if one.name == arguments.model)
    spec = config.job(resized(model, arguments.side) if arguments.side else model)
    spec = replace(spec, latency=LatencySpec(budget_seconds=0.001))
    request = ExportRequest(job=spec, root=str(Path(config.root).resolve()), artifact=str(arguments.folder.resolve()))
    os.chdir(config.root)
    result = job(request, lambda stage: None)
    broken = [f"{one.rule}: {one.message}" for one in result.findings if one.status in ("fail", "error")]
    print("\n".join(broken))
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
