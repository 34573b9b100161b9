"""The static policy: what a source may contain, told before anything of it runs.

It gives early and clear errors; it is not the boundary. The sandbox is, and holds with the policy
switched off (contract.md section 2, runtime.md section 2). It runs inside the child, so that a
source that makes the parser overflow is contained too.
"""

from __future__ import annotations

import ast
import sys
import warnings
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from spade_runtime.guards import PolicyViolation
from spade_runtime.mends import StaticFinding as PolicyFinding
from spade_runtime.pruning import prune
from spade_runtime.transformer import EnvTransformer

__all__ = ["PolicyFinding", "PolicyResult", "check", "compile_checked"]

FILENAME = "<environment>"
# A syntax tree is at most some 3,000 levels deep (the parser's own limit), a level takes up to
# three frames.
_WALK_DEPTH = 15_000
_MAX_FINDINGS = 50


@dataclass(slots=True)
class PolicyResult:
    """What the static policy says of a source.

    Attributes:
        tree: the rewritten syntax tree; None where the source has no tree at all (SPD003).
        findings: SPD003 and SPD101 to SPD105, by line. SPD105 alone is a warning.
        stubs: modules outside the list that are imported but never used.
        uses: roots of the allowed modules that are imported, such as `numpy`.
        code: the compiled code; None where there is an error.
    """

    tree: ast.Module | None
    findings: list[PolicyFinding] = field(default_factory=list)
    stubs: list[str] = field(default_factory=list)
    uses: frozenset[str] = frozenset()
    code: CodeType | None = None

    @property
    def errors(self) -> list[PolicyFinding]:
        """The findings that reject the source."""
        return [finding for finding in self.findings if finding.code != "SPD105"]


def check(source: str, *, filename: str = FILENAME) -> PolicyResult:
    r"""Check a source against the static policy without running anything of it.

    Args:
        source: the text of the module; a byte-order mark is fine.
        filename: the name that tracebacks show.

    >>> result = check("import os\nprint(os.getcwd())")
    >>> [(f.code, f.line) for f in result.findings]
    [('SPD101', 1)]
    """
    text = source.removeprefix("\ufeff")
    tree, problem = _parse(text, filename)
    if tree is None:
        assert problem is not None
        return PolicyResult(None, [problem])
    transformer = EnvTransformer()
    try:
        _walk(transformer, tree)
    except RecursionError:
        return PolicyResult(None, [_too_deep()])
    findings, imports = _ordered(transformer.findings, text), transformer.imports
    result = PolicyResult(tree, findings, sorted(set(imports.stubs)), frozenset(imports.uses))
    if not result.errors:
        result.code, problem = _compile(tree, filename)
        if problem is not None:
            result.findings.append(problem)
    return result


def compile_checked(source: str, *, policy: bool, filename: str = FILENAME) -> CodeType:
    """Compile a source, by the policy or plainly.

    Args:
        source: the text of the module.
        policy: whether to check and rewrite it; without, it is compiled as it stands.
        filename: the name that tracebacks show.

    Raises:
        SyntaxError: the source is no Python.
        PolicyViolation: the policy refuses it; the exception's `code` tells by which rule.
    """
    if not policy:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return compile(source.removeprefix("\ufeff"), filename, "exec", dont_inherit=True)
    result = check(source, filename=filename)
    if result.code is not None:
        return result.code
    first = result.errors[0]
    if first.code == "SPD003":
        raise SyntaxError(first.message, (filename, first.line, first.column, None))
    raise PolicyViolation(f"line {first.line}: {first.message}", first.code)


def _parse(text: str, filename: str) -> tuple[ast.Module | None, PolicyFinding | None]:
    # Warnings about a source (an invalid escape in a string) are none of the caller's.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree: Any = compile(text, filename, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        except SyntaxError as error:
            return None, _syntax_finding(error)
        except (RecursionError, MemoryError):
            return None, _too_deep()
        except ValueError as error:
            # NUL bytes, or lone surrogates that no encoding holds.
            return None, PolicyFinding("SPD003", f"the source can't be read as Python: {error}")
    return tree, None


def _compile(tree: ast.Module, filename: str) -> tuple[CodeType | None, PolicyFinding | None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return compile(tree, filename, "exec", dont_inherit=True), None
        except SyntaxError as error:
            return None, _syntax_finding(error)
        except (RecursionError, MemoryError):
            return None, _too_deep()
        except ValueError as error:
            return None, PolicyFinding("SPD003", f"the source can't be compiled: {error}")


def _syntax_finding(error: SyntaxError) -> PolicyFinding:
    line, column = error.lineno, error.offset
    near = (error.text or "").strip()
    shown = f" near `{near[:60]}`" if near else ""
    return PolicyFinding(
        "SPD003",
        f"syntax error: {error.msg}{shown}".replace("\n", " "),
        line or None,
        column if column and column > 0 else None,
    )


def _too_deep() -> PolicyFinding:
    return PolicyFinding(
        "SPD003", "the source is nested too deeply for Python to compile; split the expression"
    )


def _walk(transformer: EnvTransformer, tree: ast.Module) -> None:
    deferred = prune(tree)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _WALK_DEPTH))
    try:
        transformer.visit(tree)
        # A helper of the main guard that live code names as well is live itself.
        live = [name for name in deferred if name in transformer.loads]
        while live:
            for name in live:
                transformer.visit_deferred(*deferred.pop(name))
            live = [name for name in deferred if name in transformer.loads]
    finally:
        sys.setrecursionlimit(limit)
    transformer.finish()


def _ordered(findings: list[PolicyFinding], text: str) -> list[PolicyFinding]:
    """By line, each once; columns in characters, where the tree counts bytes."""
    lines = text.split("\n")
    unique: dict[tuple[str, str, int | None], PolicyFinding] = {}
    for finding in sorted(findings, key=lambda f: (f.line or 0, f.column or 0, f.code)):
        if finding.line and finding.column and finding.line <= len(lines):
            before = lines[finding.line - 1].encode()[: finding.column - 1]
            finding.column = len(before.decode(errors="ignore")) + 1
        unique.setdefault((finding.code, finding.message, finding.line), finding)
    return list(unique.values())[:_MAX_FINDINGS]
