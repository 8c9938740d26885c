"""How many seeded faults the gate finds, and whether it lets the sound pass.

    python -m benchmarks.sensitivity --jobs 2                    # faults in every architecture: a table, and JSON lines
    python -m benchmarks.sensitivity --jobs 2 --benign 400       # sound files in other circumstances: none may fail

Run it in the repository's root. Each architecture is exported once by the product. Then one fault at a time is put into
its file, the manifest is written anew (so that the digest gives nothing away), and the verify job judges it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.mutation import benign, choose, table
from benchmarks.mutation.exporting import export
from benchmarks.mutation.judge import Bench, Judged

from onnx_ci.artifact import layout
from onnx_ci.artifact.layout import Artifact

KNOWN = {
    "fixtures/onnx-ci.toml": ["classifier", "segmenter", "tokens", "detector", "recurrent", "face_proposals"],
    "fixtures/architectures.toml": ["resnet", "vit", "bert", "gpt2", "lstm", "gru"],
}
HELD_OUT = {"fixtures/held_out.toml": ["clip", "efficientnet", "mobilevit", "whisper_encoder"]}
"""Never looked at while the gate was built."""
SIDE = 128
"""Images are declared no larger here, so that a thousand mutants take minutes."""


def main() -> None:
    """Exports, breaks, judges and tells."""
    arguments = _arguments()
    print(f"{_conditions()}; seed {arguments.seed}", flush=True)
    with TemporaryDirectory(prefix="sensitivity-") as scratch:
        folder = Path(arguments.artifacts or scratch).resolve()
        models = {**KNOWN, **(HELD_OUT if arguments.held_out else {})}
        wanted = {
            config: [name for name in names if not arguments.model or name in arguments.model]
            for config, names in models.items()
        }
        if arguments.benign:
            sys.exit(bool(benign.run(wanted, Path(scratch), runs=arguments.benign, jobs=arguments.jobs)))
        with ThreadPoolExecutor(arguments.jobs) as threads:
            pairs = [(config, name) for config, names in wanted.items() for name in names]
            artifacts = list(threads.map(lambda pair: exported(*pair, folder), pairs))
        print(f"exported {', '.join(artifact.name for artifact in artifacts)}", flush=True)
        judged = []
        with arguments.out.open("w", encoding="utf-8") as lines:
            for one in _judged(artifacts, arguments):
                judged.append(one)
                print(json.dumps(asdict(one), ensure_ascii=False), file=lines, flush=True)
        print(table.render(judged))


def exported(config: str, model: str, folder: Path) -> Path:
    """The artifact of an architecture; made where it is not there yet."""
    artifact = folder / model
    there = (artifact / layout.MANIFEST).is_file()
    wrong = "" if there else export(config, model, artifact, side=SIDE, environment={})
    if wrong:
        shutil.rmtree(artifact, ignore_errors=True)
        raise SystemExit(f"the export of {model} failed\n{wrong}")
    return artifact


def part(asked: tuple[Path, int, int, int, int]) -> list[Judged]:
    """Every so-many-th of an architecture's mutants, judged in this process.

    Args:
        asked: Folder, most mutants, seed, the first one of these, and at how many of them the next one stands.
    """
    folder, count, seed, at, parts = asked
    with TemporaryDirectory(prefix="sensitivity-") as scratch:
        bench = Bench(Artifact(folder), Path(scratch) / folder.name, seed)
        return [bench.judge(mutant) for mutant in choose.chosen(bench.model, count, seed)[at::parts]]


def _judged(artifacts: Sequence[Path], arguments: argparse.Namespace) -> Iterator[Judged]:
    start, done = time.monotonic(), 0
    parts = max(1, arguments.mutants // 10)
    asked = [(artifact, arguments.mutants, arguments.seed, at, parts) for artifact in artifacts for at in range(parts)]
    with get_context("spawn").Pool(arguments.jobs, maxtasksperchild=20) as pool:
        for found in pool.imap_unordered(part, asked):
            done += len(found)
            if found:
                spent = time.monotonic() - start
                print(f"{spent:6.0f} s: {done} judged, the last of {found[0].architecture}", flush=True)
            yield from found


def _conditions() -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "onnx", "onnxruntime", "onnxscript"))
    return f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}, {packages}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=80, help="most of one architecture (80)")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--model", action="append", help="only this architecture; may be repeated")
    parser.add_argument("--held-out", action="store_true", help="with the architectures kept for the last run")
    parser.add_argument("--benign", type=int, default=0, metavar="RUNS", help="judge sound files instead, so often")
    parser.add_argument("--artifacts", help="an output folder to export into, or that holds the exports already")
    parser.add_argument("--out", type=Path, default=Path("sensitivity.jsonl"), help="JSON lines, one a mutant")
    return parser.parse_args()


if __name__ == "__main__":
    main()
