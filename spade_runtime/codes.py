"""The catalogue of finding codes: what each is called, where it belongs, how severe it is.

Plain Python with no imports beyond the standard library, so that the sandbox's child and the
parent share one table. The long texts (meaning, example, mend) are read from a data file only
when somebody asks for them: see `spade_runtime.validation.catalogue`.

>>> severity("SPD602", "standard"), severity("SPD602", "strict")
('warning', 'error')
>>> CODES["SPD305"].gate
'reset'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

CodeSeverity = Literal["error", "warning"]

GATES: tuple[str, ...] = (
    "file",
    "syntax",
    "policy",
    "contract",
    "load",
    "reset",
    "step",
    "tools",
    "solvability",
    "audit",
    "judge",
)
"""The gates in the order in which they run."""


@dataclass(frozen=True, slots=True)
class Code:
    """One finding code.

    Attributes:
        code: the stable name, `SPD` and three digits.
        title: what it says, as one clause.
        gate: the gate that finds it; empty for 8xx, which any call can show.
        standard: its severity in the `lenient` and `standard` profiles.
        strict: its severity in the `strict` profile.
    """

    code: str
    title: str
    gate: str
    standard: CodeSeverity = "error"
    strict: CodeSeverity = "error"


def _table() -> dict[str, Code]:
    error: CodeSeverity = "error"
    warning: CodeSeverity = "warning"
    hard, soft, proof = (error, error), (warning, warning), (warning, error)
    rows = (
        ("SPD001", "file", hard, "the file is not UTF-8, or holds NUL"),
        ("SPD002", "file", hard, "the file is larger than 64 KiB"),
        ("SPD003", "syntax", hard, "syntax error"),
        ("SPD101", "policy", hard, "import that is not allowed"),
        ("SPD102", "policy", hard, "forbidden builtin"),
        ("SPD103", "policy", hard, "dunder or interpreter-internal attribute or method"),
        ("SPD104", "policy", hard, "a construct outside the contract"),
        ("SPD105", "policy", soft, "unused import of a module outside the list"),
        ("SPD201", "contract", hard, "no environment class"),
        ("SPD202", "contract", hard, "several environment classes"),
        ("SPD203", "contract", hard, "reset or step missing, uncallable, or overridden"),
        ("SPD204", "contract", hard, "metadata not literal, or out of range"),
        ("SPD205", "contract", soft, "skill outside the taxonomy, or no docstring"),
        ("SPD301", "load", hard, "the module raises when it loads"),
        ("SPD302", "load", hard, "the constructor raises"),
        ("SPD303", "reset", hard, "reset, setup or user_turns raises"),
        ("SPD304", "reset", hard, "reset returns something other than (str, dict)"),
        ("SPD305", "reset", hard, "an observation is empty, over-long or does not encode"),
        ("SPD306", "reset", hard, "one seed gives different first observations"),
        ("SPD307", "reset", proof, "all seeds give the same play"),
        ("SPD308", "reset", soft, "reset(seed) alone does not determine the task"),
        ("SPD401", "step", hard, "step or close raises"),
        ("SPD402", "step", hard, "step returns something other than its five values"),
        ("SPD403", "step", hard, "a reward is not finite, or outside the range"),
        ("SPD404", "step", hard, "one seed and the same actions give different transitions"),
        ("SPD405", "step", hard, "state leaks from one episode into the next"),
        ("SPD406", "step", proof, "goes on past max_turns without ending"),
        ("SPD407", "step", hard, "info is not JSON, or too large"),
        ("SPD501", "tools", hard, "a tool's schema is invalid for function calling"),
        ("SPD502", "tools", hard, "schema, docstring and method of a tool disagree"),
        ("SPD503", "tools", hard, "a tool raises on arguments that its schema allows"),
        ("SPD504", "tools", hard, "not 3 to 5 user turns, or not as many criteria"),
        ("SPD505", "tools", hard, "a criterion raises"),
        ("SPD506", "tools", hard, "a criterion is already true when its turn is revealed"),
        ("SPD507", "tools", hard, "a tool is not deterministic"),
        ("SPD601", "solvability", hard, "the reference solution does not solve the task"),
        ("SPD602", "solvability", proof, "no reference solution"),
        ("SPD603", "judge", hard, "the judge finds a criterion that no tool chain reaches"),
        ("SPD604", "judge", proof, "the judge did not answer"),
        ("SPD701", "audit", hard, "a blind policy wins"),
        ("SPD702", "audit", hard, "the first observation shows the answer"),
        ("SPD703", "audit", hard, "repeating an action earns as much as solving"),
        ("SPD704", "audit", soft, "near-duplicate of another environment"),
        ("SPD705", "audit", hard, "the hint gives the answer away"),
        ("SPD706", "audit", soft, "the solution uses a value that nothing has shown"),
        ("SPD801", "", hard, "time limit"),
        ("SPD802", "", hard, "memory limit"),
        ("SPD803", "", hard, "the process died, or tried what the sandbox forbids"),
        ("SPD804", "", hard, "output too large"),
        ("SPD805", "", hard, "the wire protocol was broken"),
    )
    return {
        code: Code(code, title, gate, standard, strict)
        for code, gate, (standard, strict), title in rows
    }


CODES: Mapping[str, Code] = MappingProxyType(_table())
"""Every code, in order."""


def severity(code: str, profile: str = "standard") -> CodeSeverity:
    """How severe a code is in a profile.

    Args:
        code: a finding code, `SPD001` to `SPD805`.
        profile: `lenient`, `standard` or `strict`.

    Raises:
        KeyError: if there is no such code.
    """
    row = CODES[code]
    return row.strict if profile == "strict" else row.standard


def is_fault(code: str) -> bool:
    """Whether a code stands for a fault of the process (8xx), after which nothing is checked."""
    return code.startswith("SPD8")
