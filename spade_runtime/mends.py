"""What the static gates say: a finding with its place, and how to mend what was found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class StaticFinding:
    """One thing that a static gate found.

    Attributes:
        code: SPD003, SPD101 to SPD105 or SPD201 to SPD205.
        message: one line that says what to change.
        line: line of the source, from 1.
        column: column of the line, from 1.
    """

    code: str
    message: str
    line: int | None = None
    column: int | None = None


BUILTIN_MENDS = {
    "eval": "parse the text yourself, or use ast.literal_eval for literals",
    "exec": "write the code out",
    "compile": "write the code out; re.compile is allowed",
    "open": "put the data into the source: no file is ever read",
    "input": "the agent's text comes as the argument of step(action)",
    "__import__": "use an import statement",
    "globals": "use a name at module level, or a dict of your own",
    "locals": "use the variables by name, or a dict of your own",
    "vars": "use the attributes by name, or keep the data in a dict",
    "memoryview": "use bytes or bytearray",
    "exit": "return terminated=True from step instead",
    "quit": "return terminated=True from step instead",
}
IMPORT_MENDS = {
    "os": "no files, processes or variables exist here; put the data into the source",
    "pathlib": "no files exist here; put the data into the source",
    "sys": "remove it; recursion, exit and streams are the runtime's",
    "logging": "remove the logging calls, or use print",
    "secrets": "use random.Random(seed)",
    "pydantic": "use dataclasses",
    "attr": "use dataclasses",
    "typing_extensions": "import the name from typing",
    "gymnasium": "a plain class with reset and step needs no base class",
    "gym": "a plain class with reset and step needs no base class",
    "yaml": "use json, or put the data into the source",
    "threading": "write it without threads",
    "asyncio": "write it without async",
    "subprocess": "no processes exist here",
    "traceback": "use the exception's text",
    "warnings": "remove it",
    "locale": "format the values yourself",
    "sympy": "compute with fractions, math or plain integers",
}
