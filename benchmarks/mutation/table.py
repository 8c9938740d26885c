"""The figures of a run as markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from benchmarks.mutation.judge import Judged


def render(judged: Sequence[Judged]) -> str:
    """All tables: by architecture, by kind, by what caught them; survivors and equal ones one by one."""
    ones = sorted(judged, key=lambda one: (one.architecture, one.kind, one.node, one.what))
    parts = [
        _shares(ones, "architecture"),
        _shares(ones, "kind"),
        _by_rule(ones),
        _listed("Survivors", [one for one in ones if one.verdict == "survived"]),
        _listed("Equal: the same function bit by bit", [one for one in ones if one.verdict == "equal"]),
    ]
    return "\n\n".join(parts)


def _shares(ones: Sequence[Judged], by: str) -> str:
    lines = [
        f"| {by} | mutants | caught | rtol 1e-4, atol 1e-5 | cosine 0.997 | `verify=True` | equal | not loaded |",
        "|---|---|---|---|---|---|---|---|",
    ]
    keys = sorted({getattr(one, by) for one in ones})
    lines += [_row(key, [one for one in ones if getattr(one, by) == key]) for key in keys]
    return "\n".join([*lines, _row("**all**", ones)])


def _row(name: str, ones: Sequence[Judged]) -> str:
    """Shares are of the mutants that load and are not the same function."""
    apart = Counter(one.verdict for one in ones)
    real = [one for one in ones if one.verdict in ("caught", "survived")]
    shares = [
        _share(flag, len(real))
        for flag in (
            sum(one.verdict == "caught" for one in real),
            *(sum(getattr(one, check) for one in real) for check in ("allclose", "cosine", "exporter")),
        )
    ]
    return f"| {name} | {len(real)} | {' | '.join(shares)} | {apart['equal']} | {apart['structure']} |"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


def _by_rule(ones: Iterable[Judged]) -> str:
    """How many each rule failed, and how many it alone did."""
    failed, alone = Counter[str](), Counter[str]()
    for one in ones:
        if one.verdict == "caught":
            failed.update(one.rules)
            alone.update(one.rules if len(one.rules) == 1 else ())
    rows = [f"| `{rule}` | {count} | {alone[rule]} |" for rule, count in sorted(failed.items())]
    return "\n".join(["| rule | failed | alone |", "|---|---|---|", *rows])


def _listed(title: str, ones: Sequence[Judged]) -> str:
    counts = Counter((one.kind, one.operator) for one in ones)
    summed = ", ".join(f"{kind} {operator} {count}".replace("  ", " ") for (kind, operator), count in counts.items())
    rows = [f"- {one.architecture}: {one.kind} in {one.operator or 'outputs'} `{one.node}`: {one.what}" for one in ones]
    return "\n".join([f"{title}: {len(ones)}. {summed}", *rows])
