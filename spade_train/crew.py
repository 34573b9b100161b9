"""Processes that generate and train side by side on the same weights.

The weights lie in shared memory, so a helper sees every update at once and nothing is handed over.
Work is parted by a fixed rule and summed in a fixed order: a run with the same number of workers
gives the same numbers. One thread each: for a small model two processes beat two threads.
"""

from __future__ import annotations

import atexit
import os
import signal
from collections.abc import Hashable, Sequence
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch import multiprocessing

from spade_runtime.errors import HostError
from spade_train.learners.base import TrainRow
from spade_train.learners.gradients import Gradients, LearnerSettings, Share, Tally
from spade_train.policies.base import Generation
from spade_train.policies.generate import Request, Sampler

# Fewer rows than this a worker are not worth the way.
ROWS_WORTH_PARTING = 8


class Crew:
    """This process and its helpers, as the engine of a policy and of a learner.

    Args:
        model: the weights; moved into shared memory.
        reference: frozen weights for the KL, shared as well.
        workers: processes in all, this one included.
    """

    def __init__(self, model: Any, reference: Any, workers: int) -> None:
        torch.set_num_threads(1)
        model.share_memory()
        if reference is not None:
            reference.share_memory()
        self._sampler = Sampler(model)
        self._gradients = Gradients(model, reference)
        self._helpers = [_Helper(model, reference) for _ in range(workers - 1)]
        # Where conversations live: the process that has read them.
        self._homes: dict[Hashable, int] = {}

    def generate(self, request: Request) -> list[Generation]:
        """Return one reply a prompt, in order."""
        order = sorted(range(len(request.prompts)), key=lambda row: len(request.prompts[row]))
        parts = self._homes_of(order, request.names) if request.names else self._parts(order)
        for helper, part in zip(self._helpers, parts[1:], strict=False):
            helper.ask("generate", request.part(part))
        done = [self._sampler.generate(request.part(parts[0]))]
        done += [helper.answer() for helper, _ in zip(self._helpers, parts[1:], strict=False)]
        replies = {row: r for part, own in zip(parts, done, strict=True)
                   for row, r in zip(part, own, strict=True)}  # fmt: skip
        return [replies[row] for row in range(len(request.prompts))]

    def forget(self) -> None:
        """Let go of what was kept of named conversations, in every process."""
        self._homes.clear()
        self._sampler.forget()
        for helper in self._helpers:
            helper.ask("forget")
        for helper in self._helpers:
            helper.answer()

    def gradient(self, share: Share, settings: LearnerSettings) -> tuple[list[torch.Tensor], Tally]:
        """Return the gradient of the rows' part of the loss, and what was seen on the way."""
        parts = self._parts(_by_length(share.rows))
        for helper, part in zip(self._helpers, parts[1:], strict=False):
            helper.ask("gradient", share.pick(part), settings)
        gradient, tally = self._gradients.gradient(share.pick(parts[0]), settings)
        for helper, _ in zip(self._helpers, parts[1:], strict=False):
            other, seen = helper.answer()
            torch._foreach_add_(gradient, other)
            tally.add(seen)
        return gradient, tally

    def logprobs(self, rows: Sequence[TrainRow], settings: LearnerSettings) -> list[list[float]]:
        """Return each row's log-probabilities of its sampled tokens."""
        parts = self._parts(_by_length(rows))
        for helper, part in zip(self._helpers, parts[1:], strict=False):
            helper.ask("logprobs", [rows[place] for place in part], settings)
        done = [self._gradients.logprobs([rows[place] for place in parts[0]], settings)]
        done += [helper.answer() for helper, _ in zip(self._helpers, parts[1:], strict=False)]
        values = {place: v for part, own in zip(parts, done, strict=True)
                  for place, v in zip(part, own, strict=True)}  # fmt: skip
        return [values[place] for place in range(len(rows))]

    def close(self) -> None:
        """End the helpers; may be called twice."""
        for helper in self._helpers:
            helper.close()

    def __enter__(self) -> Crew:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the helpers."""
        self.close()

    def _parts(self, order: Sequence[int]) -> list[list[int]]:
        """Deal rows, sorted by length, out to the processes in turn."""
        count = min(len(self._helpers) + 1, max(1, len(order) // ROWS_WORTH_PARTING))
        return [list(order[first::count]) for first in range(count)]

    def _homes_of(self, order: Sequence[int], names: Sequence[Hashable]) -> list[list[int]]:
        """Deal new conversations out in turn, and leave the others where they were read."""
        new = [row for row in order if names[row] not in self._homes]
        for home, part in enumerate(self._parts(new)):
            self._homes.update((names[row], home) for row in part)
        parts: list[list[int]] = [[] for _ in range(len(self._helpers) + 1)]
        for row in order:
            parts[self._homes[names[row]]].append(row)
        return parts


class _Helper:
    """The parent's end of one helper."""

    def __init__(self, model: Any, reference: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, model, reference), daemon=True)
        self._process.start()
        # At the interpreter's end Python would send the SIGTERM that a helper ignores, and wait.
        atexit.register(self._process.kill)
        theirs.close()

    def ask(self, what: str, *arguments: Any) -> None:
        try:
            self._connection.send((what, arguments))
        except OSError as error:
            raise self._lost() from error

    def answer(self) -> Any:
        try:
            fine, value = self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._lost() from error
        if not fine:
            raise HostError(f"a worker process failed: {value}; set workers=1 to see it here")
        return value

    def _lost(self) -> HostError:
        self._process.join(1)
        return HostError(
            f"a worker process ended with exit code {self._process.exitcode}, as when memory runs "
            f"out; go on with `spade resume`, or set workers=1"
        )

    def close(self) -> None:
        atexit.unregister(self._process.kill)
        self._connection.close()
        self._process.join(5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _serve(connection: Connection, model: Any, reference: Any) -> None:
    """Answer until the parent's end closes, which it also does when the parent is killed."""
    # Ctrl-C, and SIGTERM from `timeout` or a scheduler, reach the whole group; the parent decides
    # what they mean.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(1)
    sampler, gradients = Sampler(model), Gradients(model, reference)
    room: list[torch.Tensor] | None = None
    while True:
        try:
            what, arguments = connection.recv()
        except (EOFError, OSError):
            return
        try:
            if what == "generate":
                value: Any = sampler.generate(*arguments)
            elif what == "forget":
                value = None
                sampler.forget()
            elif what == "logprobs":
                value = gradients.logprobs(*arguments)
            else:
                gradient, tally = gradients.gradient(*arguments)
                if room is None:
                    room = [_shared(part) for part in gradient]
                torch._foreach_copy_(room, gradient)
                value = (room, tally)
            reply = (True, value)
        except Exception as error:  # the parent raises it, with its own words
            reply = (False, f"{type(error).__name__}: {error}")
        try:
            connection.send(reply)
        except OSError:
            # The parent was stopped while this was being worked out: nobody waits for it.
            return


def _shared(like: torch.Tensor) -> torch.Tensor:
    room: torch.Tensor = torch.zeros_like(like).share_memory_()  # type: ignore[no-untyped-call]
    return room


def _by_length(rows: Sequence[TrainRow]) -> list[int]:
    return sorted(range(len(rows)), key=lambda place: len(rows[place].ids))
