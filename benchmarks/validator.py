"""What a service pays for the validator: its import beyond numpy's, and a call beside a run of a tiny model.

    python benchmarks/validator.py [--rounds 15]

Imports are timed in fresh processes, in CPU milliseconds; calls and runs turn by turn, in microseconds. The model is
one addition over a few numbers: nothing runs in less, so the ratio is the highest there is.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

from onnx_ci.records.contract import Contract, DimContract, TensorContract
from onnx_ci.records.environment import Environment
from onnx_ci.runtime import Validator

ROOT = Path(__file__).resolve().parents[1]
IMPORT = """
import time, numpy
began = time.process_time()
from onnx_ci.runtime import Validator, validate
print((time.process_time() - began) * 1e3)
"""
CALLS = 2000


def import_milliseconds(rounds: int) -> list[float]:
    """CPU milliseconds of the import in fresh processes; one more goes before, which writes the bytecode."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", IMPORT]
    done = [subprocess.run(command, env=environment, check=True, capture_output=True) for _ in range(rounds + 1)]
    return [float(one.stdout) for one in done[1:]]


def contract(count: int) -> Contract:
    """So many inputs [batch, 4, length], each with the same dims."""
    shape: list[int | str] = ["batch", 4, "length"]
    return Contract(
        schema_version=1,
        model="tiny",
        variant=None,
        contract_version=1,
        inputs=[TensorContract(name=f"x{at}", dtype="float32", shape=shape) for at in range(count)],
        outputs=[],
        dims={"batch": DimContract(min=1, max=8), "length": DimContract(min=8, max=64, multiple_of=8)},
        batch="independent",
        strategy="own",
        exporter="dynamo",
        opset=20,
        ir_version=10,
        domains={"": 20},
        environment=Environment(onnx_ci="", python="", platform="", cpu="", cores=1),
    )


def session(count: int) -> onnxruntime.InferenceSession:
    """The sum of its inputs."""
    shape = ["batch", 4, "length"]
    names = [f"x{at}" for at in range(count)]
    graph = helper.make_graph(
        [helper.make_node("Sum", names, ["y"])],
        "main",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in names],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def microseconds(run: Callable[[], object]) -> float:
    """Wall microseconds of one call, from many."""
    began = time.perf_counter()
    for _ in range(CALLS):
        run()
    return (time.perf_counter() - began) / CALLS * 1e6


def compare(count: int, rounds: int) -> tuple[float, float, float]:
    """Medians of a check, of a run, and of their ratio in each round."""
    feeds: Mapping[str, np.ndarray] = {f"x{at}": np.ones((2, 4, 16), np.float32) for at in range(count)}
    check, runs = Validator(contract(count)), session(count)
    pairs = [
        (microseconds(lambda: check(feeds)), microseconds(lambda: runs.run(None, dict(feeds)))) for _ in range(rounds)
    ]
    ratios = [one / other for one, other in pairs]
    return (
        statistics.median(one for one, _ in pairs),
        statistics.median(other for _, other in pairs),
        statistics.median(ratios),
    )


def main() -> None:
    """Prints the figures with their conditions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    print(
        f"Python {platform.python_version()}, numpy {np.__version__}, ONNX Runtime {onnxruntime.__version__}, 1 thread"
    )
    found = import_milliseconds(rounds)
    print(
        f"import: {statistics.median(found):.1f} ms beyond numpy's (best {min(found):.1f}, n={rounds}); allowed are 20"
    )
    for count in (1, 3, 30):
        check, run, ratio = compare(count, rounds)
        print(f"{count:2} inputs: check {check:.1f} µs, run {run:.1f} µs, ratio {ratio:.2f} (medians, n={rounds})")


if __name__ == "__main__":
    main()
