"""judge (stub)."""

from spade_runtime.validation.bench import Bench


class Judge: ...


def run_judge(bench: Bench) -> str:
    return ""
