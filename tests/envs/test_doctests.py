"""The examples in the docstrings of Gymnasium's side."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import spade_envs

LEFT_OUT = ("spade_envs.suite.", "spade_envs.adapters.")  # sources for the sandbox; other packages
MODULES = sorted(
    found.name
    for found in pkgutil.walk_packages(spade_envs.__path__, "spade_envs.")
    if not found.name.startswith(LEFT_OUT)
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_hold(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = [
        test
        for name in MODULES
        for test in finder.find(importlib.import_module(name))
        if test.examples
    ]
    assert len(found) >= 10
