"""Entry points of every form load; what is wrong with one is said with its place and a way out."""

from __future__ import annotations

import pickle
import sys
import textwrap
from typing import NamedTuple

import pytest
from torch import nn

from onnx_ci.errors import ExitCode, OnnxCiError, UsageError
from onnx_ci.export import entrypoint
from onnx_ci.records.model import ModelSpec

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width=3):
        super().__init__()
        self.fc = nn.Linear(2, width)

    def forward(self, x):
        return self.fc(x)

def build(width=3):
    return Net(width).eval()
"""


class Project(NamedTuple):
    root: object

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def load(self, reference, **kwargs):
        return entrypoint.load(ModelSpec(name="net", entrypoint=reference, kwargs=kwargs), self.root)


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / ".git").mkdir()
    yield Project(tmp_path)
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def test_a_function_of_a_file_gets_the_configs_kwargs(project):
    file = project.write("models/thenet.py", NET)
    made = project.load("models/thenet.py:build", width=5)
    assert made.module.fc.out_features == 5
    assert made.file == file.resolve()
    assert (made.short, made.make_inputs, made.export_kwargs) == (False, None, {})


def test_a_function_of_a_module_is_found_from_the_root(project):
    project.write("somepkg/__init__.py", "")
    project.write("somepkg/nets.py", NET)
    assert isinstance(project.load("somepkg.nets:build").module, nn.Module)


def test_a_class_is_a_function_too(project):
    project.write("thenet.py", NET)
    assert project.load("thenet.py:Net", width=4).module.fc.out_features == 4


def test_the_short_form_reads_its_three_functions(project):
    project.write(
        "short.py",
        NET
        + """
def make_model():
    return build()

def make_inputs():
    return [("one", {"x": torch.ones(1, 2)})]

def export_kwargs():
    return {"opset_version": 20}
""",
    )
    made = project.load("short.py")
    assert made.short
    assert made.export_kwargs == {"opset_version": 20}
    assert made.make_inputs()[0][0] == "one"


def test_the_long_form_reads_no_export_kwargs(project):
    project.write("long.py", NET + "\ndef export_kwargs():\n    raise RuntimeError\n")
    assert project.load("long.py:build").export_kwargs == {}


def test_neighbours_in_the_files_folder_and_in_the_root_can_be_imported(project):
    project.write("nearhelper.py", "WIDTH = 2\n")
    project.write("models/layershelper.py", "HEIGHT = 3\n")
    project.write("models/uses.py", NET + "\nimport nearhelper\nfrom layershelper import HEIGHT\n")
    assert isinstance(project.load("models/uses.py:build").module, nn.Module)


def test_a_file_of_a_package_may_import_relatively(project):
    project.write("relpkg/__init__.py", "")
    project.write("relpkg/width.py", "WIDTH = 7\n")
    project.write("relpkg/relnet.py", "from .width import WIDTH\n" + NET.replace("width=3", "width=WIDTH"))
    assert project.load("relpkg/relnet.py:build").module.fc.out_features == 7


def test_a_file_named_as_another_module_does_not_shadow_it(project):
    project.write("json.py", NET)
    made = project.load("json.py:build")
    import json

    assert json.loads("[1]") == [1]
    assert pickle.loads(pickle.dumps(made.module)).fc.out_features == 3
    assert sys.modules[type(made.module).__module__].Net is type(made.module)


def test_dataclasses_of_the_users_file_find_their_module(project):
    project.write(
        "withdata.py",
        """
        from __future__ import annotations
        import dataclasses, typing
        from torch import nn

        @dataclasses.dataclass
        class Settings:
            width: typing.ClassVar[int] = 3
            depth: int = 1

        def build():
            typing.get_type_hints(Settings)
            return nn.Linear(Settings.width, 1)
        """,
    )
    assert project.load("withdata.py:build").module.in_features == 3


@pytest.mark.parametrize(
    ("reference", "said", "hint"),
    [
        ("thenat.py:build", "there is no file thenat.py", "Did you mean thenet.py?"),
        ("no/where.py:build", "there is no file", "There is no folder no"),
        ("thenet.py:biuld", "thenet.py has no function biuld", "Did you mean build?"),
        ("thenet.py", "thenet.py has no function make_model", "thenet.py has"),
        ("nosuchpackage.net:build", "there is no module nosuchpackage", "a file: path.py:function"),
        ("thenet.py:nn", "nn in thenet.py is a module, not a function", ""),
        ("thenet", "names no function", "path.py:function"),
    ],
)
def test_what_is_not_there_is_a_usage_error_with_a_way_out(project, reference, said, hint):
    project.write("thenet.py", NET)
    with pytest.raises(UsageError, match=said) as caught:
        project.load(reference)
    assert hint in caught.value.hint
    assert caught.value.where == "models.net.entrypoint"
    assert caught.value.exit_code is ExitCode.USAGE


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return None", "returned None"),
        ("return nn.Linear", "the class Linear, not an instance"),
        ("return nn.Linear(1, 1), {}", r"a tuple \(Linear, dict\)"),
        ("return nn.Linear(1, 1).state_dict()", "a state_dict"),
        ("return torch.jit.trace(nn.Linear(1, 1), torch.ones(1, 1))", "a ScriptModule"),
        ("return torch.compile(nn.Linear(1, 1), backend='eager')", "compiled by torch.compile"),
        ("return 3", "returned an int"),
    ],
)
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # the refused thing has to be made once
def test_what_is_no_module_is_named(project, body, said):
    project.write("gives.py", f"import torch\nfrom torch import nn\n\ndef build():\n    {body}\n")
    with pytest.raises(UsageError, match=said) as caught:
        project.load("gives.py:build")
    assert caught.value.hint


@pytest.mark.parametrize(
    ("raise_", "said"),
    [
        ("raise ValueError('no weights')", r"build\(\) raised ValueError: no weights"),
        ("raise SystemExit(0)", r"build\(\) called exit\(0\)"),
        ("nn.Linear('wide', 1)", r"build\(\) raised"),
    ],
)
def test_what_the_function_raises_carries_the_users_line(project, raise_, said, capsys):
    project.write("models/raises.py", f"from torch import nn\n\ndef build():\n    {raise_}\n")
    with pytest.raises(OnnxCiError, match=said) as caught:
        project.load("models/raises.py:build")
    assert caught.value.where == "models/raises.py:4"
    assert caught.value.exit_code is ExitCode.UNKNOWN
    assert "Traceback" in capsys.readouterr().err


def test_a_package_that_is_missing_is_named_with_the_interpreter(project):
    project.write("needs.py", "import nosuchpackage.inner\n")
    with pytest.raises(OnnxCiError, match=r"needs\.py raised ModuleNotFoundError") as caught:
        project.load("needs.py:build")
    assert "nosuchpackage is missing" in caught.value.hint
    assert caught.value.where == "needs.py:1"


def test_a_syntax_error_is_placed_in_the_users_file(project):
    project.write("broken.py", "x = 1\ndef build(:\n")
    with pytest.raises(OnnxCiError, match="SyntaxError") as caught:
        project.load("broken.py:build")
    assert caught.value.where == "broken.py:2"


def test_a_file_that_exits_while_it_is_imported_is_an_error(project):
    project.write("exits.py", "import sys\nsys.exit('usage: exits.py')\n")
    with pytest.raises(OnnxCiError, match="called exit"):
        project.load("exits.py:build")


def test_kwargs_that_the_function_does_not_take_are_named(project):
    project.write("thenet.py", NET)
    with pytest.raises(UsageError, match="unexpected keyword argument 'depth'"):
        project.load("thenet.py:build", depth=2)


def test_export_kwargs_of_another_form_are_refused(project):
    project.write("short.py", NET.replace("build", "make_model") + "\ndef export_kwargs():\n    return [1]\n")
    with pytest.raises(UsageError, match="returned a list, not a dict"):
        project.load("short.py")


def test_a_reference_gets_those_settings_that_its_function_has(project):
    project.write("thenet.py", NET)
    spec = ModelSpec(
        name="net", entrypoint="thenet.py:build", reference="thenet.py:build", kwargs={"width": 5, "depth": 2}
    )
    assert entrypoint.reference(spec, project.root).fc.out_features == 5


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("thenet.py", "names no function"),
        ("thenet.py:Net", "returned"),
        ("thenet.py:nothing", "has no function nothing"),
        ("other.py:build", "there is no file other.py"),
    ],
)
def test_a_reference_that_gives_no_module_names_its_key(project, reference, said):
    project.write("thenet.py", NET.replace("return Net(width).eval()", "return None") + "\nNet = build\n")
    spec = ModelSpec(name="net", entrypoint="thenet.py:build", reference=reference)
    with pytest.raises(UsageError, match=said) as caught:
        entrypoint.reference(spec, project.root)
    assert caught.value.where == "models.net.reference"


def test_a_wrapper_for_many_devices_is_to_be_taken_off(project):
    project.write("wrapped.py", NET + "\n\ndef wrapped():\n    return nn.DataParallel(build())\n")
    with pytest.raises(UsageError, match="DataParallel") as caught:
        project.load("wrapped.py:wrapped")
    assert "return module.module" in caught.value.hint
