"""torch.compile as a runner beside eager, where that was asked for: compiled before the clock, in bounded time."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from onnx_ci.export import private
from onnx_ci.export.places import chain
from onnx_ci.export.types import Call

Backend = str | Callable[..., object]
DEFAULT: Backend = "inductor"
_ADVICE = "Set TORCHDYNAMO_VERBOSE"
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled module's run, or why there is none.

    Attributes:
        graphs: How many there are of it, eager code between them; None where this torch does not tell.
        seconds: What compiling took.
    """

    run: Callable[[], object] | None = None
    why_not: str = ""
    graphs: int | None = None
    seconds: float = 0.0


def compiled(module: torch.nn.Module, call: Call, seconds: float, *, backend: Backend = DEFAULT) -> Compiled:
    """Compiles a module for a call and runs it once; whatever the user's torch, compiler or module do, nothing fails.

    Args:
        module: In eval mode; it is left as it is.
        call: What it is called with.
        seconds: After this time it is given up.
        backend: As torch.compile takes it.
    """
    start, before = time.monotonic(), private.compiled_graphs()
    try:
        # What exporting has left with dynamo (compiled parts, refusals) is no service's start.
        torch.compiler.reset()
        made = torch.compile(module, backend=backend)
        with _within(seconds):
            made(*call.args, **call.kwargs)
    except _OutOfTimeError:
        return Compiled(why_not=f"it had not compiled after the {seconds:.0f} s there were")
    except Exception as error:  # a compiler that is not there, a break in the graph, the module's own
        traceback.print_exc()
        return Compiled(why_not=_said(error))
    after = private.compiled_graphs()
    graphs = None if before is None or after is None else after - before
    if graphs == 0:
        return Compiled(why_not="nothing of the module was compiled: it would be eager PyTorch again")
    return Compiled(lambda: made(*call.args, **call.kwargs), graphs=graphs, seconds=time.monotonic() - start)


def _said(error: Exception) -> str:
    """The cause behind all that wraps it, in a line, without torch's advice on its logs."""
    cause = list(chain(error))[-1]
    told = " ".join(str(cause).partition(_ADVICE)[0].split())[:_LONGEST]
    return f"{type(cause).__name__}: {told}" if told else type(cause).__name__


class _OutOfTimeError(BaseException):
    """No Exception: dynamo takes those for a break in the graph and goes on."""


@contextlib.contextmanager
def _within(seconds: float) -> Iterator[None]:
    """Ends what is inside after a time, where the system can (not on Windows, nor in a second thread)."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def give_up(*_: object) -> None:
        raise _OutOfTimeError

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
