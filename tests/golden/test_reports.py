"""What a reviewer sees, as files that are reviewed themselves."""

import re
from dataclasses import replace

import pytest

from onnx_ci import __version__
from onnx_ci.records.report import Leg, Plan
from onnx_ci.report import annotations, junit, markdown
from onnx_ci.report.comment import signature
from onnx_ci.report.context import Context, Run
from onnx_ci.report.merge import merge
from tests.fakes.results import DIGEST, MACHINE, PACKAGES, contract, finding, healthy, realistic, result, slower

CONTEXT = Context(
    run=Run(id=123, attempt=1, number=17, sha="4c1d" * 10), url="https://github.com/org/name/actions/runs/123"
)


def all_well():
    results = [one for name in ("classifier", "tokens") for one in healthy(name, 4.05, 6.31)]
    return merge(results, None, [])


def broken():
    results, plan, base = realistic()
    return merge(results, plan, [], base)


def unknown():
    died = result(
        "classifier",
        "gpu",
        [
            finding(
                "provider.missing",
                "error",
                "CUDAExecutionProvider",
                "asked for CUDAExecutionProvider; this onnxruntime has CPUExecutionProvider only",
                hint="Install onnxruntime-gpu on the runner, or give the target another provider.",
            )
        ],
        provider=None,
    )
    legs = [
        Leg(model=name, variant=None, target=target, required=True)
        for name in ("classifier", "tokens")
        for target in ("export", "cpu", "gpu")
    ]
    results = [*healthy("classifier", 4.05, 6.31), died, *healthy("tokens", 2.6, 3.0)]
    return merge(results, Plan(schema_version=1, config="onnx-ci.toml", legs=legs), ["stray.json: not JSON"])


def not_exported():
    failed = result(
        "pool",
        "export",
        [
            finding(
                "export.decomposition",
                "fail",
                "step 2 of 3",
                "round(w * short / h) turns a size into a Python number",
                hint="Make the size static, or compute it with integers.",
                file="models/pool.py",
                line=12,
            )
        ],
        artifact=None,
    )
    legs = [Leg(model="pool", variant=None, target=target, required=True) for target in ("export", "cpu")]
    gpu = Leg(model="pool", variant=None, target="gpu", required=True, runs_on=["self-hosted"])
    legs.append(replace(gpu, not_run="not run on forks: a self-hosted runner does not take their code"))
    return merge([failed], Plan(schema_version=1, config="onnx-ci.toml", legs=legs), [])


def untouched():
    return merge([], Plan(schema_version=1, config="onnx-ci.toml", legs=[]), [])


def cut():
    results = [
        result(
            f"model-{at:02}",
            "cpu",
            [finding("parity.runtime", "fail" if at < 20 else "pass", "logits", f"relL2 {at}e-3, allowed 5e-6")],
            artifact=DIGEST["tokens"],
        )
        for at in range(40)
    ]
    return merge(results, None, [])


def slow():
    """Slower than a base of another commit, exported with another torch."""
    export, cpu = healthy("tokens", 2.6, 3.02)
    older = replace(MACHINE, packages=PACKAGES | {"torch": "2.12.1"})
    notes = ["The base is commit 0a1b0a1b0a, not 2c3d2c3d2c that this one is merged into."]
    slowed = replace(cpu, findings=[*cpu.findings, slower()])
    merged = merge([export, slowed], None, [], {"tokens": contract("tokens", environment=older)}, notes)
    return replace(merged, base_commit="0a1b" * 10)


REPORTS = {
    "all-well": all_well,
    "broken": broken,
    "unknown": unknown,
    "not-exported": not_exported,
    "untouched": untouched,
    "slower": slow,
}


@pytest.mark.parametrize("name", REPORTS)
def test_comment(name, golden):
    text = markdown.comment(REPORTS[name](), CONTEXT, marker=signature("onnx-ci.toml", CONTEXT.run))
    golden(f"{name}.md", text.replace(__version__, "VERSION"))


def test_comment_cut_to_fit(golden):
    text = markdown.comment(cut(), CONTEXT, 4000, marker=signature("onnx-ci.toml", CONTEXT.run))
    golden("cut.md", text.replace(__version__, "VERSION"))


@pytest.mark.parametrize("name", ["broken", "unknown"])
def test_junit(name, golden):
    golden(
        f"{name}.junit.xml",
        re.sub(r'(time="\d+\.\d{3})\d*', r"\1", junit.render(REPORTS[name](), config="onnx-ci.toml")),
    )


@pytest.mark.parametrize("name", ["broken", "unknown"])
def test_annotations(name, golden):
    found = annotations.collect(REPORTS[name](), config="onnx-ci.toml")
    golden(f"{name}.annotations.txt", "\n".join(annotations.commands(found, where="the step summary")) + "\n")
