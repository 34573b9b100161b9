"""Whole programs under the same isolation: status, output, typed faults."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spade_runtime.errors import (
    EnvCrashed,
    EnvFault,
    EnvMemoryExceeded,
    EnvOutputTooLarge,
    EnvTimeout,
    UsageError,
)
from spade_runtime.sandbox.pool import SandboxPool
from spade_runtime.spec import Limits


@pytest.fixture(scope="module")
def pool() -> Iterator[SandboxPool]:
    with SandboxPool(limits=Limits(load_seconds=0.5, memory_mib=128)) as pool:
        yield pool


def test_a_program_reads_prints_and_ends(pool: SandboxPool) -> None:
    source = """
import sys
numbers = [int(word) for word in input().split()]
print(sum(numbers))
for line in sys.stdin:
    print(line.strip().upper(), file=sys.stderr)
if __name__ == "__main__":
    sys.exit(len(sys.argv))
"""
    found = pool.run_program(source, stdin="1 2 3\nä\nb\n", argv=["x", "y"])
    assert (found.exit_status, found.stdout, found.stderr) == (3, "6\n", "Ä\nB\n")
    assert 0 < found.cpu_seconds < 0.5


def test_binary_streams_are_there(pool: SandboxPool) -> None:
    source = "import sys\nsys.stdout.buffer.write(sys.stdin.buffer.read()[::-1])"
    assert pool.run_program(source, stdin="abc").stdout == "cba"


def test_two_runs_of_a_program_draw_other_numbers(pool: SandboxPool) -> None:
    source = "import random\nprint(random.getrandbits(64))"
    assert pool.run_program(source).stdout != pool.run_program(source).stdout


@pytest.mark.parametrize(
    ("source", "status", "said"),
    [
        ("", 0, ""),
        ("raise SystemExit", 0, ""),
        ("raise SystemExit(300)", 44, ""),
        ("raise SystemExit('no')", 1, "no"),
        ("exit(2)", 2, ""),
        ("1 / 0", 1, "ZeroDivisionError"),
        ("def f(:", 1, "SyntaxError"),
        ("import nothing", 1, "ModuleNotFoundError"),
        ("class A:\n    pass\nprint(A.__module__)", 0, ""),
    ],
)
def test_each_ending_has_the_status_that_python_gives(
    pool: SandboxPool, source: str, status: int, said: str
) -> None:
    found = pool.run_program(source)
    assert found.exit_status == status and said in found.stderr
    assert "spade_runtime" not in found.stderr


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("while True: pass", EnvTimeout),
        ("x = [0]\nwhile True: x += x", EnvMemoryExceeded),
        ("while True: print('x' * 1000)", EnvOutputTooLarge),
        ("import sys\nwhile True: sys.stderr.buffer.write(b'x' * 1000)", EnvOutputTooLarge),
        ("try:\n    print('x' * 100000)\nexcept BaseException:\n    pass", EnvOutputTooLarge),
        ("import os\nos._exit(0)", EnvCrashed),
        ("import os\nos.abort()", EnvCrashed),
        ("import os\nos.execv('/bin/true', ['true'])", EnvCrashed),
        ("import os\nwhile True: os.write(4, b'x')", EnvFault),
    ],
)
def test_hostile_program_ends_in_a_typed_fault(
    pool: SandboxPool, source: str, kind: type[EnvFault]
) -> None:
    with pytest.raises(kind):
        pool.run_program(source)


@pytest.mark.hostile
@pytest.mark.parametrize(
    "source",
    [
        "open('/etc/passwd')",
        "open('x', 'w')",
        "import os\nos.fork()",
        "import os\nos.kill(1, 9)",
        "import os\nos.listdir('/')",
        "import socket",
    ],
)
def test_hostile_program_reaches_nothing(pool: SandboxPool, source: str) -> None:
    found = pool.run_program(source)
    assert found.exit_status == 1
    assert "Error" in found.stderr


def test_modules_are_preloaded_on_request(pool: SandboxPool) -> None:
    source = "import sched\nprint(sched.__name__)"
    assert pool.run_program(source).exit_status == 1
    assert pool.run_program(source, preload=["sched"]).stdout == "sched\n"


def test_a_module_that_is_not_installed_is_named(pool: SandboxPool) -> None:
    with pytest.raises(UsageError, match="surely_not_here"):
        pool.run_program("print(1)", preload=["surely_not_here"])


def test_numpy_is_there_for_a_program_that_names_it() -> None:
    pytest.importorskip("numpy")
    with SandboxPool() as pool:
        found = pool.run_program(
            "import numpy as np\nprint(np.arange(4).sum(), np.fft.fft([1, 1]))"
        )
    assert found.stdout.startswith("6 "), found
