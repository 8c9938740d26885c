"""Workers that misbehave: each is an error of its own model, and the others' results stand."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from tests.fakes.workers import export

from onnx_ci.records.model import DimSpec, InputSpec, ModelSpec
from onnx_ci.worker.launch import Workers

pytestmark = pytest.mark.torch

ENTRY = """
import os, signal, subprocess, sys, time
import torch

def good():
    return torch.nn.Linear(3, 2).eval()

def aborts():
    print("about to abort", flush=True)
    os.abort()

def killed():
    os.kill(os.getpid(), signal.SIGKILL)

def leaves():
    os._exit(7)

def exits():
    sys.exit(3)

def raises():
    raise ValueError("no weights here")

def hangs():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    open("child.pid", "w").write(str(child.pid))
    time.sleep(600)

def eats():
    hoard = []
    while True:
        hoard.append(torch.ones(4 << 20))
        time.sleep(0.001)

def prints():
    print("::error::planted", flush=True)
    sys.stdout.write("{}\\n" * 3)
    os.write(1, b'{"id": 1, "kind": "result"}\\n')
    return good()

def no_module():
    return 42

def leaves_children():
    own = "import os, time; os.setsid(); time.sleep(600)"
    apart = subprocess.Popen([sys.executable, "-c", own])
    forked = os.fork()
    if forked == 0:
        time.sleep(600)
    open("children.pid", "w").write(f"{apart.pid} {forked}")
    return good()

def interrupts():
    raise KeyboardInterrupt

def looks():
    seen = sorted(name for name in os.environ if "TOKEN" in name or name.startswith("GITHUB_"))
    print("SEEN", seen, [name for name in sys.modules if name.partition(".")[0] in ("pydantic", "click", "rich")])
    return good()
"""


def model(function: str, **more) -> ModelSpec:
    return ModelSpec(
        name=function,
        entrypoint=f"entry.py:{function}",
        inputs={"input": InputSpec(dtype="float32", shape=["batch", 3])},
        dims={"batch": DimSpec(min=1, max=8, example=2)},
        declared_in="onnx-ci.toml",
        declared_at=1,
        **more,
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    root = tmp_path_factory.mktemp("project")
    (root / "entry.py").write_text(ENTRY)
    return root


@pytest.fixture(scope="module")
def workers(project):
    environment = {**os.environ, "GITHUB_TOKEN": "ghs_secret_value", "GITHUB_OUTPUT": "/channel"}
    with Workers(Path(sys.executable), folder=project, environment=environment, preload=["torch"]) as started:
        yield started


def runs(pid: int) -> bool:
    """Whether a process is there and no zombie: nobody may be left to reap one whose parent was killed."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


BROKEN = {
    "aborts": ("environment.worker", "SIGABRT"),
    "killed": ("environment.worker", "SIGKILL"),
    "leaves": ("environment.worker", "exit code 7"),
    "exits": ("export.entrypoint", "exit(3)"),
    "raises": ("export.entrypoint", "no weights here"),
    "no_module": ("export.entrypoint", "int"),
    "interrupts": ("export.entrypoint", "KeyboardInterrupt"),
}


@pytest.fixture(scope="module")
def results(project, workers):
    """All that break, and one that does not in their middle."""
    names = list(BROKEN)
    names.insert(3, "good")
    return {result.model: result for result in export(project, workers, *map(model, names))}


@pytest.mark.parametrize("function", BROKEN)
def test_a_worker_that_breaks_is_an_error_with_its_cause(results, function):
    rule, said = BROKEN[function]
    (found,) = [found for found in results[function].findings if found.status == "error"]
    assert results[function].status == "error"
    assert found.rule == rule
    assert said in found.message


def test_the_others_stand(results):
    assert results["good"].status in ("pass", "warn")
    assert results["good"].artifact


def test_what_it_printed_is_kept(results, project):
    (found,) = [found for found in results["aborts"].findings if found.status == "error"]
    assert "about to abort" in found.data["log"]
    assert "about to abort" in (project / "out" / "logs" / "aborts.export.log").read_text()


def test_one_that_hangs_is_stopped_with_its_children(project, workers):
    began = time.monotonic()
    (hung,) = export(project, workers, model("hangs", time_limit=20.0))  # room to get there on a busy machine
    assert time.monotonic() - began < 36  # as far beyond its limit as ever; the model would sleep for ten minutes
    assert "time_limit" in " ".join(found.message for found in hung.findings)
    assert not runs(int((project / "child.pid").read_text()))


def test_children_that_it_leaves_behind_end_with_it_and_hold_nothing_up(project, workers):
    (result,) = export(project, workers, model("leaves_children", time_limit=60.0))
    assert result.artifact
    children = [int(pid) for pid in (project / "children.pid").read_text().split()]
    deadline = time.monotonic() + 10
    while any(map(runs, children)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(runs, children))


def test_bad_input_leaves_no_traceback_of_ours(results, project):
    for function in ("raises", "no_module", "exits"):
        log = (project / "out" / "logs" / f"{function}.export.log").read_text()
        assert "onnx_ci/worker/serve.py" not in log


def test_one_that_eats_the_memory_is_stopped(project, workers):
    (broken,) = export(project, workers, model("eats", memory_limit=1 << 30))
    assert broken.status == "error"
    assert "memory_limit is 1024 MiB" in " ".join(found.message for found in broken.findings)


def test_what_user_code_prints_never_reaches_the_protocol(project, workers):
    (result,) = export(project, workers, model("prints"))
    assert result.status in ("pass", "warn")
    assert "::error::planted" in (project / "out" / "logs" / "prints.export.log").read_text()


def test_user_code_sees_no_token_and_none_of_the_tools_packages(project, workers):
    export(project, workers, model("looks"))
    log = (project / "out" / "logs" / "looks.export.log").read_text()
    assert "SEEN [] []" in log


def test_a_server_that_is_killed_is_started_anew(project, workers):
    export(project, workers, model("good"))
    os.killpg(workers._server.pid, signal.SIGKILL)
    workers._server._process.wait()
    (result,) = export(project, workers, model("good"))
    assert result.artifact


def test_without_fork_each_request_has_a_process_of_its_own(project):
    with Workers(Path(sys.executable), folder=project, environment=os.environ, fork=False) as spawned:
        good, broken, again = export(project, spawned, model("good"), model("aborts"), model("raises"))
    assert good.artifact
    assert broken.findings[-1].rule == "environment.worker"
    assert again.findings[-1].rule == "export.entrypoint"
