"""A config that is wrong: all of it is told at once, with path, line and what was likely meant."""

import pytest

from onnx_ci.config.explain import NOT_BUILT
from onnx_ci.config.problems import ConfigError, Problem, show, show_path
from onnx_ci.errors import ExitCode, UsageError

MODEL = '[models.m]\nentrypoint = "model.py:build"\n'
SHORT = '[models.m]\nentrypoint = "model.py"\n'
TARGET = f"{SHORT}[targets.t]\n"


def told(found):
    return [f"{show_path(problem.path)}: {problem.message}" for problem in found]


def test_five_errors_are_five_problems_in_the_order_of_the_file(problems):
    found = problems(
        "[models.a]\n"
        'entrypoint = "modle.py"\n'
        'dims.batch.max = "32"\n'
        "[models.b]\n"
        'entrypont = "model.py"\n'
        "[targets.gpu]\n"
        'provider = "CUDA"\n'
        "[golden]\n"
        'dir = "../elsewhere"\n'
    )
    assert [problem.line for problem in found] == [2, 3, 5, 7, 9]
    assert told(found) == [
        'models.a.entrypoint: "modle.py": no such file',
        'models.a.dims.batch.max: expected an integer, got "32"',
        "models.b.entrypont: unknown key",
        'targets.gpu.provider: "CUDA" is not the full name of an execution provider',
        'golden.dir: "../elsewhere" leaves the project',
    ]
    assert [problem.hint for problem in found] == [
        'did you mean "model.py"?',
        "remove the quotes",
        "did you mean entrypoint?",
        "did you mean CUDAExecutionProvider?",
        "it must lie below the folder of the config file",
    ]


def test_the_error_shows_file_line_path_and_hint(project):
    with pytest.raises(UsageError) as caught:
        project(f'{SHORT}dims.batch.max = "32"\nbach = 1\n')
    assert str(caught.value) == (
        'onnx-ci.toml:3: models.m.dims.batch.max: expected an integer, got "32"\n'
        "    hint: remove the quotes\n"
        "onnx-ci.toml:4: models.m.bach: unknown key\n"
        "    hint: did you mean batch?\n"
        "2 problems in onnx-ci.toml"
    )
    assert caught.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("models.m.end_to_end", f"{SHORT}[[models.m.end_to_end]]\nnonsense = 3"),
    ],
)
def test_a_key_whose_part_is_not_built_is_refused_with_exactly_that(problems, path, text):
    assert told(problems(text)) == [f"{path}: {NOT_BUILT}"]
    assert NOT_BUILT == "this part of onnx-ci is not built yet; remove the key"


@pytest.mark.parametrize(
    ("text", "path", "hint"),
    [
        ("modles.m = 1", "modles", "did you mean models?"),
        ('entrypoint = "model.py"', "entrypoint", "did you mean models.NAME.entrypoint?"),
        (f"{MODEL}opset = 20", "models.m.opset", "did you mean models.m.export.opset?"),
        (f"{MODEL}opset_version = 20", "models.m.opset_version", "did you mean models.m.export.opset?"),
        (f'{MODEL}[models.m.export]\noutputs = ["a"]', "models.m.export.outputs", "did you mean models.m.outputs?"),
        (f'{MODEL}output_names = ["a"]', "models.m.output_names", "did you mean outputs?"),
        (f"{MODEL}dynamic_axes = 1", "models.m.dynamic_axes", 'name the dims in inputs.x.shape, such as ["batch", 3]'),
        (f"{MODEL}dims.n.step = 8", "models.m.dims.n.step", "did you mean multiple_of?"),
        (f"{MODEL}dims.n.maximum = 8", "models.m.dims.n.maximum", "did you mean max?"),
        (f"{MODEL}zzz = 8", "models.m.zzz", "known are: entrypoint, kwargs"),
        (f"{MODEL}inputs.states.h.dtype = 'bool'", "models.m.inputs.states.h", 'quote a path: inputs."states.h"'),
        (f'{MODEL}[tool."onnx-ci"]', "tool", "in onnx-ci.toml the tables stand at the top, without tool.onnx-ci"),
        (f'{TARGET}provider = "CPUExecutionProvider"\nthread = 2', "targets.t.thread", "did you mean threads?"),
        (f'{MODEL}[golden]\nfolder = "x"', "golden.folder", "known are: dir"),
    ],
)
def test_an_unknown_key_names_the_one_that_was_meant(problems, text, path, hint):
    found = [problem for problem in problems(text) if problem.message == "unknown key"]
    assert [show_path(problem.path) for problem in found] == [path]
    assert found[0].hint.startswith(hint)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (f'{SHORT}batch = "indepndent"', 'expected "independent" or "mixed", got "indepndent"', "did you mean indep"),
        (f"{SHORT}batch = 3", 'expected "independent" or "mixed", got 3', ""),
        (f'{SHORT}cases = "model.py:c"', 'expected an array, got "model.py:c"', 'write it as an array: ["model.py:c"]'),
        (f"{SHORT}contract_version = 2.0", "expected an integer, got 2.0", "write it as 2"),
        (f"{SHORT}contract_version = true", "expected an integer, got true", ""),
        (f"{SHORT}contract_version = 0", "expected at least 1, got 0", ""),
        (f"{SHORT}dims.n.min = -1", "expected at least 0, got -1", ""),
        (f"{SHORT}export.opset = 3", "expected at least 7, got 3", ""),
        (f"{SHORT}export.opset = 300", "expected at most 99, got 300", ""),
        (f'{SHORT}export.single_file = "true"', 'expected true or false, got "true"', "remove the quotes"),
        (f'{SHORT}export = "dynamo"', 'expected a table, got "dynamo"', ""),
        (f"{SHORT}parity.budget = nan", "expected a finite number, got nan", ""),
        (f"{SHORT}parity.budget = inf", "expected a finite number, got inf", ""),
        (f"{SHORT}outputs = [3]", "expected text, got 3", 'write it in quotes: "3"'),
        (f'{SHORT}outputs = [" "]', "expected text, got an empty one", ""),
        (f'{SHORT}outputs = ["a", "b", "a"]', '"a" is listed twice', ""),
        (f'{SHORT}inputs.x.dtype = "float"', '"float" is not a dtype', "did you mean float32?"),
        (f'{SHORT}inputs.x.dtype = "torch.int64"', '"torch.int64" is not a dtype', "did you mean int64?"),
        (f'{SHORT}inputs.x.dtype = "flaot32"', '"flaot32" is not a dtype', "did you mean float32?"),
        (f"{SHORT}inputs.x.dtype = 32", 'expected a dtype such as "float32", got 32', ""),
        (f"{SHORT}inputs.x.shape = [-1]", "expected a size or the name of a dim, got -1", ""),
        (f"{SHORT}inputs.x.shape = [1.5]", "expected a size or the name of a dim, got 1.5", ""),
        (f'{SHORT}inputs.x.shape = ["n//2"]', '"n//2" is not a dim name', "a dim name is a Python identifier"),
        (f'{SHORT}inputs.x.shape = ["n*m"]', '"n*m" is no sum of dims', "a sum of them, each times a whole number"),
        (f'{SHORT}inputs.x.shape = ["n+"]', '"n+" is no sum of dims', "a sum of them, each times a whole number"),
        (f'{SHORT}inputs.x.shape = ["n+n"]', '"n+n" is no sum of dims', "a sum of them, each times a whole number"),
        (f"{SHORT}inputs.x.values = []", "is empty", "remove the key, or list at least one"),
        (f"{SHORT}dims.class = {{}}", '"class" is not a dim name', "a dim name is a Python identifier"),
        (f"{SHORT}kwargs.a.b = [nan]", "b[0]: nan can't be handed on", "set it inside the function"),
        (f"{SHORT}kwargs.a = 2026-01-01", "a date or time can't be handed on", 'write it as text: "2026-01-01"'),
        (f"{SHORT}kwargs.a = {2**63}", f"{2**63} does not fit into 64 bits", ""),
        (f'{SHORT}time_limit = "soon"', '"soon" is not a time', 'a number of seconds, or "90s"'),
        (f"{SHORT}time_limit = 0", "expected more than 0 and at most 604800 seconds, got 0", ""),
        (f"{SHORT}time_limit = true", "expected a number of seconds, got true", ""),
        (f'{SHORT}memory_limit = "8gb"', '"8gb" is not an amount of memory', 'did you mean "8GB"?'),
        (f'{SHORT}memory_limit = "8G"', '"8G" is not an amount of memory', 'did you mean "8GiB"?'),
        (f'{SHORT}memory_limit = "lots"', '"lots" is not an amount of memory', 'such as "8GiB"'),
        (f"{SHORT}memory_limit = 8", "8 is out of range", 'at least "64MiB"'),
        (f"{SHORT}memory_limit = 0x{'f' * 5000}", "a number of more than forty digits is out of range", ""),
        (f"{TARGET}provider = 'GPU'", '"GPU" is not the full name', "did you mean CUDAExecutionProvider?"),
        (f"{TARGET}provider = 'CudaExecutionProvider'", "is not the full name", "did you mean CUDAExecutionProvider?"),
        (f"{TARGET}provider = 'CUDAExecutonProvider'", "is not the full name", "did you mean CUDAExecutionProvider?"),
        (f"{TARGET}provider = 'TensorRT'", "is not the full name", "did you mean TensorrtExecutionProvider?"),
        (f"{TARGET}provider = 'quantum'", "is not the full name", 'such as "CUDAExecutionProvider"'),
        (f"{TARGET}provider = 'CPUExecutionProvider'\nthreads = 0", "expected at least 1, got 0", ""),
        (f"{TARGET}provider = 'CPUExecutionProvider'\nruns_on = []", "is empty", "remove the key"),
        (f"{TARGET}provider = 'CPUExecutionProvider'\noptions.a.b = 1", "expected text, a number or a boolean", ""),
        (f"{TARGET}threads = 1", "missing", 'provider = "CPUExecutionProvider"'),
        ("[models.m]", "missing", 'entrypoint = "models/classifier.py:build"'),
    ],
)
def test_a_wrong_value_says_what_is_wrong_and_what_was_meant(problems, text, message, hint):
    found = problems(text)
    assert len(found) == 1, told(found)
    assert message in found[0].message
    assert hint in found[0].hint


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("models", "a@b", "a name is 1 to 64 of"),
        ("models", "a/b", "a name is 1 to 64 of"),
        ("models", "..", "may not start with a dot"),
        ("models", "a.", "may not end with a dot"),
        ("models", "-x", "may not start with a hyphen"),
        ("models", "ü", "a name is 1 to 64 of"),
        ("models", "x" * 65, "a name is 1 to 64 of"),
        ("targets", "a b", "a name is 1 to 64 of"),
        ("targets", "export", "is kept for the results of the export"),
        ("targets", "EXPORT", "is kept for the results of the export"),
    ],
)
def test_a_name_that_is_no_name_of_a_file_is_refused(problems, kind, name, message):
    value = 'entrypoint = "model.py"' if kind == "models" else 'provider = "CPUExecutionProvider"'
    text = f'[{kind}."{name}"]\n{value}\n'
    found = problems(text if kind == "models" else SHORT + text)
    assert len(found) == 1
    assert message in found[0].message
    assert found[0].path == (kind, name)


def test_names_that_differ_by_case_only_are_refused(problems):
    found = problems(SHORT + SHORT.replace("models.m", "models.M"))
    assert told(found) == ['models.M: is "m" but for its case: the folders would be one']


def test_names_whose_results_would_be_one_file_are_refused(problems):
    targets = '[targets."b.c"]\nprovider = "CPUExecutionProvider"\n[targets.c]\nprovider = "CPUExecutionProvider"\n'
    found = problems(SHORT.replace("models.m", "models.a") + SHORT.replace("models.m", 'models."a.b"') + targets)
    assert [problem.path for problem in found] == [("models", "a.b")]
    assert "would both be a.b.c.json" in found[0].message


def test_a_target_without_a_provider_is_still_refused_its_name(problems):
    assert set(told(problems(f"{SHORT}[targets.export]"))) == {
        "targets.export: is kept for the results of the export",
        "targets.export.provider: missing",
    }


@pytest.mark.parametrize(
    ("dims", "path", "message"),
    [
        ("{ min = 3, max = 2 }", "n", "min 3 is larger than max 2"),
        ("{ min = 9, max = 15, multiple_of = 8 }", "n", "no multiple of 8 lies between 9 and 15"),
        ("{ min = 1, max = 4, example = 5 }", "n.example", "5 is above max 4"),
        ("{ min = 2, max = 4, example = 1 }", "n.example", "1 is below min 2"),
        ("{ example = 12, multiple_of = 8 }", "n.example", "12 is not a multiple of 8"),
    ],
)
def test_a_dim_that_contradicts_itself(problems, dims, path, message):
    assert told(problems(f"{SHORT}dims.n = {dims}")) == [f"models.m.dims.{path}: {message}"]


@pytest.mark.parametrize(
    "dims",
    [
        "{}",
        "{ min = 8, max = 16, multiple_of = 8, example = 16 }",
        "{ min = 1, max = 16, multiple_of = 8 }",
        "{min = 0}",
    ],
)
def test_a_sound_dim_is_accepted(project, dims):
    assert project(f"{SHORT}dims.n = {dims}").models[0].dims["n"]


def test_a_dim_that_no_shape_names_is_refused_in_the_long_form(problems):
    found = problems(f'{MODEL}inputs.x.shape = ["heigth", 3]\ndims.height.min = 1\n')
    assert told(found) == ["models.m.dims.height: no shape under inputs names this dim"]
    assert found[0].hint == "did you mean heigth?"


def test_a_dim_that_no_shape_names_may_come_from_the_short_form(project):
    assert project(f"{SHORT}dims.height.min = 1").models[0].dims


def test_a_dim_without_a_declared_range_is_allowed(project):
    assert project(f'{MODEL}inputs.x.shape = ["height", 3]').models[0].dims == {}


def test_a_faulty_shape_does_not_make_its_dims_faulty(problems):
    found = problems(f'{MODEL}inputs.x.shape = ["height", -3]\ndims.height.min = 1\n')
    assert [show_path(problem.path) for problem in found] == ["models.m.inputs.x.shape[1]"]


def test_the_older_exporter_has_no_optimizer_to_leave_out(problems, project):
    found = problems(f'{SHORT}export = {{ exporter = "torchscript", optimize = false }}')
    assert told(found) == ["models.m.export.optimize: the older exporter has no optimizer to leave out"]
    assert not project(f"{SHORT}export.optimize = false").models[0].export.optimize


@pytest.mark.parametrize(
    ("given", "path", "message"),
    [
        ("{ low = 1, high = 0 }", "x", "low 1 is larger than high 0"),
        ("{ low = 1, values = [1] }", "x", "values and low exclude each other"),
        ('{ dtype = "int64", low = 0.5 }', "x.low", "0.5 is no int64"),
        ('{ dtype = "uint8", high = 256 }', "x.high", "256 does not fit into uint8"),
        ('{ dtype = "uint8", low = -1 }', "x.low", "-1 does not fit into uint8"),
        ('{ dtype = "bool", values = [0, 2] }', "x.values[1]", "2 does not fit into bool"),
        ('{ dtype = "int64", nonfinite = ["nan"] }', "x.nonfinite", "int64 has neither NaN nor infinity"),
        ('{ dtype = "string", low = 0 }', "x.low", "a string input has no range of numbers"),
    ],
)
def test_an_input_that_contradicts_itself(problems, given, path, message):
    assert told(problems(f"{SHORT}inputs.x = {given}")) == [f"models.m.inputs.{path}: {message}"]


@pytest.mark.parametrize(
    "given",
    [
        '{ dtype = "int64", low = 0, high = 9223372036854775807 }',
        '{ dtype = "uint8", low = 0, high = 255 }',
        '{ dtype = "bool", values = [0, 1] }',
        '{ dtype = "float32", low = -1.5, high = 1.5 }',
        "{ low = 0.5 }",
    ],
)
def test_a_sound_range_is_accepted(project, given):
    assert project(f"{SHORT}inputs.x = {given}").models[0].inputs


def test_an_input_that_input_names_spells_otherwise(problems):
    found = problems(f'{MODEL}input_names = ["images"]\ninputs.imges.dtype = "float32"')
    assert [problem.hint for problem in found] == ["did you mean images?"]


def test_an_output_that_is_not_declared(problems):
    found = problems(
        f'{SHORT}outputs = ["logits"]\nparity.allow_nan = ["logit"]\n'
        'parity.outputs.boxes = { rtol = 0, atol = 0, reason = "x" }'
    )
    assert [(problem.path[-1], problem.hint) for problem in found] == [
        (0, "did you mean logits?"),
        ("boxes", "outputs are: logits"),
    ]


def test_without_declared_outputs_none_is_wrong(project):
    assert project(f'{SHORT}parity.allow_nan = ["logit"]').models[0].parity.allow_nan == ["logit"]


def test_a_tolerance_needs_a_reason(problems):
    found = problems(f"{SHORT}parity.outputs.y = {{ rtol = 0, atol = 0 }}")
    assert told(found) == ["models.m.parity.outputs.y.reason: missing"]
    assert "needs a reason" in found[0].hint


@pytest.mark.parametrize(("day", "fails"), [("2026-11-30", True), ("2026-12-01", False)])
def test_a_tolerance_holds_to_its_last_day(project, day, fails):
    text = f'{SHORT}parity.outputs.y = {{ rtol = 0, atol = 0, reason = "x", expires = {day} }}'
    if not fails:
        assert project(text).models[0].parity.outputs["y"].expires == day
        return
    with pytest.raises(ConfigError, match=f"this tolerance expired on {day}"):
        project(text)


@pytest.mark.parametrize(
    ("written", "hint"), [('"2027-06-01"', "remove the quotes"), ("2027-06-01T00:00:00", ""), ("20270601", "")]
)
def test_a_date_is_a_date(problems, written, hint):
    found = problems(f'{SHORT}parity.outputs.y = {{ rtol = 0, atol = 0, reason = "x", expires = {written} }}')
    assert "expected a date such as 2027-06-01" in found[0].message
    assert found[0].hint == hint


def test_problems_are_shown_without_what_a_terminal_would_act_on():
    assert show("\x1b[31m\u202e\x7f\n") == '"\\u001b[31m\\u202e\\u007f\\n"'
    assert show_path(("models", "a\nb", "cases", 0)) == 'models."a\\nb".cases[0]'
    assert len(show("x" * 1000)) == 80


def test_a_problem_without_a_line_is_shown_without_one():
    error = ConfigError("f.toml", [Problem(path=(), message="is empty")])
    assert str(error) == "f.toml: is empty"


@pytest.mark.parametrize(
    ("reference", "said", "hint"),
    [
        ("modle.py:original", '"modle.py": no such file', 'did you mean "model.py"?'),
        ("model.py", 'expected "path.py:function" or "package.module:function", got "model.py"', ""),
        ("../other.py:original", '"../other.py" leaves the project', "it must lie below the folder of the config file"),
    ],
)
def test_a_reference_is_looked_for_like_an_entrypoint(problems, reference, said, hint):
    (problem,) = problems(f'{SHORT}reference = "{reference}"')
    assert (show_path(problem.path), problem.message, problem.hint) == ("models.m.reference", said, hint)


SECOND = """
dims.batch = { min = 9, max = 3 }
dims.spare.min = 1
inputs.x = { dtype = "float32", shape = ["batch", 3], low = 2.0, high = 1.0 }
outputs = ["y"]
[models.m.parity.outputs.z]
atol = 0
reason = "known"
expires = 2001-01-01
"""
RANGES = ["models.m.dims.batch: min 9 is larger than max 3", "models.m.inputs.x: low 2 is larger than high 1"]
OUTPUT = [
    'models.m.parity.outputs.z: no output is called "z"',
    "models.m.parity.outputs.z.expires: this tolerance expired on 2001-01-01",
]
UNUSED = "models.m.dims.spare: no shape under inputs names this dim"


@pytest.mark.parametrize(
    ("head", "fault", "judged"),
    [
        ('entrypoint = "model.py:build"\nbach = 1', "models.m.bach: unknown key", [*RANGES, *OUTPUT, UNUSED]),
        ('entrypoint = "model.py:build"\ntime_limit = -1', "models.m.time_limit: ", [*RANGES, *OUTPUT, UNUSED]),
        ("batch = 'mixed'", "models.m.entrypoint: missing", [*RANGES, *OUTPUT]),
        ("entrypoint = 3", "models.m.entrypoint: expected text, got 3", [*RANGES, *OUTPUT]),
    ],
)
def test_contradictions_are_told_in_the_same_pass_as_wrong_values(problems, head, fault, judged):
    found = told(problems(f"[models.m]\n{head}{SECOND}"))
    assert len([one for one in found if one.startswith(fault)]) == 1
    assert "models.m.parity.outputs.z.rtol: missing" in found
    assert set(judged) <= set(found)
    assert len(found) == 2 + len(judged), found


@pytest.mark.parametrize(
    "inputs",
    [
        'input.x.shape = ["batch", 3]',
        'inputs.x.shpae = ["batch", 3]',
        'inputs.x.shape = "batch"',
        'inputs.x = { shape = ["batch", -3] }',
    ],
)
def test_a_dim_is_not_called_unused_where_the_shapes_themselves_are_at_fault(problems, inputs):
    found = told(problems(f"{MODEL}dims.batch.max = 4\n{inputs}\n"))
    assert len(found) == 1
    assert "no shape under inputs" not in found[0]


def test_a_range_is_not_judged_by_an_end_that_is_no_number(problems):
    assert told(problems(f'{SHORT}dims.batch = {{ min = 9, max = "3", example = 9 }}\n')) == [
        'models.m.dims.batch.max: expected an integer, got "3"'
    ]
