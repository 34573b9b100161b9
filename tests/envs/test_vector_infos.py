import numpy as np
from gymnasium.vector import VectorEnv
from hypothesis import given
from hypothesis import strategies as st

from spade_envs.vector_infos import gather

NUM = 5
values = {
    "turn": st.integers(-9, 9),
    "share": st.floats(-1, 1),
    "flag": st.booleans(),
    "text": st.text(max_size=3),
    "rows": st.lists(st.integers(0, 3), max_size=3),
    "nothing": st.none(),
}
flat = st.fixed_dictionaries({}, optional=values)
nested = st.fixed_dictionaries({}, optional={**values, "inner": flat})


def plain(joined):
    return {
        key: plain(value) if isinstance(value, dict) else (value.dtype.kind, value.tolist())
        for key, value in joined.items()
    }


@given(st.dictionaries(st.integers(0, NUM - 1), nested))
def test_infos_are_joined_as_gymnasium_joins_them(infos):
    theirs = {}
    vector = VectorEnv()
    vector.num_envs = NUM
    for place, info in infos.items():
        theirs = vector._add_info(theirs, info, place)
    assert plain(gather(infos, NUM)) == plain(theirs)


def test_faults_stay_whole_beside_environments_without_one():
    fault = {"code": "SPD401"}
    joined = gather({0: {"fault": None}, 2: {"fault": fault}}, 3)
    assert joined["fault"].tolist() == [None, None, fault]
    assert joined["_fault"].tolist() == [True, False, True]


def test_what_has_no_common_type_is_kept_as_it_is():
    joined = gather({0: {"a": 2**70, "b": 1, "c": {"d": 1}}, 1: {"a": 1, "b": "x", "c": 3}}, 2)
    assert joined["a"].tolist() == [2**70, 1]
    assert joined["b"].tolist() == [1, "x"]
    assert joined["c"].tolist() == [{"d": 1}, 3]
    assert gather({0: {"a": 1}, 1: {"a": 0.5}}, 2)["a"].dtype == np.float64
    assert gather({}, 3) == {}


def test_values_stand_at_their_environments_whatever_the_order():
    joined = gather({2: {"a": 2, "t": "two"}, 0: {"a": 0, "t": "zero"}, 1: {"a": 1, "t": "one"}}, 3)
    assert joined["a"].tolist() == [0, 1, 2]
    assert joined["t"].tolist() == ["zero", "one", "two"]
