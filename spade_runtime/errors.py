"""Every exception the project raises, in one tree.

A message says what happened, the value seen, and the next step::

    SpadeError
    ├── UsageError                 a person's mistake: exit code 2
    │   ├── ConfigError            a key or value of a run's configuration
    │   └── ServerRefused          a server won't have the request (also a ServerError)
    ├── ServerError                a server behind a URL gave no message
    │   └── ServerGarbled          what it answered is no chat completion
    ├── InvalidEnvironment         a source that the contract refuses (carries its findings)
    ├── EpisodeOver                a step after the end of an episode
    ├── HostError                  the machine, not the environment, is at fault: exit code 3
    │   ├── ServerUnavailable      no usable answer in all tries: exit code 1 (also a ServerError)
    │   ├── IsolationUnavailable   the sandbox can't isolate here at the level asked for
    │   └── HostStarved            a runnable child was not given the processor: no verdict
    └── EnvFault                   an environment's own fault, charged to its designer
        ├── EnvTimeout             SPD801
        ├── EnvMemoryExceeded      SPD802
        ├── EnvCrashed             SPD803
        ├── EnvOutputTooLarge      SPD804
        ├── EnvProtocolError       SPD805
        ├── EnvRaised              an exception left the environment's code
        └── EnvViolation           a reply that the contract forbids
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


class SpadeError(Exception):
    """Base of everything the project raises on purpose."""

    exit_code = 1


class UsageError(SpadeError):
    """A person asked for something that can't be done; the message says what to do instead."""

    exit_code = 2


class ConfigError(UsageError):
    """A configuration holds an unknown key or an impossible value."""


class InvalidEnvironment(SpadeError):
    """A source was refused before it could be played.

    Attributes:
        findings: what the gates found, as `spade_runtime.spec.Finding`.
    """

    def __init__(self, message: str, findings: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.findings = list(findings)


class EpisodeOver(SpadeError):
    """`step` was called after the episode had ended; call `reset` first."""


class HostError(SpadeError):
    """The machine is at fault, so nothing can be said about the environment."""

    exit_code = 3


class IsolationUnavailable(HostError):
    """The isolation asked for can't be had on this machine; the message names what is missing."""


class HostStarved(HostError):
    """A child was runnable but got no processor time before its deadline: the play is void."""


class ServerError(SpadeError):
    """A server behind a URL gave no message that can be used."""


class ServerRefused(ServerError, UsageError):
    """A server refused a request: a wrong model, key, address or field."""

    exit_code = 2


class ServerUnavailable(ServerError, HostError):
    """A server gave no usable answer in all tries.

    A fault like any other for a caller's exit code: 3 says that this machine can't isolate.
    """

    exit_code = 1


class ServerGarbled(ServerError):
    """A server answered something that is no chat completion."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about a fault.

    Attributes:
        phase: the call in which it happened (`load`, `construct`, `reset`, `step`, `tool`, ...).
        exit_status: the child's exit status, where it left by itself.
        signal: the signal that ended the child, where one did.
        last_action: the last action that was sent, shortened.
        printed: the tail of what the code printed, at most 2 KiB.
        exception: type name of an exception that left the code.
        line: line of the source in which it was raised.
        place: which call of a batch it was, from 0.
    """

    phase: str = ""
    exit_status: int | None = None
    signal: int | None = None
    last_action: str | None = None
    printed: str = ""
    exception: str | None = None
    line: int | None = None
    place: int | None = None


class EnvFault(SpadeError):
    """A fault of an environment, never of the agent that played it.

    Attributes:
        code: the finding code that a validator reports for it.
        evidence: what is known about it.
    """

    code = "SPD803"

    def __init__(
        self, message: str, *, code: str | None = None, evidence: Evidence | None = None
    ) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code
        self.evidence = evidence or Evidence()

    @property
    def kind(self) -> str:
        """The type's name, as metrics and `info["spade"]["fault"]` give it."""
        return type(self).__name__


class EnvTimeout(EnvFault):
    """A call used more processor time, or blocked longer, than its limit."""

    code = "SPD801"


class EnvMemoryExceeded(EnvFault):
    """The child reached its memory limit."""

    code = "SPD802"


class EnvCrashed(EnvFault):
    """The child's process ended, or tried what the sandbox forbids."""

    code = "SPD803"


class EnvOutputTooLarge(EnvFault):
    """A reply or what the code printed is larger than the limit."""

    code = "SPD804"


class EnvProtocolError(EnvFault):
    """The child sent bytes that are no reply to the request."""

    code = "SPD805"


class EnvRaised(EnvFault):
    """An exception left the environment's code."""

    code = "SPD401"


class EnvViolation(EnvFault):
    """A call returned something that the contract forbids."""

    code = "SPD402"
