"""What the float64 twin costs beside the export that it judges: seconds, their ratio, and the twin's peak memory.

    python benchmarks/twin.py [--rounds 3]

Each file is exported and run in float64 in processes of their own, turn by turn; the twin starts cold, from the file.
"Judged" is what parity.function needs of a healthy model: the shipped file with one draw of the rounding of the
constants that the exporter made, and the unoptimized file. Seconds are the CPU's, printed are medians. The aim: under a
fifth of the export for a hundred million parameters.
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
from pathlib import Path
from onnx_ci.twin import Twin
build, example = CASES[sys.argv[1]]
module, example, folder = build().eval(), example(), sys.argv[2]
began = time.process_time()
program = torch.onnx.export(module, (example,), dynamo=True, verbose=False, optimize=False)
seconds = time.process_time() - began
program.save(folder + "/unoptimized.onnx", external_data=True)
began = time.process_time()
program.optimize()
program.save(folder + "/model.onnx", external_data=True)
seconds += time.process_time() - began
np.save(folder + "/input.npy", example.numpy())
own = [item.detach().numpy() for item in module.state_dict().values() if item.is_floating_point()]
own = {hash(array.tobytes()) for item in own for array in (item, item.T)}
made = {}
for name in ("model.onnx", "unoptimized.onnx"):
    constants = Twin.open(Path(folder) / name).float_constants()
    made[name] = [key for key, value in constants if hash(value.astype(np.float32).tobytes()) not in own]
with open(folder + "/made.json", "w") as file:
    json.dump(made, file)
print(json.dumps({"seconds": seconds, "parameters": sum(item.numel() for item in module.parameters())}))
"""
TWIN = """
import json, resource, sys, time
import numpy as np
from pathlib import Path
from onnx_ci.twin import Twin, run_with_amplification
folder = Path(sys.argv[2])
array = np.load(folder / "input.npy")
made = json.loads((folder / "made.json").read_text())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def timed(name, seeds):
    began = time.process_time()
    twin = Twin.open(folder / name)
    run_with_amplification(twin, {twin.model.graph.input[0].name: array}, made[name], seeds)
    return time.process_time() - began


alone = timed("model.onnx", 0)
one = timed("model.onnx", 1) + timed("unoptimized.onnx", 0)
four = timed("model.onnx", 4) + timed("unoptimized.onnx", 4)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"alone": alone, "one": one, "four": four, "mib": (peak - before) / 1024}))
"""


def told(code: str, name: str, folder: str) -> dict:
    """Runs code in a process of its own; gives what it printed last."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONHASHSEED": "0"}
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
        export = statistics.median(pair[0]["seconds"] for pair in pairs)
        alone, one, four, peak = (
            statistics.median(pair[1][key] for pair in pairs) for key in ("alone", "one", "four", "mib")
        )
        size = pairs[0][0]["parameters"] / 1e6
        print(f"{name} ({size:.0f} M): export {export:.1f} s, one run {alone:.2f} s, ratio {alone / export:.2f}")
        print(f"  judged {one:.2f} s ({one / export:.2f}), with every draw of both {four:.2f} s ({four / export:.2f})")
        print(f"  {peak:.0f} MiB at most beside what numpy and the runtime take")
    print(f"{platform.platform()}, {len(os.sched_getaffinity(0))} cores, n={rounds}")


if __name__ == "__main__":
    main()
