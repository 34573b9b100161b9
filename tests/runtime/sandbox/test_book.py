"""A round taken by column is the same as the round taken slot by slot."""

from hypothesis import given
from hypothesis import strategies as st

from spade_runtime.sandbox.book import Book, Moves, StepResult
from spade_runtime.sandbox.wire import Bad, Columns, Raised, RawReset, RawStep
from spade_runtime.spec import EnvSpec, Limits

SLOTS = 6
plain = st.builds(
    RawStep,
    st.sampled_from(["a", "Größe", "中"]),
    st.sampled_from([0.0, 1.0, -1.0, 0.5, 1, 0]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([b"{}", b'{"a": 1}', b'{"spade": "claimed"}']),
)
# What the types of the wire let through, and the contract does not.
strange = st.sampled_from(
    [
        RawStep("", 0.0, False, False, b"{}"),
        RawStep("a" * 20_000, 0.0, False, False, b"{}"),
        RawStep("a", float("nan"), False, False, b"{}"),
        RawStep("a", float("inf"), False, False, b"{}"),
        RawStep("a", 2.0, True, False, b"{}"),
        RawStep("a", 20.0, True, False, b"{}"),
        RawStep("a", 0.0, False, False, b"[1]"),
        RawStep("a", 0.0, False, False, b'{"a": "' + b"x" * 9000 + b'"}'),
    ]
)
stranger = st.sampled_from(
    [
        RawStep(Bad("int", "3"), 0.0, False, False, b"{}"),
        RawStep("a", Bad("str", "'1'"), False, False, b"{}"),
        RawStep("a", 0.0, Bad("int", "1"), False, b"{}"),
        RawStep("a", 0.0, False, Bad("NoneType", "None"), b"{}"),
        RawStep("a", 0.0, False, False, Bad("dict", "", "not JSON")),
        Bad("NoneType", "None"),
        Raised("step", "KeyError", "'x'", 3),
    ]
)


def columns(raws):
    """The rows as a child sends them: a column that holds nothing of note is left out."""
    found = [[getattr(raw, name) for raw in raws] for name in RawStep.__struct_fields__[:5]]
    observations, rewards, terminated, truncated, infos = found
    return Columns(
        1,
        0,
        True,
        observations,
        [float(reward) for reward in rewards] if any(rewards) else None,
        terminated if any(terminated) else None,
        truncated if any(truncated) else None,
        infos if any(info != b"{}" for info in infos) else None,
    )


def begun(dialect):
    spec = EnvSpec(
        id="spade/Any-v0",
        sha256="0" * 64,
        kind="game",
        dialect=dialect,
        title="any",
        skill="optimization",
        reward_range=(-10, 10) if dialect == "published" else (-1, 1),
    )
    book = Book(spec, Limits(), SLOTS)
    for slot in range(SLOTS):
        book.begun(slot, RawReset("go", b"{}"), 1 + slot % 3)
    return book


def state(book):
    return book.turns, book.over, [fault and fault.code for fault in book.faults]


def one_by_one(book, slots, raws, actions):
    return [
        book.moved(slot, raw, action)
        for slot, raw, action in zip(slots, raws, actions, strict=True)
    ]


@given(
    st.lists(plain, min_size=SLOTS, max_size=SLOTS),
    st.dictionaries(st.integers(0, SLOTS - 1), strange, max_size=1),
    st.permutations(range(SLOTS)),
    st.sampled_from(["contract", "published"]),
    st.integers(1, SLOTS),
)
def test_rounds_by_column_are_the_rounds_slot_by_slot(raws, odd, slots, dialect, count):
    raws = [odd.get(place, raw) for place, raw in enumerate(raws)]
    one, other = begun(dialect), begun(dialect)
    for turn in range(4):
        playing = [slot for slot in slots[: SLOTS if turn % 2 else count] if not one.over[slot]]
        if not playing:
            continue
        actions = [f"action {slot} {turn}" for slot in playing]
        mine = [raws[slot] for slot in playing]
        rows = one.results(playing, columns(mine), actions)
        assert rows == one_by_one(other, playing, mine, actions)
        assert {type(row) for row in rows} == {StepResult}
        assert {type(row.reward) for row in rows} == {float}
        assert state(one) == state(other)


@given(st.lists(plain | strange | stranger, min_size=1, max_size=SLOTS))
def test_rows_are_taken_one_by_one_and_as_columns_where_they_can_be(raws):
    one, other, third = begun("contract"), begun("contract"), begun("contract")
    slots, actions = range(len(raws)), ["a"] * len(raws)
    rows = one.results(slots, raws, actions)
    assert rows == one_by_one(other, slots, raws, actions)
    found = third.moves(slots, raws, actions)
    whole = all(row.info["spade"]["fault"] is None for row in rows)
    assert isinstance(found, Moves) == whole
    assert (found.rows() if whole else found) == rows
    assert state(one) == state(other) == state(third)


@given(st.lists(plain, min_size=SLOTS, max_size=SLOTS))
def test_plain_replies_are_taken_by_column(raws):
    moves = begun("contract").moves(range(SLOTS), columns(raws), ["a"] * SLOTS)
    assert isinstance(moves, Moves)
    assert moves.ended == any(map(any, zip(moves.terminated, moves.truncated, strict=True)))
    assert moves.paid == any(moves.rewards)


@given(st.lists(plain, min_size=1, max_size=SLOTS), strange)
def test_one_strange_reply_is_left_to_the_closer_look(raws, odd):
    raws[-1] = odd
    found = begun("contract").moves(range(len(raws)), columns(raws), ["a"] * len(raws))
    assert isinstance(found, list) and found[-1].info["spade"]["fault"] is not None


def test_a_reward_of_minus_zero_is_zero():
    raws = [RawStep("a", reward, False, False, b"{}") for reward in (-0.0, 1.0)]
    for replies in (raws, columns(raws)):
        rows = begun("contract").results([0, 1], replies, ["a", "a"])
        assert [str(row.reward) for row in rows] == ["0.0", "1.0"]


def test_a_result_keeps_its_turn_when_the_next_round_is_played():
    book, raws = begun("published"), columns([RawStep("a", 0.0, False, False, b"{}")] * 2)
    first = book.moves([2, 1], raws, ["a", "a"])
    book.moves([2], columns([RawStep("a", 0.0, False, False, b"{}")]), ["a"])
    assert first.turns == [1, 1]
    assert book.turns[1:3] == [1, 2]
