"""Lock files of four kinds, as their tools write them."""

import hashlib

import pytest

from onnx_ci import lock
from onnx_ci.errors import ExitCode, UsageError
from onnx_ci.records.model import LockSpec, Pin

UV = """version = 1
revision = 5
requires-python = ">=3.11"

[[package]]
name = "shop"
version = "1"
source = { virtual = "." }
dependencies = [{ name = "torch", marker = "sys_platform == 'linux'" }]

[[package]]
name = "Torch"
version = "2.9.0"
source = { registry = "https://pypi.org/simple" }
resolution-markers = ["sys_platform == 'darwin'", "sys_platform == 'win32'"]

[[package]]
name = "torch"
version = "2.9.0+cpu"
source = { registry = "https://download.pytorch.org/whl/cpu" }
resolution-markers = [
    "sys_platform == 'linux'",
]

[[package]]
name = "inhouse"
version = "0.1"
source = { git = "https://example.com/inhouse?rev=abc#abc" }

[[package]]
name = "dynamic"
source = { editable = "packages/dynamic" }
"""

POETRY = """[[package]]
name = "numpy"
version = "2.1.0"
description = "Arrays"
optional = false
python-versions = ">=3.10"
groups = ["main"]
markers = "python_version >= \\"3.11\\""
files = []

[[package]]
name = "ruff"
version = "0.9.0"
groups = ["dev", "main"]
markers = {main = "extra == \\"lint\\"", dev = "python_version < \\"4\\""}

[[package]]
name = "inhouse"
version = "0.1"

[package.source]
type = "git"
url = "https://example.com/inhouse.git"

[[package]]
name = "private"
version = "3"

[package.source]
type = "legacy"
url = "https://packages.example.com/simple"

[metadata]
lock-version = "2.1"
"""

PYLOCK = """lock-version = "1.0"
created-by = "pip"

[[packages]]
name = "onnx"
version = "1.21.0"
marker = "python_version >= '3.11'"
[[packages.wheels]]
name = "onnx-1.21.0-py3-none-any.whl"
url = "https://example.com/onnx-1.21.0-py3-none-any.whl"
hashes = { sha256 = "00" }

[[packages]]
name = "inhouse"
[packages.directory]
path = "."
editable = true
"""

REQUIREMENTS = """# made by pip-compile
--index-url https://pypi.org/simple
Torch==2.9.0+cpu ; sys_platform == "linux" \\
    --hash=sha256:00 \\
    --hash=sha256:11
    # via -r requirements.in
onnx_runtime.Extra [a,b] == 1.2   # a comment
numpy>=2
pandas==2.*
exact===1.0-odd
scipy==1.0,!=1.1
-e ./packages/inhouse
./wheels/inhouse-1.0-py3-none-any.whl
inhouse @ https://example.com/inhouse.zip#sha256=00
https://example.com/other-1.0.tar.gz
-r more/base.txt
--constraint=constraints.txt
"""


@pytest.fixture
def read(tmp_path):
    def write_and_read(*names, **files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_text(text, encoding="utf-8")
        return lock.read(LockSpec(files=dict.fromkeys(names, ""), drift="warn"), tmp_path)

    write_and_read.root = tmp_path
    return write_and_read


def test_requirements_give_what_they_fix_and_nothing_else(read):
    found = read(
        "requirements.lock",
        **{
            "requirements.lock": REQUIREMENTS,
            "more/base.txt": "-r ../requirements.lock\n-c deeper.txt\nclick==8.1\n",
            "more/deeper.txt": "rich==13.7\n",
            "constraints.txt": "six==1.16\n",
        },
    )
    assert found.pins == [
        Pin(name="torch", version="2.9.0+cpu", marker='sys_platform == "linux"', file="requirements.lock", line=3),
        Pin(name="onnx-runtime-extra", version="1.2", file="requirements.lock", line=7),
        Pin(name="exact", version="1.0-odd", file="requirements.lock", line=10),
        Pin(name="click", version="8.1", file="more/base.txt", line=3),
        Pin(name="rich", version="13.7", file="more/deeper.txt", line=1),
        Pin(name="six", version="1.16", file="constraints.txt", line=1),
    ]
    assert list(found.files) == ["requirements.lock", "more/base.txt", "more/deeper.txt", "constraints.txt"]
    assert found.files["constraints.txt"] == hashlib.sha256(b"six==1.16\n").hexdigest()
    assert found.drift == "warn"


@pytest.mark.parametrize("line", ["-rmore.txt", "-r more.txt", "-r 'more.txt'", "--requirement more.txt  # why"])
def test_each_way_to_include(read, line):
    assert read("a.txt", **{"a.txt": f"{line}\n", "more.txt": "six==1\n"}).pins[0].name == "six"


def test_uv_gives_each_fork_with_its_markers_and_leaves_out_what_has_no_version_of_its_own(read):
    found = read("uv.lock", **{"uv.lock": UV}).pins
    assert found == [
        Pin(
            name="torch",
            version="2.9.0",
            marker="(sys_platform == 'darwin') or (sys_platform == 'win32')",
            file="uv.lock",
            line=11,
        ),
        Pin(name="torch", version="2.9.0+cpu", marker="(sys_platform == 'linux')", file="uv.lock", line=17),
    ]


def test_poetry_gives_the_markers_of_all_groups(read):
    found = read("poetry.lock", **{"poetry.lock": POETRY}).pins
    assert [(pin.name, pin.version, pin.line) for pin in found] == [
        ("numpy", "2.1.0", 1),
        ("ruff", "0.9.0", 11),
        ("private", "3", 25),
    ]
    assert found[0].marker == '(python_version >= "3.11")'
    assert found[1].marker == '(extra == "lint") or (python_version < "4")'
    assert found[2].marker == ""


@pytest.mark.parametrize("name", ["pylock.toml", "pylock.gpu.toml"])
def test_pylock(read, name):
    assert read(name, **{name: PYLOCK}).pins == [
        Pin(name="onnx", version="1.21.0", marker='python_version >= "3.11"', file=name, line=4)
    ]


def test_several_files_are_read_in_their_order(read):
    found = read("b.txt", "a.txt", **{"a.txt": "a==1\n", "b.txt": "b==1\n"})
    assert [pin.name for pin in found.pins] == ["b", "a"]


@pytest.mark.parametrize(
    ("files", "where", "said"),
    [
        ({}, "a.txt", "the lock file does not exist"),
        ({"a.txt": "-r gone.txt\n"}, "a.txt", "includes gone.txt, which does not exist"),
        ({"a.txt": "-r ../../gone.txt\n"}, "a.txt", "which lies outside the project"),
    ],
)
def test_a_file_that_is_not_there_stops_with_exit_2(read, files, where, said):
    with pytest.raises(UsageError) as caught:
        read("a.txt", **files)
    assert said in caught.value.what
    assert caught.value.where == where
    assert caught.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("uv.lock", "version = [", "is not valid TOML"),
        ("uv.lock", "[[package]]\nversion = '1'\n", "a package has no name"),
        ("uv.lock", "[[package]]\nname = 3\n", "name is not str"),
        ("uv.lock", "package = 3\n", "is not a lock file"),
        ("uv.lock", "package = [3]\n", "is not a lock file"),
        ("uv.lock", "[[package]]\nname = 'a'\nresolution-markers = [1]\n", "marker is not str"),
        ("poetry.lock", "[[package]]\nname = 'a'\nmarkers = 3\n", "marker is not str"),
        ("pylock.toml", "lock-version = '1.0'\n", "is not a pylock.toml"),
        ("other.toml", "a = 1\n", "is no known lock file"),
        ("Pipfile.lock", "{}", "is not a lock file that onnx-ci reads"),
        ("sub/pyproject.toml", "", "is not a lock file that onnx-ci reads"),
    ],
)
def test_a_file_that_is_something_else_stops_with_exit_2(read, name, text, said):
    with pytest.raises(UsageError) as caught:
        read(name, **{name: text})
    assert said in caught.value.what
    assert caught.value.where == name
    assert caught.value.exit_code == ExitCode.USAGE


def test_a_file_in_another_encoding_is_refused(read):
    (read.root / "a.txt").write_bytes("torch==2.9.0".encode("utf-16"))
    with pytest.raises(UsageError, match="is not UTF-8"):
        read("a.txt")


def test_a_link_out_of_the_project_is_refused(read, tmp_path_factory):
    other = tmp_path_factory.mktemp("other") / "a.txt"
    other.write_text("six==1\n")
    (read.root / "a.txt").symlink_to(other)
    with pytest.raises(UsageError, match="lies outside the project"):
        read("a.txt")


def test_a_lock_without_files_is_read_as_nothing(read):
    assert read() == LockSpec(drift="warn")
