import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_envs.spaces import UnicodeText


@given(st.text(max_size=40))
def test_any_text_that_encodes_is_contained(text):
    try:
        text.encode()
        encodes = True
    except UnicodeEncodeError:
        encodes = False
    assert (text in UnicodeText(40)) is encodes


@pytest.mark.parametrize("value", [None, 3, b"a", ["a"], "\ud800", "a" * 6, ""])
def test_what_is_no_text_of_the_space(value):
    assert value not in UnicodeText(5, min_length=1)


def test_numpy_strings_are_text():
    assert np.str_("abc") in UnicodeText(5)


def test_samples_are_varied_reproducible_and_printable():
    space = UnicodeText(100, seed=3)
    samples = [space.sample() for _ in range(200)]
    assert all(sample in space and sample.isprintable() for sample in samples)
    assert any(not sample.isascii() for sample in samples)
    assert any(" " in sample for sample in samples)
    assert len(set(samples)) > 150
    assert samples == [UnicodeText(100, seed=3).sample()] + samples[1:]
    assert {len(UnicodeText(3, min_length=3, seed=n).sample()) for n in range(9)} == {3}
    with pytest.raises(ValueError, match="without mask"):
        space.sample(mask=np.zeros(3))


def test_a_space_survives_pickle_and_its_samples_json():
    space = UnicodeText(12, min_length=2, seed=1)
    assert pickle.loads(pickle.dumps(space)) == space
    assert hash(space) == hash(UnicodeText(12, min_length=2))
    assert space != UnicodeText(12)
    samples = [space.sample() for _ in range(3)]
    assert space.from_jsonable(json.loads(json.dumps(space.to_jsonable(samples)))) == samples
    assert repr(space) == "UnicodeText(max_length=12, min_length=2)"


@pytest.mark.parametrize(("longest", "shortest"), [(-1, 0), (2, 3), (5, -1)])
def test_impossible_lengths(longest, shortest):
    with pytest.raises(ValueError, match="min_length <= max_length"):
        UnicodeText(longest, min_length=shortest)
