"""The README speaks the product's own words."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SOURCES = "".join(
    re.sub(r'"\s*\n\s*f?"', "", path.read_text(encoding="utf-8")) for path in sorted((ROOT / "src").rglob("*.py"))
)
GITHUBS_OWN = "Resource not accessible by integration"


def quoted() -> list[str]:
    section = README.partition("## Troubleshooting")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [text for cell in cells for text in re.findall(r"`([^`]+)`", cell) if " " in text]


def test_each_error_text_of_the_troubleshooting_is_one_that_the_code_says():
    texts = quoted()
    assert len(texts) > 10
    patterns = {
        "no interpreter with torch and onnx and onnxruntime and onnxscript was found": "no interpreter with {",
        "it was stopped after 600 s (time_limit)": "s (time_limit)",
        "it was ended by SIGKILL (the system may have run out of memory)": " (the system may have run out of memory)",
        "no artifact in onnx-ci-out/artifacts": "no artifact {",
        GITHUBS_OWN: "",
    }
    missing = [text for text in texts if patterns.get(text, text) not in SOURCES]
    assert not missing


def test_each_link_into_the_repository_leads_somewhere():
    links = re.findall(r"\]\(([^)#]+)", README)
    assert len(links) > 8
    missing = [link for link in links if "://" not in link and not (ROOT / link).exists()]
    assert not missing


def test_each_command_is_named():
    from onnx_ci.cli import cli

    assert [name for name in cli.commands if f"`onnx-ci {name}" not in README and f"`{name}`" not in README] == []
