"""Errors of a training run, grown on the project's one tree (`spade_runtime.errors`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spade_runtime.errors import SpadeError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spade_train.plays import Play
    from spade_train.policies.base import Generation
    from spade_train.tries import Try


class PolicyError(SpadeError):
    """A policy can't answer at all: wrong model, wrong template, a prompt beyond its context."""


class PolicyUnavailable(PolicyError):
    """A policy behind a URL gave up on a request after its retries.

    Attributes:
        finished: index of the prompt -> its generation, for those that were answered.
        plays: episodes that had ended when it gave up, where it served a rollout.
        tries: designs that were written when it gave up, where it designed.
    """

    def __init__(self, message: str, finished: Mapping[int, Generation] | None = None) -> None:
        super().__init__(message)
        self.finished = dict(finished or {})
        self.plays: list[Play] = []
        self.tries: list[Try] = []


class PolicyRefused(PolicyError):
    """A policy behind a URL won't answer some prompts, and would not at another time either.

    Attributes:
        refused: index of the prompt -> why.
        finished: index of the prompt -> its generation, for the others.
        tries: designs that were written before it refused all, where it designed.
    """

    def __init__(
        self,
        message: str,
        refused: Mapping[int, str] | None = None,
        finished: Mapping[int, Generation] | None = None,
    ) -> None:
        super().__init__(message)
        self.refused = dict(refused or {})
        self.finished = dict(finished or {})
        self.tries: list[Try] = []


class TokenInvariantError(SpadeError):
    """Tokens, mask and log-probabilities of a trajectory disagree: a bug, never trained on."""


class CheckpointError(UsageError):
    """A checkpoint is missing, damaged, or of another run."""


class RunLocked(UsageError):
    """Another process works in the run folder."""


class Diverged(SpadeError):
    """The weights or losses are no longer finite."""
