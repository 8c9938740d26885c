#!/usr/bin/env bash
# What can be told only on a machine with a CUDA GPU, in under eight minutes: the provider is active, nodes are placed,
# a planted fallback fails, strict arithmetic and TF32 are two rows, latency is taken with copies outside, and
# the peak of memory is told on the host and on the device.
#
#     benchmarks/gpu_smoke.sh          installs torch (CPU build) and onnxruntime-gpu into a temporary environment
#     benchmarks/gpu_smoke.sh --cpu    the same checks without a GPU: other providers stand in for CUDA
#
# PYTHON=/path/to/python     an interpreter that has torch, onnx, onnxscript and onnxruntime(-gpu): nothing is installed
# ONNX_CI="python -m onnx_ci"   a command that is there: onnx-ci isn't installed
# TORCH_INDEX=URL            where torch comes from; PyTorch's own index of CPU builds by default
#
# Prints a line for each check, PASS or FAIL, and exits with 1 if one failed.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/onnx-ci-smoke.XXXXXX")
trap 'rm -rf "$work"' EXIT
mode=gpu
case "${1:-}" in
  --cpu) mode=cpu ;;
  "") ;;
  *) sed -n '2,14p' "$0"; exit 2 ;;
esac
began=$SECONDS

if [ -z "${PYTHON:-}" ]; then
  python3 -m venv "$work/user"
  PYTHON=$work/user/bin/python
  "$PYTHON" -m pip install -q torch --index-url "${TORCH_INDEX:-https://download.pytorch.org/whl/cpu}"
  runtime='onnxruntime-gpu[cuda,cudnn]'
  if [ "$mode" = cpu ]; then runtime=onnxruntime; fi
  "$PYTHON" -m pip install -q numpy onnx onnxscript "$runtime"
fi
if [ -z "${ONNX_CI:-}" ]; then
  python3 -m venv "$work/tool"
  "$work/tool/bin/python" -m pip install -q "$root"
  ONNX_CI=$work/tool/bin/onnx-ci
fi
read -r -a onnx_ci <<<"$ONNX_CI"
echo "installed after $((SECONDS - began)) s"

if [ "$mode" = gpu ]; then
  loose='provider = "CUDAExecutionProvider"'
  strict='provider = "CUDAExecutionProvider"
options = { use_tf32 = 0 }'
  planted=$strict
else
  loose='provider = "CPUExecutionProvider"
deterministic = false'
  strict='provider = "CPUExecutionProvider"'
  planted='provider = "AzureExecutionProvider"' # in every build for the CPU, and runs no operator itself
fi
mkdir "$work/project"
cat >"$work/project/model.py" <<'MODEL'
"""A small network, and one with an operator that CUDA has no kernel for."""

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 64, 3, padding=1)
        self.second = torch.nn.Conv2d(64, 64, 3, padding=1)
        self.head = torch.nn.Linear(64, 256)

    def forward(self, images):
        found = self.second(self.first(images).relu()).relu()
        return self.head(found.flatten(2).mean(-1))


class Stray(torch.nn.Module):
    def forward(self, x):
        return torch.linalg.det(x) + x.sum((1, 2))


def net():
    torch.manual_seed(0)
    return Net().eval()


def stray():
    return Stray().eval()
MODEL
cat >"$work/project/onnx-ci.toml" <<CONFIG
[models.net]
entrypoint = "model.py:net"
inputs.images = { dtype = "float32", shape = ["batch", 3, "height", 64], low = 0.0, high = 1.0 }
dims.batch = { min = 1, max = 4, example = 2 }
dims.height = { min = 32, max = 128, example = 96 }

[models.stray]
entrypoint = "model.py:stray"
inputs.x = { dtype = "float32", shape = ["batch", 48, 48], low = -0.2, high = 0.2 }
dims.batch = { min = 1, max = 64, example = 32 }

[targets.cpu]
provider = "CPUExecutionProvider"

[targets.loose]
$loose

[targets.strict]
$strict

[targets.planted]
$planted

[latency]
budget_seconds = 2
transfers = "outside"
CONFIG
code=0
(cd "$work/project" && "${onnx_ci[@]}" run --python "$PYTHON" --out "$work/out") >"$work/said" 2>&1 || code=$?
echo "ran after $((SECONDS - began)) s, exit code $code"
if [ ! -f "$work/out/report/report.json" ]; then
  tail -n 40 "$work/said"
  echo "FAIL there is a report"
  exit 1
fi

python3 - "$work/out/report/report.json" "$mode" "$code" "$((SECONDS - began))" <<'CHECKS'
import json
import sys

report, mode, code, seconds = json.load(open(sys.argv[1], encoding="utf-8")), *sys.argv[2:]
results = {(one["model"], one["target"]): one for one in report["results"]}
provider = "CUDAExecutionProvider" if mode == "gpu" else "CPUExecutionProvider"
failed = 0


def check(what, passed, shown=""):
    global failed
    failed += not passed
    print("PASS" if passed else "FAIL", what, f"({shown})" if shown else "")


def found(model, target, rule):
    return [one for one in results.get((model, target), {}).get("findings", []) if one["rule"] == rule]


def first(model, target, rule):
    return next(iter(found(model, target, rule)), {"status": "absent", "message": "", "data": {}, "file": None})


def error(target, options):
    figures = results.get(("net", target), {}).get("parity", [])
    errors = [one["e_runtime"] for one in figures if bool(one["options"]) == options and one["e_runtime"] is not None]
    return max(errors, default=float("nan"))


check("a broken promise is exit code 1", code == "1", code)
for target in ("cpu", "loose", "strict"):
    one = results.get(("net", target), {})
    worst = [f"{f['rule']}: {f['message']}" for f in one.get("findings", []) if f["status"] in ("fail", "error")]
    check(f"net on {target} is not failed", one.get("status") in ("pass", "warn"), "; ".join(worst)[:300])
active = first("net", "loose", "provider.active")
check("the provider is active", active["status"] == "pass" and active["data"]["active"][0] == provider, active["message"])
placed = first("net", "loose", "provider.placement")
check("nodes are placed on it", placed["data"].get("nodes", {}).get(provider, 0) > 0, placed["message"])
if mode == "gpu":
    check("no node fell back", first("net", "loose", "provider.fallback")["status"] == "pass")
    options = first("net", "strict", "provider.active")["data"].get("options", {})
    check("use_tf32 is off where it was switched off", options.get("use_tf32") == "0", str(options.get("use_tf32")))
stray = first("stray", "planted", "provider.fallback")
check("a planted fallback fails", stray["status"] == "fail" and "Det" in stray["message"], stray["message"])
check("it points to its line", stray["file"] == "model.py", str(stray["file"]))
check("nothing is timed then", first("stray", "planted", "latency.measured")["status"] == "skip")
check("the options have a row of their own", bool(found("net", "loose", "parity.deployed")))
check("strict options have one row", not found("net", "strict", "parity.deployed"))
rows = error("loose", False), error("loose", True)
check("the strict row is strict", rows[0] <= 5e-6, f"relL2 strict {rows[0]:.2g}, with the options {rows[1]:.2g}")
timed = [one for one in results.get(("net", "loose"), {}).get("latency", []) if one["samples_ms"]]
shown = f"p50 {timed[0]['p50_ms']:.4g} ms" if timed else "none"
check("latency is taken with copies outside", bool(timed) and timed[0]["transfers"] == "outside", shown)
peaks = results.get(("net", "loose"), {}).get("memory", [])
peak = peaks[0] if peaks else {"host_bytes": None, "host_note": "absent", "device_bytes": None, "device_note": "absent"}
shown = f"{(peak['host_bytes'] or 0) >> 20} MiB {peak['host_note']}"
check("the peak of the host's memory is told", (peak["host_bytes"] or 0) > 0, shown)
if mode == "gpu":
    # Two values of [4, 64, 128, 64] in float32 are alive at once.
    shown = f"{(peak['device_bytes'] or 0) / 2**20:.1f} MiB {peak['device_note']}"
    check("the peak of the device's memory is told", (peak["device_bytes"] or 0) >= 2 * 4 * 64 * 128 * 64 * 4, shown)
check("all of it took under eight minutes", int(seconds) < 480, f"{seconds} s")
sys.exit(1 if failed else 0)
CHECKS
