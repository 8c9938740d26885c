"""The catalogue of rules: what each finding says, why it matters, how to mend it."""

from __future__ import annotations

import difflib
import textwrap
from functools import cache
from importlib import resources
from typing import Any

import tomllib

from onnx_ci.errors import UsageError
from onnx_ci.records.base import record
from onnx_ci.records.result import STAGES, Stage

_KEYS = {"what", "why", "mend"}


@record
class Rule:
    """The kind of a finding.

    Attributes:
        id: ``stage.name``.
        what: What the finding says, in one sentence.
        why: Why it matters.
        mend: How to mend it.
    """

    id: str
    stage: Stage
    what: str
    why: str
    mend: str


@cache
def catalogue() -> dict[str, Rule]:
    """All rules by id: the stages in their order, the rules of a stage as its file has them.

    Raises:
        ValueError: A file of the catalogue is not what it should be, which is a fault of ours.
    """
    folder = resources.files(__name__)
    found: dict[str, Rule] = {}
    for stage in STAGES:
        file = folder / f"{stage}.toml"
        if file.is_file():
            for id, entry in parse(file.read_text(encoding="utf-8"), stage).items():
                found[id] = entry
    return found


def parse(text: str, stage: Stage) -> dict[str, Rule]:
    """Reads one stage's file, strictly.

    Raises:
        ValueError: A rule belongs to another stage, lacks a part, has another one, or an empty one.
    """
    return {id: _rule(id, entry, stage) for id, entry in tomllib.loads(text).items()}


def explain(id: str) -> str:
    """What `onnx-ci rule` prints: a rule, the rules of a stage, or without an id all of them.

    Raises:
        UsageError: There is neither.
    """
    of_stage = [rule for rule in catalogue().values() if not id or rule.stage == id]
    return render_list(of_stage) if of_stage else render_text(get(id))


def get(id: str) -> Rule:
    """Finds a rule by its id.

    Raises:
        UsageError: There is none.
    """
    known = catalogue()
    if id in known:
        return known[id]
    short = [name for name in known if name.partition(".")[2] == id]
    stages = difflib.get_close_matches(id, [rule.stage for rule in known.values()], n=1, cutoff=0.8)
    close = short or stages or difflib.get_close_matches(id, known, n=3, cutoff=0.6)
    hint = f"Did you mean {' or '.join(close)}?" if close else "All are in docs/rules.md."
    raise UsageError(f"no rule is called {id!r}", hint=hint)


def render_text(rule: Rule) -> str:
    """Writes a rule for a terminal."""
    said = (("Why it matters", rule.why), ("How to mend", rule.mend))
    parts = [rule.id, _wrapped(rule.what), *(f"{title}\n{_wrapped(text)}" for title, text in said)]
    return "\n\n".join(parts)


def render_list(rules: list[Rule]) -> str:
    """Writes rules for a terminal, a line each with what it says, and a blank one between stages."""
    width = max(len(rule.id) for rule in rules)
    stages = ["\n".join(f"{rule.id:<{width}}  {rule.what}" for rule in ones) for ones in _by_stage(rules)]
    return "\n\n".join([*stages, f"`onnx-ci rule {rules[0].id}` says why it matters and how to mend it."])


def _by_stage(rules: list[Rule]) -> list[list[Rule]]:
    return [ones for stage in STAGES if (ones := [rule for rule in rules if rule.stage == stage])]


def render_markdown(rules: dict[str, Rule]) -> str:
    """Writes the catalogue as a page, stage after stage."""
    lines = [
        "# Rules",
        "",
        "Each finding of onnx-ci names its rule, `stage.name`. `onnx-ci rule ID` prints what stands here.",
        "The stages run in this order; a fault is found at the earliest one that can name its cause.",
    ]
    for of_stage in _by_stage([*rules.values()]):
        lines += ["", f"## {of_stage[0].stage}"]
        for rule in of_stage:
            lines += ["", f"### {rule.id}", "", rule.what, "", f"**Why it matters.** {rule.why}"]
            lines += ["", f"**How to mend.** {rule.mend}"]
    return "\n".join(lines) + "\n"


def _rule(id: str, entry: Any, stage: Stage) -> Rule:
    if id.partition(".")[0] != stage or not id.partition(".")[2]:
        raise ValueError(f"{id}: not a rule of stage {stage}")
    if not isinstance(entry, dict) or entry.keys() != _KEYS:
        raise ValueError(f"{id}: expected exactly {', '.join(sorted(_KEYS))}")
    if not all(isinstance(text, str) and text.strip() for text in entry.values()):
        raise ValueError(f"{id}: each part is a text that says something")
    return Rule(id=id, stage=stage, **{key: " ".join(text.split()) for key, text in entry.items()})


def _wrapped(text: str) -> str:
    return textwrap.fill(text, width=88, initial_indent="  ", subsequent_indent="  ")
