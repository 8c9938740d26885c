"""Paths and functions that a config names."""

import pytest

from onnx_ci.config import paths


@pytest.fixture
def root(tmp_path):
    (tmp_path / "outside.py").write_text("")
    project = tmp_path / "project"
    (project / "models").mkdir(parents=True)
    (project / "models" / "classifier.py").write_text("")
    (project / "model.py").write_text("")
    (project / "notes.txt").write_text("")
    (project / "samples").mkdir()
    (project / "samples" / "one.npz").write_bytes(b"")
    (project / "samples" / "photo.png").write_bytes(b"")
    (project / "samples" / "test_data_set_0").mkdir()
    return project


@pytest.mark.parametrize("text", ["model.py", "model.py:build", "models/classifier.py:build", "shop.models:build"])
def test_an_entrypoint_that_is_there(root, text):
    assert paths.entrypoint_fault(root, text) is None


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("modle.py:build", '"modle.py": no such file', 'did you mean "model.py"?'),
        ("model/classifier.py:build", "no such file", 'did you mean "models/classifier.py"?'),
        ("models/clasifier.py", "no such file", 'did you mean "models/classifier.py"?'),
        ("quite/another.py", "no such file", "paths are relative to the folder of the config file"),
        ("models", "expected", ""),
        ("model", '"model" is not a file', 'did you mean "model.py"?'),
        ("models.py.build", "expected", 'did you mean "models.py:build"?'),
        ("shop.models.build", "expected", 'did you mean "shop.models:build"?'),
        ("models/classifier:build", "is not a file", 'did you mean "models/classifier.py:build"?'),
        ("models/other:build", "expected", ""),
        ("model.py:", "expected", "name the function"),
        (":build", "expected", ""),
        ("model.py:build()", "calls the function", 'name it only: "model.py:build"'),
        ("model.py:a b", "expected", ""),
        ("models\\classifier.py:build", "backslashes", '"models/classifier.py"'),
        ("../outside.py:build", "leaves the project", "below the folder of the config file"),
        ("/etc/model.py:build", "is absolute", "relative to the folder of the config file"),
        ("C:/model.py:build", "is absolute", "relative"),
        ("a\x00b.py", "holds characters", ""),
        ("x" * 5000 + ".py", "can't be looked up", ""),
    ],
)
def test_an_entrypoint_that_is_not_there_names_what_was_meant(root, text, message, hint):
    fault = paths.entrypoint_fault(root, text)
    assert message in fault.message
    assert hint in fault.hint


@pytest.mark.parametrize(
    "text",
    ["model.py:cases", "shop.cases:cases", "samples/*.npz", "samples/one.npz", "samples/test_data_set_*", "**/*.npz"],
)
def test_cases_that_are_there(root, text):
    assert paths.cases_fault(root, text) is None


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("samples/*.npy", '"samples/*.npy" matches nothing', ""),
        ("sample/*.npz", "matches nothing", 'did you mean "samples/*.npz"?'),
        ("samples/two.npz", "matches nothing", 'did you mean "samples/one.npz"?'),
        ("samples/*.png", "neither an .npz file nor a test_data_set folder", "cases.py:cases"),
        ("model.py", "names no function", 'such as "model.py:make_inputs"'),
        ("../*.npz", "leaves the project", ""),
        ("samples/**.npz", "is not a glob", ""),
    ],
)
def test_cases_that_are_not_there(root, text, message, hint):
    fault = paths.cases_fault(root, text)
    assert message in fault.message
    assert hint in fault.hint


def test_a_folder_is_no_file(root):
    assert "is a folder" in paths.file_fault(root, "models").message


def test_a_link_out_of_the_project_is_refused_where_digests_count(root):
    (root / "link.py").symlink_to(root.parent / "outside.py")
    assert paths.file_fault(root, "link.py") is None
    assert "link that leaves" in paths.file_fault(root, "link.py", inside=True).message


def test_the_golden_folder_stays_inside(root):
    (root / "away").symlink_to(root.parent)
    assert paths.folder_fault(root, "golden") is None
    assert paths.folder_fault(root, "a/b/golden") is None
    for path, message in [
        ("../golden", "leaves the project"),
        ("/golden", "is absolute"),
        (".", "own folder"),
        ("notes.txt", "is a file"),
        ("away/golden", "link that leaves"),
        ("x" * 5000, "can't be looked up"),
    ]:
        assert message in paths.folder_fault(root, path).message
