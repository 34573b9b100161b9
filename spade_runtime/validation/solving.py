"""The solvability gate: solutions replayed where they were never computed must win."""

from __future__ import annotations

from spade_runtime.sandbox.wire import RawStep, RawTool
from spade_runtime.validation.bench import Bench
from spade_runtime.validation.games import Play
from spade_runtime.validation.text import shown
from spade_runtime.validation.tooluse import ToolPlay, spoken


def run_solvability(bench: Bench) -> str:
    """Judge the replays that the step and tools gates made."""
    if not bench.solutions:
        if not bench.findings.has("SPD601"):
            bench.found(
                "SPD602",
                "there is no reference solution, so nothing shows that the task can be solved; "
                "add solution(self)",
            )
        return "no solution to replay"
    for play in bench.replays:
        if play.problem is None and not play.solved:
            stopped = _game(bench, play) if isinstance(play, Play) else _tools(bench, play)
            bench.found("SPD601", stopped[0], seed=play.seed, action=stopped[1])
            break
    won = sum(play.solved for play in bench.replays)
    return f"{won} of {len(bench.replays)} replays solved"


def _game(bench: Bench, play: Play) -> tuple[str, str | None]:
    """Where a replay of a game stopped, and the action there."""
    planned = bench.solutions[play.seed]
    if not planned:
        return "solution() gave no action", None
    last = play.replies[-1] if play.replies else None
    seen = shown(str(last.observation), 80) if isinstance(last, RawStep) else "nothing"
    reward = last.reward if isinstance(last, RawStep) else None
    if play.ended:
        end = "terminated" if isinstance(last, RawStep) and last.terminated else "truncated"
        what = f"the episode {end} with reward {reward} and {seen}"
    elif len(planned) > len(play.actions):
        what = f"max_turns = {bench.max_turns} was reached, of {len(planned)} actions"
    else:
        what = f"no action was left, the last reward was {reward} and the game said {seen}"
    return (
        "the solution's replay must terminate with reward 1.0; it stopped after action "
        f"{len(play.actions)} of {len(planned)}: {what}",
        play.actions[-1] if play.actions else None,
    )


def _tools(bench: Bench, play: ToolPlay) -> tuple[str, str | None]:
    """Where a replay of tool calls stopped, and the call there."""
    turns = len(play.instructions)
    planned = bench.solutions[play.seed]
    if len(planned) != turns:
        return f"solution() gives calls for {len(planned)} user turns of {turns}", None
    place = play.completed
    said = shown(play.instructions[place], 80)
    call = play.calls[-1] if play.calls else None
    reply = play.replies[-1] if play.replies else None
    result = (
        f"; its last call gave {shown(str(reply.result), 60)}" if isinstance(reply, RawTool) else ""
    )
    return (
        f"the solution's replay must complete every user turn; turn {place + 1} of {turns} "
        f"({said}) did not complete{result}",
        spoken(call) if call else None,
    )
