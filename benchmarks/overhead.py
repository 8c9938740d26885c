"""What the gate costs over the bare script that a team would write: export, check, open, compare, time.

    python benchmarks/overhead.py [--rounds 3]

Both do the demo's classifier, in fresh processes, turn by turn; printed are the medians of CPU and wall seconds and of
the ratio in each round. The gate does more: contract, float64 oracle, boundary cases, placement, report.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BARE = """
import sys, time
sys.path.insert(0, "fixtures/classifier")
import numpy, onnx, onnxruntime, torch
import model
module = model.build(num_classes=10).eval()
cases = model.cases()
dims = {0: torch.export.Dim("batch", max=32), 2: torch.export.Dim("h", min=32, max=512)}
dims[3] = torch.export.Dim("w", min=32, max=512)
example = next(iter(cases[0][1].values()))
torch.onnx.export(module, (example,), sys.argv[1], dynamic_shapes=(dims,), dynamo=True, verbose=False)
onnx.checker.check_model(sys.argv[1], full_check=True)
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
name = session.get_inputs()[0].name
for _, inputs in cases:
    array = next(iter(inputs.values()))
    with torch.no_grad():
        want = module(array).numpy()
    numpy.testing.assert_allclose(session.run(None, {name: array.numpy()})[0], want, rtol=1e-3, atol=1e-4)
for _ in range(25):
    session.run(None, {name: example.numpy()})
"""


def measured(command: list[str]) -> tuple[float, float]:
    """CPU and wall seconds of a command and all that it starts."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, time.perf_counter() - began


def main() -> None:
    """Runs both in turn and prints the ratios with their conditions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        bare = [sys.executable, "-c", BARE, f"{folder}/bare.onnx"]
        gate = [sys.executable, "-m", "onnx_ci", "run", "--config", "fixtures/demo.toml", "--model", "classifier"]
        gate += ["--out", f"{folder}/out", "--python", sys.executable]
        pairs = [(measured(bare), measured(gate)) for _ in range(rounds)]
    for at, unit in enumerate(("CPU", "wall")):
        first, second = (statistics.median(pair[side][at] for pair in pairs) for side in (0, 1))
        ratio = statistics.median(pair[1][at] / pair[0][at] for pair in pairs)
        print(f"{unit} s: bare {first:.2f}, onnx-ci {second:.2f}, ratio {ratio:.2f} (n={rounds})")
    print(f"{platform.platform()}, {len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}")


if __name__ == "__main__":
    main()
