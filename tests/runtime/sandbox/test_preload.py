"""What Python imports late is there before the files are out of reach."""

from __future__ import annotations

import textwrap

import pytest

from spade_runtime.sandbox.pool import SandboxPool
from spade_runtime.sandbox.wire import RawStep

LATE = {
    "a text as a seed": "random.Random('crate').randint(0, 9) in range(10)",
    "a time by its form": "datetime.datetime.strptime('5 May 2026', '%d %B %Y').year == 2026",
    "a name of a character": r"'é'.encode('ascii', 'namereplace').endswith(b'WITH ACUTE}')",
    "encodings": "all('a'.encode(e) for e in ('cp1252', 'utf-16-le', 'utf-16', 'latin-1', 'idna'))",
    "a typing name made on demand": "str(ContextManager[int]).startswith('typing.ContextManager')",
    "old names of the syntax tree": "isinstance(ast.parse('1').body[0].value, ast.Constant)",
    "an exact deviation": "statistics.stdev([Fraction(1), Fraction(3)]) > 1",
    "a printed structure": "'Counter' in pprint.pformat(collections.Counter('abca'))",
    "a calendar": "'January' in calendar.month(2026, 1)",
}


@pytest.mark.parametrize("name", LATE)
def test_what_is_imported_late_is_there(name: str, guarded: SandboxPool) -> None:
    source = textwrap.dedent(
        f"""
        import ast, calendar, pprint, statistics
        from fractions import Fraction
        from typing import ContextManager

        class LateEnv(TextEnv):
            "Ask for what is imported late."
            skill = "optimization"

            def reset(self, seed=None):
                return "ask", {{}}

            def step(self, action):
                return str({LATE[name]}), 0.0, True, False, {{}}
        """
    )
    with guarded.open_raw(source) as child:
        assert child.inspect().findings == []
        child.load()
        child.reset([0], [1])
        (step,) = child.step([0], ["go"])
    assert isinstance(step, RawStep) and step.observation == "True", step
