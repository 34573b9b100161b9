"""Runs one whole program inside a child, as `python program.py` would: no class, no policy.

Graders of code benchmarks need it. The isolation is the same; what a program prints is collected
up to a limit, and its exit status is what `sys.exit`, its end or its uncaught exception say.
"""

from __future__ import annotations

import builtins
import io
import random
import sys
import traceback
from typing import Any

from spade_runtime.sandbox.capture import PrintedTooMuch
from spade_runtime.sandbox.wire import ProgramReply, Run

PROGRAM_NAME = "program.py"


class _Output(io.RawIOBase):
    """Collects bytes; stdout and stderr share one allowance."""

    def __init__(self, allowance: list[int]) -> None:
        super().__init__()
        self.data = bytearray()
        self._allowance = allowance

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        size = len(memoryview(data).cast("B"))
        self._allowance[0] -= size
        if self._allowance[0] < 0:
            raise PrintedTooMuch
        self.data += data
        return size

    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


def run(request: Run) -> ProgramReply:
    """Run a program to its end.

    Returns:
        Its exit status and what it printed. `code` names a limit that it met, whatever it caught.
    """
    allowance = [request.output_bytes]
    out, err = _Output(allowance), _Output(allowance)
    sys.argv = [PROGRAM_NAME, *request.argv]
    sys.stdin = io.TextIOWrapper(io.BytesIO(request.stdin.encode()), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(out, encoding="utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(err, encoding="utf-8", write_through=True)
    status, code = 0, ""
    try:
        status = _executed(request.source)
    except MemoryError:
        status, code = 1, "SPD802"
    except PrintedTooMuch:
        status, code = 1, "SPD804"
    if allowance[0] < 0:
        code = "SPD804"
    return ProgramReply(status, out.text(), err.text(), code)


def _executed(text: str) -> int:
    # Python's `site` gives programs these two; the zygote starts without it.
    vars(builtins).update(exit=sys.exit, quit=sys.exit)
    module = type(sys)("__main__")
    module.__dict__.update(__builtins__=builtins, __file__=PROGRAM_NAME)
    sys.modules["__main__"] = module
    # All children begin with the same generator, and a program counts on one of its own.
    random.seed()
    try:
        exec(compile(text, PROGRAM_NAME, "exec", dont_inherit=True), module.__dict__)
    except SystemExit as leaving:
        return _status(leaving.code)
    except (MemoryError, PrintedTooMuch):
        raise
    except BaseException as error:
        # Without this file's own frame, which is none of the program's business.
        trace = error.__traceback__.tb_next if error.__traceback__ else None
        traceback.print_exception(type(error), error, trace)
        return 1
    return 0


def _status(code: Any) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return int(code) & 0xFF
    print(code, file=sys.stderr)
    return 1
