"""What is installed against what is locked, and against what is needed."""

import dataclasses
from pathlib import Path

import pytest
import tomllib
from packaging.requirements import Requirement

from onnx_ci.lock import check_environment, compare
from onnx_ci.lock.installed import MINIMUM, RUNTIMES
from onnx_ci.lock.versions import agree, applies, older
from onnx_ci.records.environment import Environment
from onnx_ci.records.model import LockSpec, Pin

LINUX = {"sys_platform": "linux", "python_version": "3.11", "python_full_version": "3.11.7"}
PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"


def environment(**packages):
    named = {name.replace("_", "-"): version for name, version in packages.items()}
    return Environment(
        onnx_ci="1", python="3.11.7", platform="Linux", cpu="", cores=2, packages=named, markers=dict(LINUX)
    )


def locked(*pins, drift="fail"):
    made = [
        Pin(name=name, version=version, marker=marker, file="a.lock", line=at)
        for at, (name, version, marker) in enumerate(((*pin, "")[:3] for pin in pins), 1)
    ]
    return LockSpec(files={"a.lock": "0" * 64}, pins=made, drift=drift)


def judged(lock, installed, needed=()):
    return [(found.status, found.subject) for found in compare(lock, installed, frozenset(needed))]


@pytest.mark.parametrize(
    ("wanted", "found", "same"),
    [
        ("2.9.0", "2.9.0", True),
        ("2.9", "2.9.0", True),
        ("2.9.0", "2.9.0+cpu", True),
        ("2.9.0+cpu", "2.9.0", False),
        ("2.9.0+cpu", "2.9.0+cu128", False),
        ("2.9.0+cpu", "2.9.0+cpu", True),
        ("2.9.0", "2.9.1", False),
        ("2.9.0", "2.9.0.post1", False),
        ("2.9.0rc1", "2.9.0-rc.1", True),
        ("2.9.0", "2.9.0.dev1", False),
        ("odd-one", "odd-one", True),
        ("odd-one", "1.0", False),
    ],
)
def test_when_versions_agree(wanted, found, same):
    assert agree(wanted, found) is same


@pytest.mark.parametrize(
    ("marker", "holds"),
    [
        ("", True),
        ("sys_platform == 'linux'", True),
        ("sys_platform == 'win32'", False),
        ("python_version >= '3.11' and sys_platform != 'darwin'", True),
        ("python_full_version < '3.11.7'", False),
        ("extra == 'gpu'", True),
        ("extra == 'gpu' and sys_platform == 'win32'", False),
        ("sys_platform == 'linux' and extra != 'gpu'", True),
        ("'dev' in dependency_groups", True),
        ("'dev' in dependency_groups and sys_platform == 'win32'", False),
        ("'gpu' in extras", True),
        ("nonsense", None),
        ("sys_platform ==", None),
    ],
)
def test_when_a_pin_holds(marker, holds):
    assert applies(marker, LINUX) is holds


@pytest.mark.parametrize(
    ("installed", "minimum", "is_older"),
    [
        ("1.20.1", "1.21", True),
        ("1.21", "1.21", False),
        ("1.21.0rc1", "1.21", False),
        ("2.9.0a0+145a3a7bda.nv25.10", "2.9", False),
        ("2.10", "2.9", False),
        ("2", "2.0.1", True),
        ("built-today", "1.0", None),
    ],
)
def test_when_a_version_is_too_old(installed, minimum, is_older):
    assert older(installed, minimum) is is_older


def test_without_lock_files_nothing_is_said():
    assert compare(LockSpec(), environment(torch="2.9.0"), frozenset({"onnx"})) == []


def test_all_that_agree_are_one_pass_with_their_number():
    found = compare(
        locked(("torch", "2.9.0"), ("onnx", "1.21.0"), ("absent", "1")),
        environment(torch="2.9.0+cpu", onnx="1.21.0", pip="25"),
        frozenset({"torch"}),
    )
    assert [(one.status, one.message) for one in found] == [("pass", "2 installed packages agree with a.lock")]
    assert found[0].data["compared"] == 2


def test_each_package_that_drifted_is_a_finding_with_both_versions_and_its_place():
    found = compare(
        locked(("onnx", "1.21.0"), ("torch", "2.9.0"), ("numpy", "2.1.0")),
        environment(torch="2.8.0", onnx="1.21.0", numpy="1.26"),
        frozenset(),
    )
    assert [(one.rule, one.status, one.subject) for one in found] == [
        ("environment.lock-drift", "fail", "numpy"),
        ("environment.lock-drift", "fail", "torch"),
    ]
    assert found[1].message == "torch is locked to 2.9.0 (a.lock:2), installed is 2.8.0"
    assert (found[1].file, found[1].line) == ("a.lock", 2)
    assert found[1].data == {"locked": ["2.9.0"], "installed": "2.8.0"}


def test_drift_warns_where_the_config_says_so():
    assert judged(locked(("torch", "2.9.0"), drift="warn"), environment(torch="2.8.0")) == [("warn", "torch")]


def test_a_package_that_is_not_installed_counts_where_the_job_needs_it():
    lock, installed = locked(("torch", "2.9.0"), ("onnx", "1.21")), environment(onnx="1.21")
    assert judged(lock, installed) == [("pass", "")]
    assert judged(lock, installed, {"torch"}) == [("fail", "torch")]


def test_a_pin_for_another_platform_is_not_compared():
    lock = locked(("torch", "2.9.0", "sys_platform == 'darwin'"), ("torch", "2.9.0+cpu", "sys_platform == 'linux'"))
    assert judged(lock, environment(torch="2.9.0+cpu")) == [("pass", "")]
    assert judged(lock, environment(torch="2.9.0")) == [("fail", "torch")]


def test_any_of_several_pins_will_do():
    lock = locked(("torch", "2.9.0+cpu", "extra == 'cpu'"), ("torch", "2.9.0+cu128", "extra == 'gpu'"))
    assert judged(lock, environment(torch="2.9.0+cu128")) == [("pass", "")]
    found = compare(lock, environment(torch="2.9.0+rocm6"), frozenset())
    assert found[0].message == "torch is locked to 2.9.0+cpu or 2.9.0+cu128 (a.lock:1), installed is 2.9.0+rocm6"


def test_a_marker_that_can_not_be_read_is_left_out_and_counted():
    found = compare(
        locked(("torch", "2.9.0", "nonsense"), ("onnx", "1.21")), environment(torch="2.8", onnx="1.21"), frozenset()
    )
    assert [one.status for one in found] == ["pass"]
    assert "1 with a marker that can't be read were left out" in found[0].message


@pytest.mark.parametrize("pins", [[], [("absent", "1")], [("torch", "2.9.0", "sys_platform == 'win32'")]])
def test_a_lock_that_compares_nothing_does_not_pass(pins):
    found = compare(locked(*pins), environment(torch="2.8"), frozenset())
    assert [one.status for one in found] == ["warn"]
    assert "no version was compared" in found[0].message


def test_another_build_of_the_runtime_stands_for_the_locked_one():
    lock = locked(("onnxruntime", "1.23.0"), ("onnx", "1.21"))
    needed = {"onnxruntime"}
    assert judged(lock, environment(onnxruntime_gpu="1.23.0", onnx="1.21"), needed) == [("pass", "")]
    assert judged(lock, environment(onnxruntime_gpu="1.22.0", onnx="1.21"), needed) == [("warn", "onnxruntime")]
    assert judged(lock, environment(onnx="1.21"), needed) == [("fail", "onnxruntime")]


def statuses(installed, *needed):
    return {one.rule.partition(".")[2]: (one.status, one.subject) for one in check_environment(installed, {*needed})}


def test_a_sound_environment_passes_each_rule():
    installed = environment(onnx="1.23.2", onnxruntime_gpu="1.32.0", numpy="2.1")
    assert statuses(installed, "onnx", "onnxruntime", "numpy") == {
        "two-runtimes": ("pass", "onnxruntime"),
        "missing": ("pass", ""),
        "too-old": ("pass", ""),
    }


def test_two_runtimes_at_once_fail():
    found = check_environment(environment(onnxruntime="1.32.0", onnxruntime_gpu="1.31.0"), frozenset())
    assert (found[0].rule, found[0].status) == ("environment.two-runtimes", "fail")
    assert "onnxruntime 1.32.0 and onnxruntime-gpu 1.31.0 are installed together" in found[0].message
    assert "pip uninstall -y onnxruntime onnxruntime-gpu" in found[0].hint


def test_companions_of_the_runtime_are_no_second_one():
    installed = environment(onnxruntime="1.32.0", onnxruntime_extensions="0.14", onnxruntime_genai="0.9")
    assert statuses(installed)["two-runtimes"] == ("pass", "onnxruntime")
    assert not RUNTIMES & {"onnxruntime-extensions", "onnxruntime-genai", "onnxruntime-tools"}


def test_what_is_needed_and_missing_is_an_error():
    assert statuses(environment(onnx="1.23"), "onnx", "torch")["missing"] == ("error", "torch")
    assert statuses(environment(onnx="1.23"), "onnxruntime")["missing"] == ("error", "onnxruntime")


def test_what_is_needed_and_too_old_fails():
    found = statuses(environment(onnx="1.20.0", torch="2.0"), "onnx")
    assert found["too-old"] == ("fail", "onnx")


def test_what_is_old_and_not_needed_is_left_alone():
    assert "too-old" not in statuses(environment(torch="2.0"))


def test_a_version_that_is_none_warns():
    assert statuses(environment(onnx="built-today"), "onnx")["too-old"] == ("warn", "onnx")


def test_the_minimum_is_what_our_own_package_asks_for():
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    asked = {one.name: str(one.specifier) for one in map(Requirement, extras["export"])}
    assert asked == {name: f">={version}" for name, version in MINIMUM.items()}


def test_an_environment_that_could_not_be_told_is_no_list_of_missing_packages():
    unknown = dataclasses.replace(environment(), python="")
    assert check_environment(unknown, frozenset({"torch"})) == []
    assert judged(locked(("torch", "2.9.0")), unknown, {"torch"}) == [("skip", "")]
