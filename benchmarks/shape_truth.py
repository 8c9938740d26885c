"""Random modules of shape arithmetic: onnx-ci's verdict against the truth by brute force, over the whole range.

    python -m benchmarks.shape_truth [--count 2000] [--seed 1] [--first 0] [--jobs 1] [--out modules.jsonl]

The truth of a module is what PyTorch and the shipped file in ONNX Runtime do at every declared size. Printed are the
seed, the shares, and every disagreement with its source. Exit code 1 where there is one.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import statistics
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def judge_some(seed: int, numbers: list[int], folder: str, rows: Any) -> None:
    """Judges modules in this process, and sends a row for each."""
    import torch
    from tests.shapes.judge import judging

    torch.set_num_threads(1)
    parent = os.getppid()
    with judging(Path(folder)) as judge:
        for number in numbers:
            if os.getppid() != parent:
                return  # whoever reads the rows is gone
            try:
                found = judge.judge(seed, number)
            except Exception:
                rows.put({"number": number, "broke": traceback.format_exc()})
                continue
            if found is None:
                rows.put({"number": number})
                continue
            rows.put(
                {
                    "number": number,
                    "truth": found.truth.kind,
                    "said": found.truth.said,
                    "share": round(found.truth.share, 3),
                    "status": found.status,
                    "seconds": round(found.seconds, 2),
                    "told": found.told,
                    "miss": found.missed,
                    "alarm": found.alarmed,
                    "model": found.module.model,
                    "config": found.module.config,
                }
            )
    rows.put(None)


def show(row: Row) -> None:
    """A disagreement, with all that is needed to look into it."""
    kind = "MISS" if row["miss"] else "FALSE ALARM"
    print(f"\n=== {kind} {row['number']}: truth {row['truth']} ({row['said']}), verdict {row['status']}")
    print(*row["told"], row["config"], row["model"], sep="\n", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000, help="modules that are drawn and can be judged")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="JSON lines, one a module; what it holds is not judged again")
    asked = parser.parse_args()
    print(f"seed {asked.seed}, from {asked.first}", flush=True)
    judged = run(asked)
    return summary(asked.seed, judged)


def read(file: Path | None, seed: int) -> list[Row]:
    """What an earlier run wrote of a seed."""
    if file is None or not file.exists():
        return []
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return [row for row in rows if row["seed"] == seed]


def run(asked: argparse.Namespace) -> list[Row]:
    """The rows of all modules; a few more numbers are drawn than asked for, since some can't be judged."""
    context = multiprocessing.get_context("spawn")
    rows: Any = context.Queue()
    known = read(asked.out, asked.seed)
    judged = [row for row in known if "truth" in row]
    done = {row["number"] for row in known}
    numbers = [at for at in range(asked.first, asked.first + asked.count * 6 // 5) if at not in done]
    with tempfile.TemporaryDirectory() as folder:
        workers = [
            context.Process(
                target=judge_some, args=(asked.seed, numbers[at :: asked.jobs], f"{folder}/{at}", rows), daemon=False
            )
            for at in range(asked.jobs)
        ]
        for worker in workers:
            worker.start()
        waiting, start = asked.jobs, time.monotonic()
        while waiting:
            row = rows.get()
            if row is None:
                waiting -= 1
                continue
            if "broke" in row:
                print(f"\n=== BROKE {row['number']}\n{row['broke']}", flush=True)
                continue
            if asked.out:
                with asked.out.open("a") as file:
                    file.write(json.dumps({"seed": asked.seed, **row}) + "\n")
            if "truth" not in row:
                continue
            judged.append(row)
            if row["miss"] or row["alarm"]:
                show(row)
            if len(judged) % 100 == 0:
                print(f"{len(judged)} modules, {time.monotonic() - start:.0f} s", flush=True)
        for worker in workers:
            worker.join()
    return judged


def summary(seed: int, judged: list[Row]) -> int:
    """Prints the figures; 1 where truth and verdict disagree."""
    import onnxruntime
    import torch

    passed = sum(row["status"] in ("pass", "warn", "skip") for row in judged)
    misses, alarms = (sum(row[what] for row in judged) for what in ("miss", "alarm"))
    count = len(judged)
    print(f"\nseed {seed}: {count} modules, {passed / count:.1%} let through, {1 - passed / count:.1%} failed")
    kinds = Counter(row["truth"] for row in judged).most_common()
    print("truth:", ", ".join(f"{kind} {number}" for kind, number in kinds))
    print(f"misses {misses}, false alarms {alarms}:", *(row["number"] for row in judged if row["miss"] or row["alarm"]))
    print(f"seconds a module: median {statistics.median(row['seconds'] for row in judged):.2f}")
    versions = f"torch {torch.__version__}, onnxruntime {onnxruntime.__version__}, Python {platform.python_version()}"
    print(f"{versions}, {platform.platform()}")
    return 1 if misses or alarms else 0


if __name__ == "__main__":
    sys.exit(main())
