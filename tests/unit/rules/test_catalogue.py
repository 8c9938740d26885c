"""The catalogue: strict, complete, and what the command and the page show of it."""

import re
from pathlib import Path

import pytest

from onnx_ci import rules
from onnx_ci.errors import ExitCode, UsageError
from onnx_ci.records.result import STAGES

SOURCE = Path(__file__).parents[3] / "src" / "onnx_ci"
EMITTED = re.compile(rf'"((?:{"|".join(STAGES)})\.[a-z0-9-]+)"')
NAMES = {"forward", "onnx-ci", "torch.export"}
"""Words that a sentence may begin with and that are never capitalized."""
GOOD = 'what = "It is so."\nwhy = "It matters."\nmend = "Mend it."\n'


def emitted() -> dict[str, str]:
    found = {}
    for file in sorted(SOURCE.rglob("*.py")):
        for id in EMITTED.findall(file.read_text(encoding="utf-8")):
            if not id.endswith((".json", ".yml")):  # contract.json, environment.yml
                found.setdefault(id, file.relative_to(SOURCE).as_posix())
    return found


def test_each_rule_that_the_code_emits_is_explained():
    missing = {id: file for id, file in emitted().items() if id not in rules.catalogue()}
    assert not missing


def test_each_explained_rule_is_emitted():
    assert rules.catalogue().keys() - emitted().keys() == set()


def test_the_search_for_emitted_rules_finds_some():
    assert {"environment.lock-drift", "environment.too-old"} <= emitted().keys()


def test_each_file_of_the_catalogue_is_a_stage():
    assert {file.stem for file in (SOURCE / "rules").glob("*.toml")} <= set(STAGES)


def test_the_catalogue_is_in_the_order_of_the_stages():
    order = [STAGES.index(rule.stage) for rule in rules.catalogue().values()]
    assert order == sorted(order)


def test_each_part_is_whole_sentences():
    for rule in rules.catalogue().values():
        for text in (rule.what, rule.why, rule.mend):
            assert not text[0].islower() or text.split()[0] in NAMES, (rule.id, text)
            assert text.endswith((".", "?", ")", "`")), (rule.id, text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'["parity.values"]\n{GOOD}', "not a rule of stage golden"),
        (f'["golden."]\n{GOOD}', "not a rule of stage golden"),
        (f'["golden.drifted"]\n{GOOD}see = "more"\n', "expected exactly mend, what, why"),
        ('["golden.drifted"]\nwhat = "It is so."\n', "expected exactly mend, what, why"),
        ('["golden.drifted"]\nwhat = " "\nwhy = "x."\nmend = "x."\n', "says something"),
        ('["golden.drifted"]\nwhat = 1\nwhy = "x."\nmend = "x."\n', "says something"),
        ('"golden.drifted" = 3\n', "expected exactly"),
    ],
)
def test_a_rule_that_is_not_whole_is_refused(text, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        rules.parse(text, "golden")


def test_get_finds_a_rule():
    assert rules.get("environment.lock-drift").stage == "environment"


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("environment.lock-drit", "environment.lock-drift"),
        ("lock-drift", "environment.lock-drift"),
        ("enviroment", "Did you mean environment?"),
        ("nothing like it", "docs/rules.md"),
    ],
)
def test_get_names_what_was_likely_meant(asked, meant):
    with pytest.raises(UsageError) as caught:
        rules.get(asked)
    assert meant in caught.value.hint
    assert caught.value.exit_code == ExitCode.USAGE


def test_a_rule_is_shown_with_its_reason_and_its_remedy():
    shown = rules.render_text(rules.get("environment.two-runtimes"))
    assert shown.startswith("environment.two-runtimes\n\n  More than one")
    assert "\n\nWhy it matters\n  All of them" in shown
    assert "\n\nHow to mend\n  Uninstall" in shown
    assert max(map(len, shown.splitlines())) <= 88


def test_a_stage_is_shown_with_its_rules_a_line_each():
    shown = rules.explain("contract").splitlines()
    of_stage = [rule for rule in rules.catalogue().values() if rule.stage == "contract"]
    assert [line.split("  ")[0] for line in shown[: len(of_stage)]] == [rule.id for rule in of_stage]
    assert all(line.endswith(rule.what) for line, rule in zip(shown, of_stage, strict=False))
    assert "onnx-ci rule contract." in shown[-1]
    assert rules.explain("parity.run") == rules.render_text(rules.get("parity.run"))
    with pytest.raises(UsageError):
        rules.explain("contracts")


def test_without_an_id_all_rules_are_listed_stage_after_stage():
    *listed, last = rules.explain("").splitlines()
    assert [line.split("  ")[0] for line in listed if line] == list(rules.catalogue())
    assert listed.count("") == len({rule.stage for rule in rules.catalogue().values()})
    assert "`onnx-ci rule " in last


def test_the_page_holds_each_rule_once():
    page = rules.render_markdown(rules.catalogue())
    assert re.findall(r"^### (.*)$", page, flags=re.MULTILINE) == list(rules.catalogue())
