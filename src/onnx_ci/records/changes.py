"""Says in words what differs between two records in JSON form: a contract, a config, what a golden was made under."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_LONGEST = 120


def changes(old: Mapping[str, Any], new: Mapping[str, Any], path: str = "") -> list[str]:
    """Says of each place where two values differ what it was and what it is: "dims.batch.max was 32, is 64"."""
    found: list[str] = []
    for key in sorted({*old, *new}):
        before, after, at = old.get(key), new.get(key), f"{path}{key}"
        if before == after:
            continue
        if isinstance(before, dict) and isinstance(after, dict):
            found += changes(before, after, f"{at}.")
        elif isinstance(before, list) and isinstance(after, list) and _are_tensors([*before, *after]):
            found += changes(_by_name(before), _by_name(after), f"{at}.") or [f"the order of {at} changed"]
        else:
            found.append(f"{at} was {said(before)}, is {said(after)}")
    return found


def file_changes(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """Says of each file whose digest differs what became of it: "service/io.py was changed"."""
    found = []
    for name in sorted({*old, *new}):
        if name not in new:
            found.append(f"{name} is no longer named")
        elif name not in old:
            found.append(f"{name} is new")
        elif old[name] != new[name]:
            found.append(f"{name} was changed ({old[name]:.8} → {new[name]:.8})")
    return found


def said(value: Any) -> str:
    """A value for a message."""
    if value is None:
        return "absent"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _are_tensors(values: list[Any]) -> bool:
    return all(isinstance(item, dict) and "name" in item for item in values)


def _by_name(tensors: list[dict[str, Any]]) -> dict[str, Any]:
    return {item["name"]: {key: value for key, value in item.items() if key != "name"} for item in tensors}
