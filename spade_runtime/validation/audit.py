"""The audit gate: can the task be won, or its reward be had, without doing what it asks for?"""

from __future__ import annotations

from spade_runtime.validation.bench import Bench
from spade_runtime.validation.blind import audit_games, audit_tools
from spade_runtime.validation.feedback import audit_texts
from spade_runtime.validation.hinting import audit_hint
from spade_runtime.validation.leaks import audit_leak
from spade_runtime.validation.novelty import audit_values

_ENOUGH = 1.0 - 1e-9


def run_audit(bench: Bench) -> str:
    """Run every audit; all of them play in the main room."""
    parts: list[str] = []
    if bench.kind == "game":
        parts.append(audit_games(bench))
        parts.append(audit_leak(bench))
        _farming(bench)
    else:
        parts.append(audit_tools(bench))
        audit_values(bench)
    bench.charge()
    if bench.options.hint:
        parts.append(audit_hint(bench))
    audit_texts(bench)
    return "; ".join(parts)


def _farming(bench: Bench) -> None:
    """An episode that does not solve the task must earn less than solving it (SPD703)."""
    for play in bench.plays:
        if play.problem is None and not play.solved and play.total >= _ENOUGH:
            bench.found(
                "SPD703",
                f"an episode that does not solve the task must earn less than 1; this one earned "
                f"{play.total:g} in {len(play.actions)} steps",
                seed=play.seed,
                action=max(set(play.actions), key=play.actions.count),
            )
            return
