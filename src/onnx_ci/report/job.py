"""The job `report`: results in; table, files, annotations and the pull request comment out; the exit code last.

The only job with a write token. It runs nobody's code and believes nothing it reads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from onnx_ci import commits
from onnx_ci.errors import ExitCode
from onnx_ci.records import codec
from onnx_ci.records.report import Plan, Report
from onnx_ci.report import base as bases
from onnx_ci.report import comment as comments
from onnx_ci.report import context, escape, junit, markdown, page, post, pull, read, terminal, write
from onnx_ci.report import history as histories
from onnx_ci.report.annotations import Annotation, collect, commands
from onnx_ci.report.context import Context, Event
from onnx_ci.report.github import Api, GitHubError
from onnx_ci.report.history import Point
from onnx_ci.report.merge import merge
from onnx_ci.report.post import NotPosted, Posted
from onnx_ci.report.pull import NoPull

CONFIG = "onnx-ci.toml"


def run(
    *,
    out: Path,
    plan: Path | None,
    base: Path | None,
    comment: bool,
    env: Mapping[str, str],
    stdout: TextIO,
    config: str = "",
    author: str = comments.AUTHOR,
    planned_only: bool = False,
    history: Path | None = None,
    now: Callable[[], str] = histories.now,
    sleep: Callable[[float], None] = time.sleep,
) -> ExitCode:
    """Merges the results in `out` and reports them.

    Args:
        out: The output folder: ``results/`` is read, ``report/`` is written.
        plan: ``plan.json``; None where nothing says what was expected.
        base: The base's artifacts folder, whose contracts and versions are compared; None without a base.
        comment: Whether to write the pull request comment.
        env: The process's environment: GITHUB_* say which run it is; GITHUB_TOKEN writes the comment.
        stdout: Where the table and the workflow commands go.
        config: Path of the config file in the repository; "" for the plan's.
        author: Whose comment it is: another one than the workflow's own where the token is an app's or a person's.
        planned_only: See `merge.merge`.
        history: The file of earlier latencies, which this run's are added to; None for none.
        now: The time, ISO 8601 in UTC.
        sleep: Waits before a repeated call; handed in for tests.

    Raises:
        OnnxCiError: The report can't be written.
    """
    report, planned = _merged(out, plan, base, planned_only, env.get("GITHUB_RUN_ID", ""))
    event = context.event(env)
    here = context.context(env, event, config=_config(config, planned))

    past, notes = _past(report, history, here, now()) if history else ([], [])
    report = replace(report, notes=[*report.notes, *notes])
    written = write.files(out / "report", _texts(report, here, past))
    if history:
        written += write.files(history.parent, {history.name: histories.text(past)})
    terminal.show(terminal.render(report), stdout, env)
    stdout.write(f"Wrote {', '.join(path.as_posix() for path in written)}\n")
    if path := env.get("GITHUB_STEP_SUMMARY"):
        write.append(path, markdown.summary(report, here, limit=markdown.SUMMARY_LIMIT - _size(Path(path))))

    posted = _post(report, here, event, env, author, sleep) if comment else None
    found = collect(report, config=here.config)
    found += _said(posted, stdout)
    if env.get("GITHUB_ACTIONS") == "true":
        where = "the step summary and report/index.html"
        stdout.writelines(f"{command}\n" for command in commands(found, where=where))
    if path := env.get("GITHUB_OUTPUT"):
        write.append(path, write.outputs(_outputs(report, out, posted)))
    return ExitCode(report.exit_code)


def _merged(
    out: Path, plan: Path | None, base: Path | None, planned_only: bool, run: str
) -> tuple[Report, Plan | None]:
    found = read.results(out / "results")
    problems, planned = list(found.problems), None
    if plan:
        try:
            planned = read.plan(plan)
        except read.UnreadableError as error:
            problems.append(f"{plan.name}: {error}")
    if base is None:
        return merge(found.results, planned, problems, planned_only=planned_only), planned
    before = bases.find(base, commits.sha(planned.base_sha) if planned else "", run)
    merged = merge(found.results, planned, problems, before.contracts, before.notes, planned_only=planned_only)
    return replace(merged, base_commit=before.commit), planned


def _config(given: str, planned: Plan | None) -> str:
    return given or escape.path(planned.config if planned else "") or CONFIG


def _past(report: Report, history: Path, here: Context, date: str) -> tuple[list[Point], list[str]]:
    """The latencies of earlier runs with this one's, and what could not be read of them."""
    before, notes = histories.load(history)
    run = str(here.run.id) if here.run.id else ""
    return histories.joined(before, histories.points(report, date=date, commit=here.run.sha, run=run)), notes


def _texts(report: Report, here: Context, past: Sequence[Point]) -> dict[str, str]:
    signature = comments.signature(here.config, here.run)
    return {
        "report.json": codec.dumps(report),
        "summary.md": markdown.summary(report, here),
        "comment.md": markdown.comment(report, here, marker=signature),
        "junit.xml": junit.render(report, config=here.config),
        "index.html": page.render(report, here, past),
    }


def _post(
    report: Report, here: Context, event: Event, env: Mapping[str, str], author: str, sleep: Callable[[float], None]
) -> Posted | NotPosted | NoPull:
    token = env.get("GITHUB_TOKEN", "")
    if not token:
        return NotPosted(why="there is no token", hint="Set GITHUB_TOKEN for the step that reports.")
    try:
        api = Api(env.get("GITHUB_API_URL") or "https://api.github.com", token, event.repository)
        number = pull.find(event, api.pulls)
    except GitHubError as error:
        return NotPosted(why=str(error), hint=post.PERMISSION if error.status == 403 else "")
    if isinstance(number, NoPull):
        return number
    signature = comments.signature(here.config, here.run)
    return post.upsert(
        api,
        number,
        marker=comments.marker(here.config),
        author=author,
        run=here.run,
        render=lambda limit: markdown.comment(report, here, limit, marker=signature),
        sleep=sleep,
    )


def _said(posted: Posted | NotPosted | NoPull | None, stdout: TextIO) -> Sequence[Annotation]:
    """What became of the comment: a line, and a warning where somebody expected one. Never an exit code."""
    if posted is None:
        return []
    if isinstance(posted, Posted):
        stdout.write(f"Comment {posted.id}: {'left as a newer run wrote it' if posted.newer else 'written'}\n")
        return []
    if isinstance(posted, NoPull) and not posted.wanted:
        stdout.write(f"{escape.clean(posted.why)}\n")
        return []
    if isinstance(posted, NotPosted):
        said = f"the comment could not be written: {posted.why}\n{posted.hint}".strip()
    else:
        said = posted.why
    return [Annotation(level="warning", title="onnx-ci: no comment", message=said)]


def _outputs(report: Report, out: Path, posted: Posted | NotPosted | NoPull | None) -> dict[str, str]:
    return {
        "status": report.status,
        "exit-code": str(report.exit_code),
        "report": (out / "report").as_posix(),
        "comment-id": str(posted.id) if isinstance(posted, Posted) else "",
    }


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
