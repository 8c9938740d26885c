"""The command line: arguments to a job to an exit code. A job is imported only when it is asked for."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from onnx_ci import __version__
from onnx_ci.errors import ExitCode, OnnxCiError

F = TypeVar("F", bound=Callable[..., Any])
_FOLDER = click.Path(path_type=Path, file_okay=False)
_FILE = click.Path(path_type=Path)


def _options(*names: str) -> Callable[[F], F]:
    """The common options that a command takes, in the order of the names."""
    known = {
        "config": click.option("--config", type=_FILE, help="Config file; else onnx-ci.toml or pyproject.toml here."),
        "model": click.option("--model", "models", multiple=True, help="Only this model; may be given again."),
        "target": click.option("--target", "targets", multiple=True, help="Only this target; may be given again."),
        "out": click.option("--out", type=_FOLDER, default="onnx-ci-out", show_default=True, help="Output folder."),
        "artifacts": click.option("--artifacts", type=_FOLDER, help="Artifacts folder; else <out>/artifacts."),
        "base": click.option("--base", type=_FOLDER, help="Artifacts of the base branch, to compare with, if any."),
        "python": click.option("--python", help="The interpreter that the model runs in."),
        "comment": click.option("--comment/--no-comment", default=False, help="Post the pull request comment."),
        "author": click.option(
            "--comment-author",
            "author",
            default="github-actions[bot]",
            show_default=True,
            help="Whose comment it is: the login behind the token.",
        ),
        "history": click.option("--history", type=_FILE, help="JSON lines file that latency is added to."),
        "plan": click.option("--plan", type=_FILE, help="plan.json: what results to expect; else <out>/plan.json."),
    }

    def decorate(command: F) -> F:
        for name in reversed(names):
            command = known[name](command)
        return command

    return decorate


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="onnx-ci")
def cli() -> None:
    """Gate PyTorch to ONNX exports: contract, parity, golden outputs, provider and latency.

    Exit codes: 0 pass, 1 a promise is broken, 2 usage or config, 3 could not tell, 4 a filter matched nothing.
    """


@cli.command()
@_options("config", "model", "target", "out", "base", "history", "python", "comment", "author")
def run(**options: Any) -> ExitCode:
    """Export, verify and report on this machine."""
    from onnx_ci import commands

    return commands.run(environment=os.environ, **options)


@cli.command()
@_options("config", "model", "target", "out")
@click.option("--shards", type=click.IntRange(1, 256), default=1, show_default=True, help="Export jobs to spread over.")
def plan(**options: Any) -> ExitCode:
    """Say which models, targets and shards there are, as a matrix."""
    from onnx_ci import commands

    return commands.plan(environment=os.environ, **options)


@cli.command()
@_options("config", "model", "out", "python")
def export(**options: Any) -> ExitCode:
    """Export models and write their artifacts."""
    from onnx_ci import commands

    return commands.export(environment=os.environ, **options)


@cli.command()
@_options("config", "model", "target", "out", "artifacts", "base", "python")
def verify(**options: Any) -> ExitCode:
    """Judge artifacts on this machine's targets; needs no torch."""
    from onnx_ci import commands

    return commands.verify(environment=os.environ, **options)


@cli.command()
@_options("out", "plan", "base", "history", "comment", "author")
def report(
    out: Path, plan: Path | None, base: Path | None, history: Path | None, comment: bool, author: str
) -> ExitCode:
    """Merge results into the table, the JUnit file and the pull request comment."""
    from onnx_ci.report import job

    found = plan or out / "plan.json"
    given = found if plan or found.exists() else None
    return job.run(
        out=out,
        plan=given,
        base=base,
        history=history,
        comment=comment,
        author=author,
        env=os.environ,
        stdout=sys.stdout,
    )


@cli.command()
@_options("config", "model", "target", "out", "artifacts", "python")
def calibrate(**options: Any) -> ExitCode:
    """Measure how much benign runs of the artifacts err, and write their budgets beside the config.

    Benign are other optimization levels, one and all threads, and repeats. The budget of an output becomes twice the
    largest ratio to PyTorch's own error, at least the config's and at most 16. What is wrong is refused.
    """
    from onnx_ci import commands

    return commands.calibrate(environment=os.environ, **options)


@cli.group()
def golden() -> None:
    """Stored, reviewed outputs: check or accept them."""


@golden.command()
@_options("config", "model", "out", "artifacts")
def accept(**options: Any) -> ExitCode:
    """Write the artifacts' inputs and PyTorch outputs as goldens, for review in a pull request."""
    from onnx_ci import commands

    return commands.golden_accept(**options)


@golden.command()
@_options("config", "model", "out", "artifacts", "python")
def check(**options: Any) -> ExitCode:
    """Compare artifacts with their goldens on the CPU."""
    from onnx_ci import commands

    return commands.golden_check(environment=os.environ, **options)


@cli.command()
@click.argument("id", default="")
def rule(id: str) -> ExitCode:
    """Explain a rule: what it says, why it matters, how to mend it; or list the rules, all or those of a stage."""
    from onnx_ci import rules

    click.echo(rules.explain(id))
    return ExitCode.PASS


@cli.command()
def init() -> ExitCode:
    """Write a first config and workflows; never overwrites."""
    from onnx_ci.scaffold import init as first

    return first.init(Path.cwd(), click.echo)


@cli.command()
@_options("config", "python")
def doctor(config: Path | None, python: str | None) -> ExitCode:
    """Say what is missing on this machine."""
    from onnx_ci import commands

    return commands.doctor(config=config, python=python, environment=os.environ)


def main() -> None:
    """Runs the command line; every way out has its exit code, and none is a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # not every terminal and pipe can show ≤ and µ
    try:
        code = cli.main(standalone_mode=False)
    except click.exceptions.Exit as done:
        code = done.exit_code
    except click.ClickException as error:
        error.show()
        code = ExitCode.USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        code = 130
    except OnnxCiError as error:
        _show(error)
        code = error.exit_code
    except OSError as error:
        _show(OnnxCiError(error.strerror or str(error), where=str(error.filename or "")))
        code = ExitCode.UNKNOWN
    except Exception as error:
        if os.environ.get("ONNX_CI_DEBUG"):
            raise
        hint = "This is a fault in onnx-ci: please report it with the output of ONNX_CI_DEBUG=1."
        _show(OnnxCiError(f"{type(error).__name__}: {error}", hint=hint))
        code = ExitCode.UNKNOWN
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(int(code or 0))


def _show(error: OnnxCiError) -> None:
    render = getattr(error, "render", None)
    click.echo(render() if render else f"ERROR: {error}", err=True)
    if error.hint:
        click.echo(f"Hint: {error.hint}", err=True)
