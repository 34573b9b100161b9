"""Steps of a group of games inside the child: played in one loop, sent by column.

Types are taken exactly, as in `claims`, but for a whole group at once. The first step that raises,
prints, or returns anything else than the contract's values ends the columns: it and those after it
are left to the loop that looks at each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import msgspec

from spade_runtime.entropy import Entropy
from spade_runtime.sandbox import claims
from spade_runtime.sandbox.capture import Capture
from spade_runtime.sandbox.wire import CHUNK_BYTES, HEADER, Bad, Raised, RawStep, Step

FLUSH_SECONDS = 0.005
"""A batch that takes longer sends what is done, so that the parent sees which instance hangs."""
GROUP_MIN = 8
"""Fewer steps are done sooner one by one: columns take some microseconds to set up."""
_GROUP_CHARS = 49152
_STEP_CHARS = 16384
_BOOL, _FLOAT, _REAL = {bool}, {float}, {float, int}
_encode = msgspec.msgpack.Encoder().encode


class Slot:
    """An instance of the class, and what it draws from."""

    __slots__ = ("instance", "state")

    def __init__(self, instance: Any, state: Any) -> None:
        self.instance = instance
        self.state = state


def play(
    request: Step,
    held: Mapping[int, Slot],
    entropy: Entropy,
    capture: Capture,
    write: Callable[[bytes], None],
) -> tuple[int, RawStep | Bad | Raised | None]:
    """Play and send the steps of a request, as long as nothing is out of the ordinary.

    Each line of the loop counts: it is what a child does all day.

    Returns:
        The position of the first step that is, and its claim; None where the reply is complete.
    """
    switch = entropy.activate if entropy.real_generators else None
    violations = entropy.violations
    group = _Group()
    results, infos, first, weight = group.results, group.infos, 0, 0
    odd: RawStep | Bad | Raised | None = None
    due = perf_counter() + FLUSH_SECONDS
    try:
        for slot, action in zip(request.slots, request.actions, strict=True):
            if (perf_counter() > due or weight > _GROUP_CHARS) and results:
                group.send(write, request.nonce, first, last=False)
                first += len(results)
                group = _Group()
                results, infos, weight = group.results, group.infos, 0
                due = perf_counter() + FLUSH_SECONDS
            here = held[slot]
            if switch is None:
                entropy.current = here.state
            else:
                switch(here.state)
            result = here.instance.step(action)
            if type(result) is not tuple or len(result) != 5 or type(result[0]) is not str:
                odd = claimed(result)
                break
            weight += len(result[0])
            if type(result[4]) is not dict or result[4] or capture.used or violations:
                # Encoded now: the class may give the same dictionary again, with more in it.
                info = claims.mapping(result[4])
                if type(info) is not bytes or capture.used or violations:
                    odd = claimed(result)
                    break
                infos[len(results)] = info
                weight += len(info)
            if result[2] is not False or result[3] is not False:
                group.ended = True
            if (
                weight > _GROUP_CHARS
                and len(result[0]) + len(infos.get(len(results), b"")) > _STEP_CHARS
            ):
                odd = claimed(result)
                break
            results.append(result)
    except BaseException as error:
        odd = claims.raised("step", error)
    if results:
        group.send(write, request.nonce, first, last=odd is None)
    return first + len(results), odd


def claimed(result: Any) -> RawStep | Bad:
    """One step's result, whatever it is, as a claim."""
    if type(result) is not tuple or len(result) != 5:
        return claims.bad(result)
    observation, reward, terminated, truncated, info = result
    return RawStep(
        claims.text(observation),
        claims.number(reward),
        claims.flag(terminated),
        claims.flag(truncated),
        claims.mapping(info),
    )


class _Group:
    """Results of one frame.

    Attributes:
        results: tuples of five, the first of which is a text and the last a dictionary.
        infos: by place, as JSON, those dictionaries that were not empty.
        ended: some flag of them may not be False.
    """

    __slots__ = ("ended", "infos", "results")

    def __init__(self) -> None:
        self.results: list[tuple[Any, ...]] = []
        self.infos: dict[int, bytes] = {}
        self.ended = False

    def send(self, write: Callable[[bytes], None], nonce: int, first: int, *, last: bool) -> None:
        """Send it in one frame, or in halves where that would be too large."""
        columns = self._columns()
        try:
            body = _encode((nonce, first, last, *columns))
        except UnicodeEncodeError:
            # One of the texts holds a lone surrogate; which one, the rows tell.
            body = _encode((nonce, first, last, self._rows()))
        if len(body) <= CHUNK_BYTES or len(self.results) == 1:
            write(HEADER.pack(len(body)) + body)
            return
        half = len(self.results) // 2
        for start, end in ((0, half), (half, len(self.results))):
            part = _Group()
            part.results, part.ended = self.results[start:end], self.ended
            part.infos = {
                place - start: info for place, info in self.infos.items() if start <= place < end
            }
            part.send(write, nonce, first + start, last=last and start > 0)

    def _columns(self) -> tuple[Any, ...]:
        """The columns, or one list of rows where a value is not of its type."""
        observations, rewards, terminated, truncated, _ = zip(*self.results, strict=True)
        kinds = set(map(type, rewards))
        if kinds != _FLOAT:
            if not kinds <= _REAL:
                return (self._rows(),)
            rewards = tuple(map(claims.number, rewards))
        flags: list[Any] = [None, None]
        if self.ended:
            if not set(map(type, terminated)) == _BOOL == set(map(type, truncated)):
                return (self._rows(),)
            flags = [one if True in one else None for one in (terminated, truncated)]
        return observations, rewards if any(rewards) else None, *flags, self._notes()

    def _notes(self) -> list[bytes] | None:
        if not self.infos:
            return None
        return [self.infos.get(place, b"{}") for place in range(len(self.results))]

    def _rows(self) -> list[RawStep]:
        notes = self._notes() or [b"{}"] * len(self.results)
        return [
            RawStep(
                claims.text(observation),
                claims.number(reward),
                claims.flag(terminated),
                claims.flag(truncated),
                info,
            )
            for (observation, reward, terminated, truncated, _), info in zip(
                self.results, notes, strict=True
            )
        ]
