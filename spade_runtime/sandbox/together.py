"""Calls of several sessions side by side: their children compute at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spade_runtime.errors import EnvFault
from spade_runtime.sandbox import orders
from spade_runtime.sandbox.channel import RawChild
from spade_runtime.sandbox.drive import Reply, exchanged
from spade_runtime.sandbox.session import Ask, EnvSession, T, Talk

_ORDERS: dict[str, Callable[..., orders.Order]] = {
    "reset": orders.reset,
    "moves": orders.step,
    "tool": orders.tool,
}


def together(talks: Sequence[tuple[EnvSession, Talk[T]]]) -> list[T]:
    """Run one call of each session, all requests of a round at once.

    `together([(a, a.stepping(["left", "right"])), (b, b.stepping(["up"]))])` gives the results of
    `a.step(...)` and `b.step(...)`, while both children compute.

    Args:
        talks: sessions, each with a call made by its `resetting`, `stepping` or `acting`.

    Returns:
        What each call returns, in order.

    Raises:
        UsageError: a call can't be made as it was asked; nothing has been sent then.
        EpisodeOver: as for `EnvSession.step`.
        HostError: the machine is at fault.
    """
    if len(talks) == 1:
        # Nothing to wait for besides: the plain way is the quicker one.
        ((session, talk),) = talks
        return [session.run(talk)]
    results: dict[int, T] = {}
    asks: dict[int, Ask] = {}
    for place, (_, talk) in enumerate(talks):
        try:
            asks[place] = next(talk)
        except StopIteration as end:
            results[place] = end.value
    while asks:
        replies = _ask([(talks[place][0], ask) for place, ask in asks.items()])
        following: dict[int, Ask] = {}
        for place, reply in zip(asks, replies, strict=True):
            try:
                following[place] = talks[place][1].send(reply)
            except StopIteration as end:
                results[place] = end.value
        asks = following
    return [results[place] for place in range(len(talks))]


def in_turn(*talks: Talk[Any]) -> Talk[list[Any]]:
    """Several calls of one session as one talk; all are looked at before any is sent."""
    first: list[Ask | None] = []
    results: list[Any] = [None] * len(talks)
    for place, talk in enumerate(talks):
        try:
            first.append(next(talk))
        except StopIteration as end:
            first.append(None)
            results[place] = end.value
    for place, (talk, ask) in enumerate(zip(talks, first, strict=True)):
        try:
            while ask is not None:
                ask = talk.send((yield ask))
        except StopIteration as end:
            results[place] = end.value
    return results


def _ask(round_: Sequence[tuple[EnvSession, Ask]]) -> list[Any]:
    if len(round_) == 1:
        return [session.ask(ask) for session, ask in round_]
    replies: list[Reply] = [[] for _ in round_]
    places: list[int] = []
    work: list[tuple[RawChild, orders.Order]] = []
    for place, (session, ask) in enumerate(round_):
        try:
            child = session.child_for(ask)
        except EnvFault as fault:
            replies[place] = session.lost(ask, fault)
            continue
        if isinstance(child, RawChild):
            places.append(place)
            work.append((child, _ORDERS[ask.phase](child.limits, ask.slots, ask.values)))
        else:
            replies[place] = session.ask(ask)
    for place, found in zip(places, exchanged(work), strict=True):
        session, ask = round_[place]
        replies[place] = session.lost(ask, found) if isinstance(found, EnvFault) else found
    return replies
