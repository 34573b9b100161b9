"""The decoder of replies: whatever bytes come, it gives checked items or names the violation."""

from __future__ import annotations

import random
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spade_runtime.sandbox.exchange import DECODERS, Exchange, WireViolation
from spade_runtime.sandbox.wire import (
    COLUMNS_MARK,
    HEADER,
    Bad,
    Columns,
    Raised,
    RawReset,
    RawStep,
)

NONCE = 0x1234_5678_9ABC_DEF0
REPLY_BYTES = 98304

texts = st.text(max_size=40)
bads = st.builds(Bad, texts, texts, texts)
steps = st.builds(
    RawStep,
    texts | bads,
    st.floats() | st.integers(-(2**53), 2**53) | bads,
    st.booleans() | bads,
    st.booleans() | bads,
    st.binary(max_size=40) | bads,
    st.integers(0, 2**31),
    texts,
)
raised = st.builds(Raised, texts, texts, texts, st.none() | st.integers(1, 999), texts)
items = st.lists(steps | raised | bads, min_size=1, max_size=6)


@st.composite
def columns(draw: st.DrawFn) -> Columns:
    count = draw(st.integers(1, 6))

    def column(values: st.SearchStrategy[Any]) -> Any:
        return draw(st.lists(values, min_size=count, max_size=count))

    def perhaps(values: st.SearchStrategy[Any]) -> Any:
        return column(values) if draw(st.booleans()) else None

    return Columns(
        NONCE,
        0,
        True,
        column(texts),
        perhaps(st.floats()),
        perhaps(st.booleans()),
        perhaps(st.booleans()),
        perhaps(st.binary(max_size=40)),
    )


def framed(body: bytes) -> bytes:
    return HEADER.pack(len(body)) + body


def frame(values: list[Any], *, first: int = 0, last: bool = True, nonce: int = NONCE) -> bytes:
    return framed(msgspec.msgpack.encode([nonce, first, last, values]))


def same(left: Any, right: Any) -> bool:
    # NaN is a claim like any other, and not equal to itself.
    return msgspec.msgpack.encode(left) == msgspec.msgpack.encode(right)


@given(items, st.data())
def test_a_reply_arrives_whole_however_it_is_cut(values: list[Any], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(values) - 1))
    whole = frame(values)
    if cut:
        whole = frame(values[:cut], last=False) + frame(values[cut:], first=cut)
    exchange = Exchange("step", NONCE, len(values), REPLY_BYTES)
    place = 0
    while place < len(whole):
        size = data.draw(st.integers(1, 40))
        exchange.feed(whole[place : place + size])
        place += size
    assert exchange.done and same(exchange.items, values)


@given(columns(), st.data())
def test_columns_arrive_as_the_rows_that_they_are(sent: Columns, data: st.DataObject) -> None:
    whole = framed(msgspec.msgpack.encode(sent))
    assert whole[4] == COLUMNS_MARK
    rows = sent.rows()
    cut = data.draw(st.integers(0, len(whole)))
    exchange = Exchange("step", NONCE, len(rows), REPLY_BYTES)
    exchange.feed(whole[:cut])
    exchange.feed(whole[cut:])
    assert exchange.done and exchange.received == len(rows)
    assert isinstance(exchange.claims, Columns) and same(exchange.items, rows)
    # The first of several frames: what came before is no longer all of the reply.
    sent.last = False
    exchange = Exchange("step", NONCE, len(rows) + 1, REPLY_BYTES)
    exchange.feed(framed(msgspec.msgpack.encode(sent)))
    assert not exchange.done
    exchange.feed(frame([Bad("a", "b")], first=len(rows)))
    assert exchange.done and exchange.claims is exchange.items
    assert same(exchange.items, [*rows, Bad("a", "b")])


@given(st.binary(max_size=300), st.sampled_from(sorted(DECODERS)))
@settings(max_examples=500)
def test_random_bytes_are_a_violation_or_wait_for_more(data: bytes, phase: str) -> None:
    exchange = Exchange(phase, NONCE, 3, REPLY_BYTES)
    try:
        exchange.feed(framed(data))
    except WireViolation:
        return
    assert not exchange.done


@given(items, st.data())
@settings(max_examples=500)
def test_a_changed_byte_never_passes_as_another_request_s_reply(
    values: list[Any], data: st.DataObject
) -> None:
    whole = bytearray(frame(values))
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    exchange = Exchange("step", NONCE, len(values), REPLY_BYTES)
    try:
        exchange.feed(bytes(whole))
    except WireViolation:
        return
    if exchange.done:
        assert len(exchange.items) == len(values)
        assert all(isinstance(item, RawStep | Raised | Bad) for item in exchange.items)


@given(columns(), st.data())
@settings(max_examples=500)
def test_a_changed_byte_of_columns_leaves_them_typed_or_is_a_violation(
    sent: Columns, data: st.DataObject
) -> None:
    whole = bytearray(framed(msgspec.msgpack.encode(sent)))
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    count = len(sent.observations)
    exchange = Exchange("step", NONCE, count, REPLY_BYTES)
    try:
        exchange.feed(bytes(whole))
    except WireViolation:
        return
    if exchange.done:
        assert len(exchange.items) == count
        for item in exchange.items:
            assert type(item) is RawStep and type(item.observation) is str
            assert type(item.reward) is float and type(item.info) is bytes
            assert type(item.terminated) is bool and type(item.truncated) is bool


def by_column(**changed: Any) -> bytes:
    """A frame of two steps with some of its eight fields changed."""
    fields = {
        "nonce": NONCE,
        "first": 0,
        "last": True,
        "observations": ["a", "b"],
        "rewards": [0.5, 1.0],
        "terminated": [False, True],
        "truncated": [False, False],
        "infos": [b"{}", b"{}"],
    }
    return framed(msgspec.msgpack.encode(list((fields | changed).values())))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"nonce": NONCE + 1}, "another request"),
        ({"first": 1}, "out of order"),
        ({"last": False}, "2 items"),
        ({"observations": []}, "out of order"),
        ({"observations": ["a", "b", "c"]}, "one length"),
        ({"rewards": [0.5]}, "one length"),
        ({"rewards": []}, "one length"),
        ({"terminated": [True] * 3}, "one length"),
        ({"truncated": [True]}, "one length"),
        ({"infos": [b"{}"]}, "one length"),
        ({"observations": ["a", 1]}, "does not decode"),
        ({"observations": ["a", None]}, "does not decode"),
        ({"observations": None}, "does not decode"),
        ({"observations": [b"a", b"b"]}, "does not decode"),
        ({"rewards": [0.5, "1"]}, "does not decode"),
        ({"rewards": [0.5, True]}, "does not decode"),
        ({"rewards": [0.5, None]}, "does not decode"),
        ({"terminated": [False, 1]}, "does not decode"),
        ({"truncated": [None, False]}, "does not decode"),
        ({"infos": [b"{}", "{}"]}, "does not decode"),
        ({"infos": [b"{}", [1, "a", "b", ""]]}, "does not decode"),
        ({"more": 1}, "does not decode"),
    ],
)
def test_columns_are_held_to_their_types_and_length(changed: dict[str, Any], words: str) -> None:
    exchange = Exchange("step", NONCE, 2, REPLY_BYTES)
    exchange.feed(by_column())
    assert exchange.done
    exchange = Exchange("step", NONCE, 2, REPLY_BYTES)
    with pytest.raises(WireViolation, match=words):
        exchange.feed(by_column(**changed))


def test_only_steps_come_by_column() -> None:
    for phase in sorted(set(DECODERS) - {"step"}):
        exchange = Exchange(phase, NONCE, 2, REPLY_BYTES)
        with pytest.raises(WireViolation, match="does not decode"):
            exchange.feed(by_column())


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (frame([Bad("a", "b")], nonce=NONCE + 1), "another request"),
        (frame([]), "out of order"),
        (frame([Bad("a", "b")], first=1), "out of order"),
        (frame([Bad("a", "b")], last=False), "1 items"),
        (frame([Bad("a", "b")] * 2), "1 items"),
        (frame([Bad("a", "b")]) + b"x", "after the end"),
        (frame([Bad("a", "b")]) * 2, "after the end"),
        (frame([RawReset("a", b"{}")]), "does not decode"),
        (framed(b"\x90" * 1000), "does not decode"),
        (framed(b"\x91" * 100_000), "does not decode"),
        (framed(b"\xdd\xff\xff\xff\xff"), "does not decode"),
        (framed(b"\x94\x01\x00\xc3\xdd\x7f\xff\xff\xff"), "does not decode"),
        (framed(b"\xc6\xff\xff\xff\xff"), "does not decode"),
        (framed(b""), "does not decode"),
    ],
)
def test_each_violation_is_named(data: bytes, words: str) -> None:
    exchange = Exchange("step", NONCE, 1, REPLY_BYTES)
    with pytest.raises(WireViolation, match=words) as caught:
        exchange.feed(data)
    assert not caught.value.too_large


def test_bytes_behind_a_reply_are_kept_only_where_another_is_due() -> None:
    frame = msgspec.msgpack.encode([NONCE, 0, True, [RawReset("o", b"{}")]])
    data = HEADER.pack(len(frame)) + frame
    followed = Exchange("reset", NONCE, 1, REPLY_BYTES, followed=True)
    assert followed.feed(data[:9]) is False
    assert followed.feed(data[9:] + b"more") is True
    assert (followed.done, followed.rest) == (True, b"more")
    alone = Exchange("reset", NONCE, 1, REPLY_BYTES)
    with pytest.raises(WireViolation, match="after the end"):
        alone.feed(data + b"!")


def test_a_header_that_announces_too_much_is_refused_before_its_body() -> None:
    exchange = Exchange("step", NONCE, 1, REPLY_BYTES)
    with pytest.raises(WireViolation, match="announced") as caught:
        exchange.feed(HEADER.pack(4_000_000))
    assert caught.value.too_large


def test_frames_together_have_the_size_of_their_instances() -> None:
    exchange = Exchange("step", NONCE, 2, REPLY_BYTES)
    large = RawStep("x" * 150_000, 0.0, False, False, b"{}")
    exchange.feed(frame([large], last=False))
    with pytest.raises(WireViolation, match="announced"):
        exchange.feed(frame([large], first=1))


def test_no_legal_frame_inflates_much_in_the_parent() -> None:
    # 4 MB of empty lists would be 244 MB of objects; typed, capped frames stop at the first.
    bodies = [
        b"\x94"
        + msgspec.msgpack.encode(NONCE)
        + b"\x00\xc3\xdd\x00\x02\x00\x00"
        + b"\x90" * 131072,
        msgspec.msgpack.encode([NONCE, 0, True, [[1, "", "", ""]] * 20000]),
        msgspec.msgpack.encode([NONCE, 0, True, [[4, [1, "", "", ""], 0, 0, 0, b""]] * 9000]),
        msgspec.msgpack.encode([NONCE, 0, True, ["ab"] * 40_000, None, None, None, None]),
        msgspec.msgpack.encode([NONCE, 0, True, ["ab"], [0.5] * 12_000, None, None, None]),
        msgspec.msgpack.encode([NONCE, 0, True, ["ab"], None, None, None, [b"{}"] * 40_000]),
        b"\x98"
        + msgspec.msgpack.encode(NONCE)
        + b"\x00\xc3\xdd\x00\x02\x00\x00"
        + b"\x90" * 131072,
    ]
    for body in bodies:
        exchange = Exchange("step", NONCE, 1024, REPLY_BYTES)
        tracemalloc.start()
        with pytest.raises(WireViolation):
            exchange.feed(framed(body))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 4 * 1024 * 1024


@pytest.mark.parametrize("count", [0, -1, 1025])
def test_a_request_is_for_a_sane_number_of_slots(count: int) -> None:
    with pytest.raises(ValueError, match="1 to 1024 slots"):
        Exchange("step", NONCE, count, REPLY_BYTES)


@pytest.mark.slow
def test_a_million_mutated_frames_do_nothing_worse_than_a_violation() -> None:
    rng = random.Random(20261129)
    seeds = [
        frame([RawStep("seen", 0.5, False, False, b'{"a":1}', 3, "out")]),
        frame([Raised("step", "KeyError", "'x'", 3, "", 0, "")]),
        frame([Bad("int", "7")]),
        framed(
            msgspec.msgpack.encode(Columns(NONCE, 0, True, ["seen"], [0.5], [True], None, [b"{}"]))
        ),
        frame([RawStep(Bad("a", "b"), Bad("c", "d"), True, Bad("e", "f"), Bad("g", "h"))]),
    ]
    passed = 0
    for _ in range(1_000_000):
        data = bytearray(rng.choice(seeds))
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(4, len(data))] = rng.getrandbits(8)
        exchange = Exchange("step", NONCE, 1, REPLY_BYTES)
        try:
            exchange.feed(bytes(data))
        except WireViolation:
            continue
        if exchange.done:
            passed += 1
            (item,) = exchange.items
            assert isinstance(item, RawStep | Raised | Bad)
    # Changes inside texts and numbers leave a reply that is still one.
    assert 0 < passed < 500_000
