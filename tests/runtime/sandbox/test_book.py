"""A round taken by column is the same as the round taken slot by slot."""

from hypothesis import given
from hypothesis import strategies as st

from spade_runtime.sandbox.book import Book
from spade_runtime.sandbox.wire import Bad, Raised, RawReset, RawStep
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
strange = st.sampled_from(
    [
        RawStep("", 0.0, False, False, b"{}"),
        RawStep("a" * 20_000, 0.0, False, False, b"{}"),
        RawStep(Bad("int", "3"), 0.0, False, False, b"{}"),
        RawStep("a", float("nan"), False, False, b"{}"),
        RawStep("a", 2.0, True, False, b"{}"),
        RawStep("a", 20, True, False, b"{}"),
        RawStep("a", Bad("str", "'1'"), False, False, b"{}"),
        RawStep("a", 0.0, Bad("int", "1"), False, b"{}"),
        RawStep("a", 0.0, False, Bad("NoneType", "None"), b"{}"),
        RawStep("a", 0.0, False, False, b"[1]"),
        Bad("NoneType", "None"),
        Raised("step", "KeyError", "'x'", 3),
    ]
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
    plays = [(play.turn, play.over) for play in book.plays]
    return plays, [fault and fault.code for fault in book.faults]


@given(
    st.lists(plain, min_size=SLOTS, max_size=SLOTS),
    st.dictionaries(st.integers(0, SLOTS - 1), strange, max_size=1),
    st.permutations(range(SLOTS)),
    st.sampled_from(["contract", "published"]),
)
def test_a_round_by_column_is_the_round_slot_by_slot(raws, odd, slots, dialect):
    raws = [odd.get(place, raw) for place, raw in enumerate(raws)]
    actions = [f"action {slot}" for slot in slots]
    one, other = begun(dialect), begun(dialect)
    rows = one.results(slots, raws, actions)
    assert rows == [
        other.moved(slot, raw, action)
        for slot, raw, action in zip(slots, raws, actions, strict=True)
    ]
    assert [type(row) for row in rows] == [type(rows[0])] * SLOTS
    assert [type(row.reward) for row in rows] == [float] * SLOTS
    assert state(one) == state(other)


@given(st.lists(plain, min_size=SLOTS, max_size=SLOTS))
def test_plain_replies_are_taken_by_column(raws):
    moves = begun("contract").moves(range(SLOTS), raws, ["a"] * SLOTS)
    assert moves is not None
    assert moves.ended == any(map(any, zip(moves.terminated, moves.truncated, strict=True)))


@given(st.lists(plain, min_size=1, max_size=SLOTS), strange)
def test_one_strange_reply_is_left_to_the_closer_look(raws, odd):
    book = begun("contract")
    before = state(book)
    raws[-1] = odd
    assert book.moves(range(len(raws)), raws, ["a"] * len(raws)) is None
    assert state(book) == before
