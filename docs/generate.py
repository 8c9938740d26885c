"""Writes what is made of the code: python docs/generate.py [--check]

The JSON schema and docs/config.md come from the config's schema, docs/rules.md from the catalogue, the templates of
`onnx-ci init` from docs/examples, and the tables in the README from action.yml and the reusable workflow.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from onnx_ci import rules
from onnx_ci.config import schema

ROOT = Path(__file__).resolve().parents[1]
TEMPLATES = {"single-job.yml": "workflow.yml.tmpl", "fork-comment.yml": "comment.yml.tmpl"}
_ITEM = {"models": "NAME", "targets": "NAME", "inputs": "INPUT", "dims": "DIM", "outputs": "OUTPUT"}
_KINDS = {"string": "text", "boolean": "true or false", "object": "table"}


def files(root: Path) -> dict[Path, str]:
    """All generated files with their text; files whose source is missing are left out."""
    made = {
        root / "src/onnx_ci/config/schema.json": json.dumps(schema.json_schema(), indent=2, ensure_ascii=False) + "\n",
        root / "docs/config.md": config_page(schema.json_schema()),
        root / "docs/rules.md": rules.render_markdown(rules.catalogue()),
    }
    for example, template in TEMPLATES.items():
        source = root / "docs/examples" / example
        if source.exists():
            made[root / "src/onnx_ci/scaffold" / template] = source.read_text(encoding="utf-8")
    readme = root / "README.md"
    if readme.exists():
        made[readme] = with_tables(readme.read_text(encoding="utf-8"), root)
    return made


def config_page(made: dict[str, Any]) -> str:
    """The page about onnx-ci.toml: each table with its keys."""
    lines = [
        "# onnx-ci.toml",
        "",
        "Or the same tables in pyproject.toml, below `tool.onnx-ci`. Unknown keys are refused, all errors are told at",
        "once, and paths are relative to the file's folder. What is left out is not checked.",
        "The same as a JSON schema, for editors: `src/onnx_ci/config/schema.json`. The smallest one:",
        "",
        "```toml",
        "[models.classifier]",
        'entrypoint = "models/classifier.py"',
        "```",
    ]
    for header, table in _tables(made, made, ""):
        lines += ["", f"## {header}", "", table.get("description", "").rstrip(), ""]
        rows = list(_rows(table, made))
        if rows:
            lines += ["| key | type | default | meaning | example |", "|---|---|---|---|---|", *rows]
    return "\n".join(lines) + "\n"


def with_tables(text: str, root: Path) -> str:
    """Replaces what stands between ``<!-- NAME -->`` and ``<!-- /NAME -->`` by the table of that name."""
    for name, rows in _action_tables(root).items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        text = pattern.sub(lambda match, rows=rows: match[1] + "\n".join(rows) + "\n" + match[2], text)
    return text


def _action_tables(root: Path) -> dict[str, list[str]]:
    tables = {}
    for prefix, path in (("action", "action.yml"), ("workflow", ".github/workflows/onnx-ci.yml")):
        if not (root / path).exists():
            continue
        parsed = yaml.safe_load((root / path).read_text(encoding="utf-8"))
        # YAML 1.1 reads the key `on` as true.
        part = parsed if prefix == "action" else parsed[True]["workflow_call"]
        inputs = [f"| `{name}` | {_default(entry)} | {_cell(entry)} |" for name, entry in part["inputs"].items()]
        outputs = [f"| `{name}` | {_cell(entry)} |" for name, entry in part.get("outputs", {}).items()]
        tables[f"{prefix} inputs"] = ["| input | default | meaning |", "|---|---|---|", *inputs]
        tables[f"{prefix} outputs"] = ["| output | meaning |", "|---|---|", *outputs]
    return tables


def _default(entry: dict[str, Any]) -> str:
    default = entry.get("default", "")
    shown = str(default).lower() if isinstance(default, bool) else str(default)
    return f"`{shown}`" if shown else ""


def _cell(entry: dict[str, Any]) -> str:
    return " ".join(entry["description"].split()).replace("|", "\\|")


def _tables(table: dict[str, Any], made: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for key, entry in table["properties"].items():
        inner, kind = _inner(entry, made)
        if inner is None:
            continue
        below = f"{path}.{key}" if path else key
        below += f".{_ITEM.get(key, 'NAME')}" if kind == "named" else ""
        later = " (not built yet)" if entry.get("x-not-built") else ""
        yield (f"`[[{below}]]`" if kind == "array" else f"`[{below}]`") + later, inner
        yield from _tables(inner, made, below)


def _inner(entry: dict[str, Any], made: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """The table that a key holds, and whether by itself, by name or as an array."""
    named = entry.get("additionalProperties")
    for found, kind in ((entry, "one"), (named, "named"), (entry.get("items"), "array")):
        if isinstance(found, dict) and "$ref" in found:
            return made["$defs"][found["$ref"].rpartition("/")[2]], kind
    return None, ""


def _rows(table: dict[str, Any], made: dict[str, Any]) -> Iterator[str]:
    required = table.get("required", [])
    for key, entry in table["properties"].items():
        if _inner(entry, made)[0] is not None:
            continue
        meaning = entry["description"].replace("|", "\\|")
        if entry.get("x-not-built"):
            meaning += " *Not built yet: refused.*"
        default = "*required*" if key in required else _code(entry.get("default"))
        example = _code(entry["examples"][0], date=_is_date(entry)) if "examples" in entry else ""
        yield f"| `{key}` | {_kind(entry)} | {default} | {meaning} | {example} |"


def _kind(entry: dict[str, Any]) -> str:
    if "anyOf" in entry:
        options = [_kind(option) for option in entry["anyOf"] if option.get("type") != "null"]
        return " or ".join(dict.fromkeys(options))
    if "enum" in entry:
        return ", ".join(f"`{toml(word)}`" for word in entry["enum"])
    if entry.get("format") == "date":
        return "date"
    kind = entry.get("type", "any value")
    if kind == "array":
        return f"array of {_kind(entry['items'])}"
    if isinstance(kind, list):
        return " or ".join(_KINDS.get(one, one) for one in kind)
    least = entry.get("minimum", entry.get("exclusiveMinimum"))
    most = entry.get("maximum", 2**31)
    if kind == "integer" and least is not None:
        return f"integer, {least} to {most}" if most < 2**31 else f"integer from {least}"
    return str(_KINDS.get(kind, kind))


def _is_date(entry: dict[str, Any]) -> bool:
    return any(option.get("format") == "date" for option in entry.get("anyOf", [entry]))


def _code(value: Any, *, date: bool = False) -> str:
    if value is None or value == [] or value == {}:
        return ""
    return f"`{value if date else toml(value)}`"


def toml(value: Any) -> str:
    """Writes a value as TOML does inline."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def main(arguments: list[str]) -> int:
    """Writes the files that differ; with --check it only names them, and fails."""
    stale = 0
    for path, text in files(ROOT).items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale += 1
        print(f"{path.relative_to(ROOT)}: {'is stale' if '--check' in arguments else 'written'}")
        if "--check" not in arguments:
            path.write_text(text, encoding="utf-8")
    if stale and "--check" in arguments:
        print("Run: python docs/generate.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
