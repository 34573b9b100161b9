"""The policy's findings: places, messages, syntax, unused imports, code that can't run."""

import sys

import pytest

from spade_runtime.guards import PolicyViolation
from spade_runtime.policy import check, compile_checked


def codes(source):
    return [(f.code, f.line, f.column) for f in check(source).findings]


def messages(source):
    return " | ".join(f.message for f in check(source).findings)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("def f(:\n  pass", 1),
        ("x = 1\ny = f'{x'\n", 2),
        ("x = 1\n  y = 2\n", 2),
        ("return 1", 1),
        ("x = 1\nnonlocal y\n", 2),
        ("def f():\n  yield\n  x = 0777\n", 3),
        ("print 'a'", 1),
        ("x = '\n", 1),
        ("def f(a, a): pass", 1),
        ("for x in y:\n  pass\nbreak", 3),
    ],
)
def test_syntax_errors_have_a_place(source, line):
    result = check(source)
    (finding,) = result.findings
    assert (finding.code, finding.line) == ("SPD003", line)
    assert finding.message.startswith("syntax error: ")
    assert result.code is None
    with pytest.raises(SyntaxError):
        compile_checked(source, policy=True)
    with pytest.raises(SyntaxError):
        compile_checked(source, policy=False)


@pytest.mark.parametrize(
    "source",
    [
        "x = " + "+".join(["1"] * 20000) + "\n",
        "x = " + "-" * 20000 + "1\n",
        "x = " + "(" * 300 + "1" + ")" * 300,
        "x = " + "[" * 5000 + "]" * 5000,
        "x = a" + ".b" * 5000,
        "x = a" + "()" * 20000,
        "x = " + "not " * 20000 + "1\n",
        "x = " + "lambda: " * 5000 + "1\n",
        "if 1:\n" + "".join(" " * i + "if 1:\n" for i in range(1, 200)) + " " * 200 + "x=1",
        "x = 1\0",
        "x = '\ud800'",
        "x = " + "9" * 5000,
    ],
    ids=lambda s: s[:12].replace("\0", "nul").encode("ascii", "replace").decode(),
)
def test_sources_that_overwhelm_a_parser(source):
    limit = sys.getrecursionlimit()
    result = check(source)
    assert [f.code for f in result.findings] == ["SPD003"]
    assert result.code is None
    assert "\n" not in result.findings[0].message
    assert sys.getrecursionlimit() == limit


def test_ordinary_depth_is_fine():
    assert check("x = " + "+".join(["1"] * 300)).findings == []
    assert check("x = " + "[" * 60 + "]" * 60).findings == []


def test_long_lines_and_empty_files():
    assert check("x = '" + "a" * 100_000 + "'").findings == []
    assert check("").findings == []
    assert check("\ufeffx = 1").findings == []
    assert check("x = 1\r\ny = 2\r\n").findings == []


def test_invalid_escapes_are_no_error_and_no_warning():
    assert check("x = '\\d'").findings == []


def test_columns_count_characters():
    assert codes("größe = (1).__class__") == [("SPD103", 1, 9)]
    assert codes("x = 'éé'; y = eval('1')") == [("SPD102", 1, 15)]


def test_findings_come_by_line_and_once():
    found = codes("eval('1')\nx = ().__class__\nimport os\nos.getcwd()\n")
    assert [(c, line) for c, line, _ in found] == [("SPD102", 1), ("SPD103", 2), ("SPD101", 3)]
    assert len(check("\n".join(f"eval('{i}')" for i in range(500))).findings) == 50


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("import os\n\nx = os.getcwd()", ["`import os`", "`os.getcwd` is used on line 3"]),
        ("import logging as l\nl.info('')", ["`l.info` is used on line 2", "print"]),
        ("from os import path as p\np", ["`from os import path`", "`p` is used on line 2"]),
        ("from . import helper\nhelper", ["`from . import helper`", "this file"]),
        ("from functools import update_wrapper as u\nu", ["what 'functools' offers"]),
        ("eval('1')", ["ast.literal_eval"]),
        ("input()", ["step(action)"]),
        ("x.__class__", ["type(x).__name__"]),
        ("from abc import ABC\nclass A(metaclass=ABC): pass", ["extend ABC"]),
        ("from math import *", ["name what you need"]),
    ],
)
def test_messages_tell_the_mend(source, parts):
    text = messages(source)
    for part in parts:
        assert part in text


def test_unused_imports_are_warnings_with_a_stub():
    result = check("import os, random, sys as s\nfrom pathlib import Path\nx = random.random()")
    assert [(f.code, f.line) for f in result.findings] == [
        ("SPD105", 1),
        ("SPD105", 1),
        ("SPD105", 2),
    ]
    assert result.stubs == ["os", "pathlib", "sys"]
    assert result.errors == []
    assert result.code is not None
    assert "`import os`" in result.findings[0].message


def test_uses_tells_the_roots():
    result = check("import numpy.random\nfrom networkx import Graph\nimport random")
    assert result.uses == {"numpy", "networkx", "random"}


GUARD = "if __name__ == '__main__':\n"


@pytest.mark.parametrize(
    "source",
    [
        GUARD + "  import os\n  os.system('x')\n  input()",
        "if '__main__' == __name__:\n  eval('1')",
        "def main():\n  input()\n" + GUARD + "  main()",
        "def ask():\n  return input()\ndef main():\n  ask()\n" + GUARD + "  main()",
        "import sys\ndef main():\n  sys.exit(input())\n" + GUARD + "  sys.exit(main())",
        "def main(argv=None):\n  open('x')\n" + GUARD + "  raise SystemExit(main())",
    ],
)
def test_code_under_the_main_guard_does_not_count(source):
    result = check(source)
    assert result.errors == []


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("def main():\n  input()\nmain()\n" + GUARD + "  main()", "SPD102"),
        ("def ask():\n  input()\nclass A:\n  f = ask\n" + GUARD + "  ask()", "SPD102"),
        ("def ask():\n  return input()\n", "SPD102"),
        ("def a():\n  input()\ndef b():\n  a()\nx = b\n" + GUARD + "  a()", "SPD102"),
        ("def main(x=eval('1')): pass\n" + GUARD + "  main()", "SPD102"),
        ("@print\ndef main():\n  input()\n" + GUARD + "  main()", "SPD102"),
        ("if __name__ != '__main__':\n  eval('1')", "SPD102"),
        (GUARD + "  pass\nelse:\n  eval('1')", "SPD102"),
        ("def f():\n  if __name__ == '__main__':\n    eval('1')", "SPD102"),
        ("import sys\ndef main():\n  sys.exit()\nmain()\n" + GUARD + "  main()", "SPD101"),
    ],
)
def test_live_code_counts_whatever_a_guard_does(source, code):
    assert code in [f.code for f in check(source).errors]


def test_a_guarded_helper_is_emptied_not_removed():
    result = check("def main():\n  input()\n" + GUARD + "  main()")
    found = {}
    exec(result.code, {"__builtins__": {}, "__name__": "environment"}, found)
    assert found["main"]() is None


@pytest.mark.parametrize(
    "source",
    [
        "def f(input): return input",
        "def f():\n  open = 1\n  return open",
        "class A:\n  def f(self):\n    def g(): return compile\n    compile = 1\n    return g",
        "open = 1\nprint(open)",
        "for input in (): print(input)",
        "f = lambda vars: vars",
        "[input for input in ()]",
        "import math as open\nopen.pi",
        "def type(a, b, c): return a\nx = type(1, 2, 3)",
    ],
)
def test_a_name_of_a_builtin_may_be_ones_own(source):
    assert check(source).findings == []


@pytest.mark.parametrize(
    "source",
    [
        "def g(input): pass\nx = input()",
        "class A:\n  open = 1\n  def f(self): return open('x')",
        "def f():\n  def g():\n    vars = 1\n  return vars()",
    ],
)
def test_a_name_bound_elsewhere_is_still_the_builtin(source):
    assert [f.code for f in check(source).findings] == ["SPD102"]


def test_a_parameter_named_like_a_module_is_no_module():
    assert check("def f(random):\n  return random._os").findings == []


def test_compile_checked_carries_the_code():
    with pytest.raises(PolicyViolation) as refused:
        compile_checked("import os\nos.fork()", policy=True)
    assert refused.value.code == "SPD101"
    assert "line 1" in str(refused.value)
    compile_checked("import os\nos.getcwd()", policy=False)
