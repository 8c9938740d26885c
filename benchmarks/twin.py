"""What the float64 twin costs beside the export that it judges: seconds, their ratio, and the twin's peak memory.

    python benchmarks/twin.py [--rounds 3]

Each file is exported and run in float64 in processes of their own, turn by turn; the twin starts cold, from the file.
Printed are medians. The aim is a ratio under 0.2 for a model of a hundred million parameters.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODELS = """
import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.first = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(out), nn.BatchNorm2d(out)])
        down = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        self.past = nn.Identity() if channels == out else down

    def forward(self, x):
        return F.relu(self.norms[1](self.second(F.relu(self.norms[0](self.first(x))))) + self.past(x))


def resnet18():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    sizes = [64, 64, 64, 128, 128, 256, 256, 512, 512]
    for before, after in zip(sizes, sizes[1:]):
        layers.append(Block(before, after, 1 if before == after else 2))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


def transformer():
    layer = nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True, activation="gelu")
    return nn.Sequential(nn.Embedding(30522, 768), nn.TransformerEncoder(layer, 12))


CASES = {
    "resnet18": (resnet18, lambda: torch.randn(1, 3, 224, 224)),
    "transformer": (transformer, lambda: torch.randint(0, 30522, (2, 32))),
}
"""
EXPORT = """
import json, sys, time
import numpy as np
build, example = CASES[sys.argv[1]]
module, example = build().eval(), example()
began = time.perf_counter()
torch.onnx.export(module, (example,), sys.argv[2] + "/model.onnx", dynamo=True, verbose=False)
seconds = time.perf_counter() - began
np.save(sys.argv[2] + "/input.npy", example.numpy())
print(json.dumps({"seconds": seconds, "parameters": sum(item.numel() for item in module.parameters())}))
"""
TWIN = """
import json, resource, sys, time
import numpy as np
from pathlib import Path
from onnx_ci.twin import Twin
array = np.load(sys.argv[2] + "/input.npy")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
began = time.perf_counter()
twin = Twin.open(Path(sys.argv[2]) / "model.onnx")
run = twin.run({twin.model.graph.input[0].name: array})
seconds = time.perf_counter() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"seconds": seconds, "mib": (peak - before) / 1024, "by_reference": run.by_reference}))
"""


def told(code: str, name: str, folder: str) -> dict:
    """Runs code in a process of its own; gives what it printed last."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-W", "ignore", "-c", code, name, folder]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Runs both in turn and prints the ratios with their conditions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    for name in ("resnet18", "transformer"):
        pairs = []
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as folder:
                pairs.append((told(MODELS + EXPORT, name, folder), told(TWIN, name, folder)))
        export, twin = (statistics.median(pair[side]["seconds"] for pair in pairs) for side in (0, 1))
        ratio = statistics.median(pair[1]["seconds"] / pair[0]["seconds"] for pair in pairs)
        peak = statistics.median(pair[1]["mib"] for pair in pairs)
        size = pairs[0][0]["parameters"] / 1e6
        print(
            f"{name} ({size:.0f} M): export {export:.1f} s, twin {twin:.2f} s, ratio {ratio:.2f}, {peak:.0f} MiB more"
        )
    print(
        f"{platform.platform()}, {len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}, n={rounds}"
    )


if __name__ == "__main__":
    main()
