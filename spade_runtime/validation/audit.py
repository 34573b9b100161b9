"""The audit gate (stub)."""

from spade_runtime.validation.bench import Bench


def run_audit(bench: Bench) -> str:
    return ""
