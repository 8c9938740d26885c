import os
import subprocess
import sys
import time

import pytest

from onnx_ci.worker.watch import GroupMemory, crashed, describe_exit, kill_group

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_the_memory_of_children_counts():
    code = (
        "import subprocess, sys, time;"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; x = bytearray(80 << 20); time.sleep(60)']);"
        "time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    try:
        memory = GroupMemory(process.pid)
        deadline = time.monotonic() + 20
        while (held := memory.resident_bytes() or 0) < 80 << 20 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert held >= 80 << 20
    finally:
        kill_group(process.pid)
        process.wait()


def test_a_group_that_is_gone_can_be_killed_again():
    process = subprocess.Popen([sys.executable, "-c", ""], start_new_session=True)
    process.wait()
    kill_group(process.pid)


@pytest.mark.parametrize(
    ("code", "said", "fault"),
    [
        ("import os; os.abort()", "ended by SIGABRT", True),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ended by SIGSEGV", True),
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
            "SIGKILL (the system may have run out of memory)",
            False,
        ),
        ("import os; os._exit(7)", "exit code 7 and no result", False),
    ],
)
def test_each_way_to_end_is_named(code, said, fault):
    pid = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-c", code])
    _, status = os.waitpid(pid, 0)
    assert said in describe_exit(status)
    assert crashed(status) == fault
