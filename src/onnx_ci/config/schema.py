"""Every key of the config: its type, its default, and what it means.

The JSON schema and docs/config.md are made of this file. A key marked `LATER` is part of the schema, so that all keys
share one style from the start, and refused until its part is built.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from onnx_ci.config import values as v

LATER: JsonDict = {"x-not-built": True}
"""Marks a key whose part of onnx-ci is not built yet."""


class Table(BaseModel):
    """A table of the config: unknown keys and other types than the named ones are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Input(Table):
    """What production sends for one input. Its name is a parameter of forward, or a path such as `"states[1]"`."""

    dtype: v.DType | None = Field(default=None, description="What production sends; it never casts an example.")
    shape: list[v.Axis] | None = Field(
        default=None,
        description="Sizes, and names of dims where the size varies; where it follows from those of other axes, a sum "
        'of dims, such as "past + new". Left out: the example\'s.',
        examples=[["batch", 3, "height", "width"]],
    )
    low: v.Finite | None = Field(default=None, description="Smallest value of generated inputs.", examples=[0.0])
    high: v.Finite | None = Field(default=None, description="Largest value of generated inputs.", examples=[1.0])
    values: Annotated[list[v.Finite], Field(min_length=1)] | None = Field(
        default=None, description="The only values there are, instead of a range.", examples=[[0, 1, 2]]
    )
    nonfinite: list[Literal["nan", "inf", "-inf"]] = Field(
        default_factory=list,
        description="What production sends besides, of NaN and the infinities: cases hold it, services take it.",
        examples=[["nan"]],
    )


class Dim(Table):
    """The range of one dim. Without `min` and `max` the range found at export becomes the contract."""

    min: v.Size | None = Field(default=None, description="Smallest size, inclusive; 0 is legal.", examples=[1])
    max: v.Count | None = Field(default=None, description="Largest size, inclusive.", examples=[32])
    example: v.Count | None = Field(
        default=None, description="Size in the export example. Give each dim another one.", examples=[2]
    )
    multiple_of: v.Count = Field(default=1, description="Sizes are multiples of this.", examples=[8])


class Export(Table):
    """How the file is made. What is left out is not checked."""

    exporter: Literal["dynamo", "torchscript"] = Field(
        default="dynamo", description="The exporter built on torch.export, or the older TorchScript one."
    )
    opset: Annotated[int, Field(ge=7, le=99)] | None = Field(
        default=None, description="Opset to ask for; another one delivered is a finding.", examples=[20]
    )
    max_ir: Annotated[int, Field(ge=3, le=99)] | None = Field(
        default=None, description="Newest IR version that the oldest runtime in production reads.", examples=[10]
    )
    single_file: bool | None = Field(
        default=None,
        description="true: no .data file may lie beside the model. false: the weights belong into one.",
        examples=[True],
    )
    optimize: bool = Field(
        default=True,
        description="false: without the dynamo exporter's optimizer, as a way round a fault of it.",
        examples=[False],
    )


class Tolerance(Table):
    """A manual tolerance of one output: |actual − expected| ≤ atol + rtol · |expected|. Shown in every report."""

    rtol: v.Error = Field(description="Relative tolerance.", examples=[1e-4])
    atol: v.Error = Field(description="Absolute tolerance.", examples=[1e-5])
    reason: v.Text = Field(description="Why this output may err more.", examples=["int8 head, reviewed in #12"])
    expires: v.Date | None = Field(default=None, description="Last day on which it holds.", examples=["2027-06-01"])


class Parity(Table):
    """How the outputs are judged."""

    budget: Annotated[float, Field(ge=1, allow_inf_nan=False)] = Field(
        default=4.0, description="How many times PyTorch's own rounding error the target may err."
    )
    ties: Literal["explain", "exact"] = Field(
        default="explain", description="Indices whose scores tie: explained and counted, or held to be exact."
    )
    allow_nan: v.Names = Field(
        default_factory=list, description="Outputs in which NaN is meant.", examples=[["mask_logits"]]
    )
    outputs: dict[v.Text, Tolerance] = Field(default_factory=dict, description="Manual tolerances, by output.")


class Variant(Table):
    """One artifact of a model whose sizes are known: with its own settings and fixed dims.

    A model with variants has no artifact besides theirs. The dims that a variant does not fix stay as declared. Each
    input fits one variant at most: any two of them fix a dim to different sizes.
    """

    name: v.Name = Field(description="The artifact is called model@name.", examples=["480x640"])
    kwargs: dict[str, v.Plain] = Field(
        default_factory=dict,
        description="Construction settings of this variant; they are merged over the model's.",
        examples=[{"height": 480, "width": 640}],
    )
    dims: dict[v.DimName, v.Size] = Field(
        default_factory=dict,
        description="Dims that are fixed, and their sizes, inside the declared range. User cases of other sizes are "
        "left out.",
        examples=[{"height": 480, "width": 640}],
    )


class EndToEnd(Table):
    """A comparison from the raw input to the decoded output, through the service's own code."""

    raw: list[v.Text] = Field(description="Raw files, as globs.", examples=[["samples/*.png"]])
    preprocess: v.Text = Field(
        description="The service's path from a raw file to input arrays.", examples=["service/io.py:preprocess"]
    )
    training_preprocess: v.Text | None = Field(default=None, description="The training path, for the PyTorch side.")
    postprocess: v.Text | None = Field(default=None, description="From outputs to what the service answers.")
    compare: v.Text = Field(
        description="detection, classification, embedding, or a function.", examples=["classification"]
    )
    thresholds: dict[str, v.Finite] = Field(
        default_factory=dict, description="What the comparison holds to.", examples=[{"score": 0.5}]
    )


class Model(Table):
    """One model. Its name is the artifact's: A-Z a-z 0-9 . _ - and no leading dot."""

    entrypoint: v.Text = Field(
        description="What builds the nn.Module, in eval mode: a file and a function, or a module and a function. A "
        "file alone is the short form: it has make_model(), make_inputs() and, if it likes, export_kwargs(). What each "
        "returns is in docs/entrypoints.md.",
        examples=["models/classifier.py:build"],
    )
    kwargs: dict[str, v.Plain] = Field(
        default_factory=dict,
        description="Construction settings, handed to the function and recorded in the contract.",
        examples=[{"num_classes": 10}],
    )
    reference: v.Text | None = Field(
        default=None,
        description="The function that builds the module before it was adapted for export. Both are compared in "
        "float64: outputs, input gradients, gradients of shared parameters. It gets those kwargs that it takes.",
        examples=["models/classifier.py:original"],
    )
    input_names: v.Names | None = Field(
        default=None,
        description="Order of the file's inputs, as names of forward's parameters. Left out: not checked.",
        examples=[["images"]],
    )
    outputs: v.Names | None = Field(
        default=None,
        description="Names of the outputs, in order; dict outputs are matched by key. Left out: not checked.",
        examples=[["logits"]],
    )
    cases: list[v.Text] = Field(
        default_factory=list,
        description="Real inputs: functions that return a list of (name, {parameter of forward: value}), .npz files "
        "whose keys are parameters, and test_data_set folders of input_0.pb, input_1.pb and so on. The first case is "
        "the export example. Each format with an example: docs/entrypoints.md.",
        examples=[["models/classifier.py:cases", "samples/*.npz"]],
    )
    inputs: dict[v.Text, Input] = Field(default_factory=dict, description="What production sends, by input.")
    dims: dict[v.DimName, Dim] = Field(default_factory=dict, description="Ranges of the dims that shapes name.")
    batch: Literal["independent", "mixed"] | None = Field(
        default=None,
        description="Whether a row's result is its own, or may depend on the other rows. Left out: the file is held to "
        "it where PyTorch keeps rows apart. Independent: PyTorch itself has to.",
    )
    contract_version: Annotated[int, Field(ge=1, le=2**31)] = Field(
        default=1, description="Raised when a breaking change of the contract is meant."
    )
    time_limit: v.Seconds = Field(
        default=600.0, description='Seconds (or "10min"), for export and for verify each.', examples=[600]
    )
    memory_limit: v.Memory | None = Field(
        default=None,
        description="Resident memory of worker and children. Left out: unlimited.",
        examples=["8GiB"],
    )
    custom_ops: list[v.Text] = Field(
        default_factory=list,
        description="Libraries of custom operators, registered in every session.",
        examples=[["libmyops.so"]],
    )
    preprocessing: list[v.Text] = Field(
        default_factory=list,
        description="Files that prepare the inputs; their digests are part of the contract.",
        examples=[["service/io.py", "service/labels.txt"]],
    )
    export: Export = Field(Export(), description="How the file is made.")
    parity: Parity = Field(Parity(), description="How the outputs are judged.")
    variants: list[Variant] = Field(
        default_factory=list, description="The model's artifacts, one for each known resolution."
    )
    end_to_end: list[EndToEnd] = Field(
        default_factory=list, description="Comparisons from raw input to decoded output.", json_schema_extra=LATER
    )


class Target(Table):
    """A provider with its options, and where its leg runs. Without any: `cpu`, the CPUExecutionProvider."""

    provider: v.Provider = Field(
        description="The execution provider by its full name.", examples=["CUDAExecutionProvider"]
    )
    options: dict[str, v.Scalar] = Field(
        default_factory=dict,
        description="The provider's options, as production sets them. Parity is judged without what loosens the "
        "arithmetic, and with it in a row of its own.",
        examples=[{"use_tf32": 0}],
    )
    threads: Annotated[int, Field(ge=1, le=1024)] = Field(default=1, description="Threads inside an operator.")
    session: dict[str, v.Scalar] = Field(
        default_factory=dict,
        description="ONNX Runtime's session config entries, as production sets them.",
        examples=[{"session.set_denormal_as_zero": 1}],
    )
    optimization: Literal["disabled", "basic", "extended", "all"] = Field(
        default="all", description="How far ONNX Runtime optimizes the graph."
    )
    deterministic: bool = Field(default=True, description="Whether operators must give the same bits in every run.")
    budget: Annotated[float, Field(ge=1, allow_inf_nan=False)] | None = Field(
        default=None,
        description="How many times PyTorch's own rounding error the target may err with its own options, where they "
        "loosen the arithmetic (TF32, float16, denormals as zero). Left out: parity.budget, times what rounding costs.",
        examples=[16],
    )
    fallback: Literal["forbid", "allow"] = Field(
        default="forbid", description="Whether nodes may fall back to the CPU beyond shape arithmetic and cpu_ops."
    )
    cpu_ops: v.Allowed = Field(
        default_factory=dict,
        description="Operators allowed on the CPU: a list, or a table with the reason of each, which is shown.",
        examples=[{"NonMaxSuppression": "no kernel in CUDA"}],
    )
    runs_on: v.Labels = Field(
        default_factory=lambda: ["ubuntu-latest"],
        description="Labels of the runner, for the reusable workflow.",
        examples=[["self-hosted", "linux", "gpu"]],
    )
    required: bool = Field(default=True, description="Whether a missing result of this target stops the run.")


class Golden(Table):
    """The reviewed outputs."""

    dir: v.Text = Field(default="golden", description="Their folder, inside the project.")


class Latency(Table):
    """How latency is measured and judged."""

    max_regression: Annotated[float, Field(ge=1, allow_inf_nan=False)] = Field(
        default=1.1,
        description="How many times the base's time is too slow; never less than 1.05 on one thread, 1.15 on more.",
        examples=[1.1],
    )
    budget_seconds: v.Seconds = Field(
        default=10.0, description="How long may be spent on timing one model on one target.", examples=[10]
    )
    shapes: list[dict[str, v.Finite]] = Field(
        default_factory=list,
        description="Sizes to time, each with its weight in the whole.",
        examples=[[{"batch": 1, "weight": 0.8}]],
    )
    transfers: Literal["inside", "outside"] = Field(
        default="inside",
        description="Whether copies of inputs and outputs to and from the device are inside the clock.",
    )
    torch_compile: bool = Field(
        default=False,
        description="Whether the export times torch.compile beside eager PyTorch and ONNX Runtime. Compiling takes "
        "seconds to minutes, outside of the clock; what can't be compiled is told, and nothing fails.",
        examples=[True],
    )


class Lock(Table):
    """The lock files against which the installed versions are held."""

    files: v.Names = Field(
        default_factory=list,
        description="requirements files, pylock.toml, uv.lock or poetry.lock.",
        examples=[["requirements.lock"]],
    )
    drift: Literal["fail", "warn"] = Field(default="fail", description="What a version other than the locked one does.")


class Root(Table):
    """onnx-ci.toml, or [tool.onnx-ci] in pyproject.toml."""

    models: dict[v.Name, Model] = Field(description="The models, by name.")
    targets: dict[v.Name, Target] = Field(default_factory=dict, description="Where they are judged, by name.")
    golden: Golden = Field(Golden(), description="The reviewed outputs.")
    latency: Latency = Field(Latency(), description="How latency is measured.")
    lock: Lock = Field(Lock(), description="The lock files.")


def json_schema() -> dict[str, Any]:
    """The JSON schema of onnx-ci.toml, for editors and for docs/config.md."""
    schema = Root.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "onnx-ci.toml"}
