"""Made-up results that look like real ones, for tests of the report and for the picture of the comment."""

from dataclasses import replace
from typing import Any

from onnx_ci.records.contract import Contract, DimContract, TensorContract
from onnx_ci.records.environment import Environment
from onnx_ci.records.report import Leg, Plan
from onnx_ci.records.result import Finding, OutputFigures, Result, StageCost, Timing, finding, worst

PACKAGES = {
    "torch": "2.13.0",
    "onnx": "1.23.2",
    "onnx-ir": "1.1.0",
    "onnxscript": "0.7.2",
    "onnxruntime": "1.32.0",
    "numpy": "2.3.4",
    "pillow": "12.0.0",
}
MACHINE = Environment(
    onnx_ci="1.0.0",
    python="3.11.7",
    platform="Linux-6.8-x86_64",
    cpu="AMD EPYC 7763",
    cores=4,
    packages=PACKAGES,
    providers=["CPUExecutionProvider"],
)
GPU_MACHINE = Environment(
    onnx_ci="1.0.0",
    python="3.11.7",
    platform="Linux-6.8-x86_64",
    cpu="Intel Xeon Gold 6448Y",
    cores=16,
    gpu="NVIDIA A10, driver 570.86",
    packages={name: version for name, version in PACKAGES.items() if name in ("onnx", "numpy")}
    | {"onnxruntime-gpu": "1.32.0"},
    providers=["CUDAExecutionProvider", "CPUExecutionProvider"],
)
DIGEST = {
    "classifier": "1f0c6a2be9d84f7700000000000000000000000000000000000000000000000a",
    "tokens": "8d21e77c03aa51b900000000000000000000000000000000000000000000000b",
    "pool@480x640": "c94e10fd7be2268400000000000000000000000000000000000000000000000c",
    "recurrent": "03b7aa915de07c1200000000000000000000000000000000000000000000000d",
}


def result(model: str, target: str, findings: list[Finding], **more: Any) -> Result:
    """A result whose status is its findings' worst."""
    name, _, variant = model.partition("@")
    given: dict[str, Any] = {
        "schema_version": 1,
        "model": name,
        "variant": variant or None,
        "target": target,
        "required": True,
        "status": worst([one.status for one in findings]),
        "artifact": DIGEST.get(model),
        "environment": MACHINE,
        "provider": None if target == "export" else "CPUExecutionProvider",
        "stages": {"parity": StageCost(seconds=1.25, peak_bytes=512 << 20)},
        "findings": findings,
    }
    return Result(**(given | more))


def contract(model: str = "classifier", **more: Any) -> Contract:
    """A contract of a model that classifies images."""
    name, _, variant = model.partition("@")
    given: dict[str, Any] = {
        "schema_version": 1,
        "model": name,
        "variant": variant or None,
        "contract_version": 1,
        "inputs": [TensorContract(name="images", dtype="float32", shape=["batch", 3, "height", "width"])],
        "outputs": [TensorContract(name="logits", dtype="float32", shape=["batch", 10])],
        "dims": {
            "batch": DimContract(min=1, max=8, declared=True),
            "height": DimContract(min=32, max=512, declared=True),
            "width": DimContract(min=32, max=512, declared=True),
        },
        "batch": "independent",
        "strategy": "own",
        "exporter": "dynamo",
        "opset": 20,
        "ir_version": 10,
        "domains": {"": 20},
        "environment": MACHINE,
    }
    return Contract(**(given | more))


def figures(output: str, error: float, limit: float | None = 5e-6, **more: Any) -> OutputFigures:
    """Figures of one output against the oracle; broken where the error is over the limit."""
    given: dict[str, Any] = {
        "case": "example",
        "output": output,
        "dtype": "float32",
        "shape": [2, 1000],
        "dims": {"batch": 2},
        "status": "pass" if limit is None or error <= limit else "fail",
        "against": "oracle",
        "e_torch": 1.1e-7,
        "e_runtime": error,
        "limit": limit,
        "max_abs": error * 3,
        "max_abs_at": [1, 17],
        "max_rel": error * 9,
        "cosine": 1.0 - error,
        "ulp": 12.0,
        "beyond": 0.0,
        "argmax_agreement": 1.0,
    }
    return OutputFigures(**(given | more))


def timing(runner: str, p50: float, **more: Any) -> Timing:
    """Timings around a median, in milliseconds."""
    given: dict[str, Any] = {
        "runner": runner,
        "case": "example",
        "dims": {"batch": 2},
        "provider": "CPUExecutionProvider",
        "threads": 1,
        "warmup": 5,
        "samples_ms": [p50 * (0.98 + 0.001 * at) for at in range(41)],
        "p50_ms": p50,
        "p90_ms": p50 * 1.016,
        "p99_ms": p50 * 1.02,
    }
    return Timing(**(given | more))


def passed(stage_rule: str, subject: str = "", message: str = "as declared") -> Finding:
    """A finding that all is well."""
    return finding(stage_rule, "pass", subject, message)


def slower() -> Finding:
    """The base's work done four times over, and what both profiles say of it."""
    nodes = [
        {"node": f"node_matmul_{at}", "op": "MatMul", "us": 1020.5 - at, "file": "models/tokens.py", "line": 31}
        for at in range(4)
    ]
    told = {
        "operators": [
            {"op": "MatMul", "head": 4, "base": 1, "head_us": 4076.0, "base_us": 1019.2},
            {"op": "Transpose", "head": 3, "base": 0, "head_us": 310.0, "base_us": 0.0},
        ],
        "hottest": [*nodes, {"node": "node_softmax", "op": "Softmax", "us": 12.0}],
        "nodes": {"head": 9, "base": 3},
        "overhead_us": {"head": 310.0, "base": 0.0},
    }
    return finding(
        "latency.regression",
        "fail",
        "",
        "3.91 times the base's time for example, batch=2 (95 % interval 3.84 to 3.98, 20 pairs; allowed 1.1; the base "
        "against itself 0.99 to 1.01); by the profile 1 → 4 × MatMul 1.02 → 4.08 ms",
        hint="Look at the operators that take longer; raise latency.max_regression if the time is well spent.",
        file="models/tokens.py",
        line=31,
        data={"ratio": 3.91, "why": told},
    )


def healthy(model: str, runtime: float, eager: float, *, error: float = 1.3e-7) -> list[Result]:
    """Export and CPU result of a model that keeps its promises."""
    return [
        result(
            model,
            "export",
            [passed("export.captured"), passed("contract.range", "batch")],
            latency=[timing("onnxruntime", runtime * 1.01), timing("eager", eager)],
        ),
        result(
            model,
            "cpu",
            [
                passed("structure.checker"),
                passed("parity.runtime", "logits", "e_O 1.3e-7 within 5e-6"),
                passed("golden.drift", "logits", "as reviewed"),
                passed("provider.active"),
            ],
            parity=[figures("logits", error), figures("logits", error / 2, case="batch at its maximum")],
            latency=[timing("onnxruntime", runtime)],
        ),
    ]


def realistic() -> tuple[list[Result], Plan, dict[str, Contract]]:
    """A pull request that upgrades torch and breaks one of four models: results, plan and base."""
    broken = [
        result(
            "pool@480x640",
            "export",
            [
                finding(
                    "contract.range",
                    "fail",
                    "height",
                    "declared 32 to 512, but the capture holds only for 480: pooled_size() makes a number of it",
                    hint="Compute the size with integer arithmetic on the symbolic shape, or declare the dim static.",
                    file="models/pool.py",
                    line=41,
                ),
                passed("export.captured"),
            ],
            latency=[timing("onnxruntime", 9.4), timing("eager", 14.2)],
        ),
        result(
            "pool@480x640",
            "cpu",
            [
                finding(
                    "parity.runtime",
                    "fail",
                    "embedding",
                    "relL2 0.57 against PyTorch in float64, allowed 5e-6 (4 × PyTorch's own 1.1e-7, at least 5e-6), "
                    "at height 512, width 640; first off at node adaptive_avg_pool2d",
                    hint="The pool has a kernel of 4×4 written into the graph. Use a size that divides, or export "
                    "one variant for each size.",
                    file="models/pool.py",
                    line=44,
                ),
                finding("golden.drift", "fail", "embedding", "relL2 0.57 from the golden, allowed 1e-5"),
                passed("structure.checker"),
            ],
            parity=[
                figures("embedding", 0.57, case="height at its maximum"),
                figures("embedding", 1.4e-7, case="example"),
            ],
            latency=[timing("onnxruntime", 9.31)],
        ),
    ]
    warned = result(
        "tokens",
        "gpu",
        [
            passed("parity.runtime", "last_hidden_state"),
            passed("golden.drift", "last_hidden_state"),
            finding(
                "provider.cpu-share",
                "warn",
                "/embeddings/Gather",
                "2 nodes ran on the CPU, for 0.4 % of the time",
                hint="Name them in targets.gpu.cpu_ops if that is meant.",
            ),
        ],
        environment=GPU_MACHINE,
        provider="CUDAExecutionProvider",
        parity=[
            figures("last_hidden_state", 3.9e-7),
            figures(
                "pooled",
                0.0,
                limit=None,
                e_runtime=3.1e-6,
                status="pass",
                against="eager",
                max_abs=2.4e-6,
                note="TopK upstream: judged by atol 1e-5 and rtol 1e-4 against PyTorch",
            ),
        ],
        latency=[timing("onnxruntime", 0.84, provider="CUDAExecutionProvider")],
    )
    results = [
        *healthy("classifier", 4.05, 6.31),
        *healthy("tokens", 2.6, 3.02, error=2.2e-7),
        warned,
        *broken,
        *healthy("recurrent", 0.0712, 0.188, error=9.4e-8),
    ]
    legs = [
        Leg(model=name, variant=variant, target=target, required=target != "gpu")
        for name, variant in [("classifier", None), ("tokens", None), ("pool", "480x640"), ("recurrent", None)]
        for target in ("export", "cpu", "gpu")
        if target != "gpu" or name in ("tokens", "classifier")
    ]
    plan = Plan(schema_version=1, config="onnx-ci.toml", legs=legs, head_sha="4c1d" * 10)
    before = Environment(
        onnx_ci="1.0.0",
        python="3.11.7",
        platform=MACHINE.platform,
        cpu=MACHINE.cpu,
        cores=4,
        packages=PACKAGES | {"torch": "2.12.1", "onnxscript": "0.7.0"},
    )
    wider = DimContract(min=1, max=32, declared=True)
    probabilities = TensorContract(name="probabilities", dtype="float32", shape=["batch", 10])
    old = {name: contract(name, environment=before) for name in ("classifier", "tokens", "pool@480x640")}
    now = contract(
        "classifier",
        outputs=[*old["classifier"].outputs, probabilities],
        dims=old["classifier"].dims | {"batch": wider},
        preprocessing={"service/io.py": "7c4a8d09ca3762af"},
    )
    old["classifier"] = replace(old["classifier"], preprocessing={"service/io.py": "e59ff97941044f85"})
    return [replace(results[0], contract=now), *results[1:]], plan, old
