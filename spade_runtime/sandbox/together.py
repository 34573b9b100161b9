"""Calls of several sessions side by side: their children compute at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spade_runtime.errors import EnvFault
from spade_runtime.sandbox.channel import Both, RawChild, Reply
from spade_runtime.sandbox.drive import exchanged
from spade_runtime.sandbox.orders import OF_CALLS, Order
from spade_runtime.sandbox.session import Ask, EnvSession, T, Talk


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
        ((session, talk),) = talks
        return [_alone(session, talk)]
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
    """Several calls of one session as one talk; all are looked at before any is sent.

    Two that ask something are sent together: a reset and the steps of those that go on take one way
    to the child and back. Where the second one's reply did not come it is asked again, alone.
    """
    first: list[Ask | None] = []
    results: list[Any] = [None] * len(talks)
    for place, talk in enumerate(talks):
        try:
            first.append(next(talk))
        except StopIteration as end:
            first.append(None)
            results[place] = end.value
    asks = [ask for ask in first if ask is not None]
    replies = (yield asks[0]._replace(then=asks[1])) if len(asks) == 2 else []
    for place, (talk, ask) in enumerate(zip(talks, first, strict=True)):
        try:
            if ask is not None and replies and (reply := replies.pop(0)) is not None:
                ask = talk.send(reply)
            while ask is not None:
                ask = talk.send((yield ask))
        except StopIteration as end:
            results[place] = end.value
    return results


def _alone(session: EnvSession, talk: Talk[T]) -> T:
    try:
        ask = next(talk)
        while True:
            ask = talk.send(_ask([(session, ask)])[0])
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def _ask(round_: Sequence[tuple[EnvSession, Ask]]) -> list[Any]:
    if len(round_) == 1 and round_[0][1].then is None:
        return [session.ask(ask) for session, ask in round_]
    replies: list[Any] = [[] for _ in round_]
    places: list[int] = []
    work: list[tuple[RawChild, Order]] = []
    for place, (session, ask) in enumerate(round_):
        try:
            child = session.child_for(ask)
        except EnvFault as fault:
            replies[place] = _taken(session, ask, fault if ask.then is None else (fault, fault))
            continue
        if isinstance(child, RawChild):
            places.append(place)
            work.append((child, _order(child, ask)))
        elif ask.then is None:
            replies[place] = session.ask(ask)
        else:
            replies[place] = [session.ask(ask), session.ask(ask.then)]
    for place, found in zip(places, _exchanged(work), strict=True):
        session, ask = round_[place]
        replies[place] = _taken(session, ask, found)
    return replies


def _order(child: RawChild, ask: Ask) -> Order:
    order = OF_CALLS[ask.phase](child.limits, ask.slots, ask.values)
    if ask.then is not None:
        order.then = _order(child, ask.then)
    return order


def _exchanged(work: Sequence[tuple[RawChild, Order]]) -> Sequence[Reply | Both]:
    if len(work) == 1 and work[0][1].then is not None:
        # Nobody to wait for besides: the plain way is the quicker one.
        ((child, order),) = work
        return [child.exchange_both(order)]
    return exchanged(work)


def _taken(session: EnvSession, ask: Ask, found: Reply | Both) -> list[Any] | Reply:
    """The reply as a talk wants it: a child that is lost gives its fault to every slot.

    Of two replies the second is None where it is a fault. Asked alone it comes again, and by then
    the first one has been taken in: whose episode the loss ends depends on that.
    """
    if isinstance(found, tuple):
        first, second = found
        return [_taken(session, ask, first), None if isinstance(second, EnvFault) else second]
    return session.lost(ask, found) if isinstance(found, EnvFault) else found
