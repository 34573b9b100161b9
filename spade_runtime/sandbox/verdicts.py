"""What the parent concludes from how a child failed it: the typed faults."""

from __future__ import annotations

import os
import signal

from spade_runtime.errors import (
    EnvCrashed,
    EnvFault,
    EnvMemoryExceeded,
    EnvOutputTooLarge,
    EnvProtocolError,
    EnvTimeout,
    Evidence,
    HostError,
    HostStarved,
    IsolationUnavailable,
)
from spade_runtime.sandbox.budget import STARVED_FACTOR, Budget
from spade_runtime.sandbox.exchange import WireViolation
from spade_runtime.sandbox.lockdown import LOCKDOWN_FAILED, STEPS
from spade_runtime.sandbox.orders import Order

_ACTION_SHOWN = 200
OUT_OF_MEMORY_STATUS = 82
"""A child leaves with it when not even its own loop has memory left."""


def overdue(budget: Budget) -> EnvFault | HostError:
    """Say whose fault it is that a call's time is up."""
    if budget.over_cpu():
        return EnvTimeout(
            f"it used more than its {budget.seconds:g} s of processor time; make it do less work, "
            "or look for a loop that does not end"
        )
    if budget.starved():
        return HostStarved(
            "the child was ready to compute but the machine gave it no processor for "
            f"{STARVED_FACTOR * budget.wall_seconds:g} s; run fewer things at once"
        )
    return EnvTimeout(
        f"it did not come back within {budget.wall_seconds:g} s although it was not computing: "
        "it sleeps or waits for something that never comes"
    )


def violated(problem: WireViolation) -> EnvFault:
    """Name a breach of the protocol."""
    if problem.too_large:
        return EnvOutputTooLarge(f"the reply is too large: {problem}")
    return EnvProtocolError(f"the child broke the wire protocol: {problem}")


def ended(status: int | None, *, greeted: bool) -> EnvFault | HostError:
    """Judge a child that ended by itself, from its wait status.

    Args:
        status: the wait status, None where the zygote is gone and nobody can tell.
        greeted: whether the child had been ready.
    """
    if status is None:
        return HostError("the sandbox's zygote ended, and its children with it")
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return _exited(code, greeted=greeted)
    number = -code
    evidence = Evidence(signal=number)
    if number == signal.SIGSYS:
        return EnvCrashed("it tried a system call that the sandbox forbids", evidence=evidence)
    if number == signal.SIGXCPU:
        return EnvTimeout("it used up all of its processor time", evidence=evidence)
    if number == signal.SIGKILL:
        return HostError(
            "a child was killed from outside, as the kernel does when the machine is out of "
            "memory; run fewer environments at once"
        )
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return EnvCrashed(f"the process died of {name}", evidence=evidence)


def _exited(code: int, *, greeted: bool) -> EnvFault | HostError:
    if not greeted:
        place = code - LOCKDOWN_FAILED
        step = STEPS[place] if 0 <= place < len(STEPS) else f"status {code}"
        return IsolationUnavailable(f"a child could not be locked down: {step} failed")
    evidence = Evidence(exit_status=code)
    if code == OUT_OF_MEMORY_STATUS:
        return EnvMemoryExceeded("it used up its memory", evidence=evidence)
    return EnvCrashed(f"the process left with status {code}", evidence=evidence)


def with_evidence(
    fault: EnvFault | HostError, order: Order, place: int, printed: str
) -> EnvFault | HostError:
    """Note in an environment's fault what it was doing.

    Args:
        fault: what went wrong.
        order: the request.
        place: position in it of the call that was not answered.
        printed: the end of what the class printed last.
    """
    if isinstance(fault, EnvFault):
        action = order.sent[place] if place < len(order.sent) else None
        fault.evidence = Evidence(
            phase=order.phase,
            exit_status=fault.evidence.exit_status,
            signal=fault.evidence.signal,
            last_action=str(action)[:_ACTION_SHOWN] if action is not None else None,
            printed=printed,
            place=place,
        )
    return fault
