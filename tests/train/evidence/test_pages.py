"""Pages and figures: what they say is what the runs say, and nothing of the machine."""

import json
import re
import xml.etree.ElementTree as ElementTree

import pytest

from spade_train.evidence.baselines import Baselines
from spade_train.evidence.collect import evidence_of
from spade_train.evidence.page import write_pages
from spade_train.evidence.svg import Panel, Point, Series, figure, ticks
from spade_train.evidence.tables import over_seeds, table

SVG = "{http://www.w3.org/2000/svg}"
BASE = Baselines(0.1, 1.0, 0.06, 0.02, 0.6, 96, 0.9)


@pytest.fixture
def runs(facts, made):
    """Two arms on three seeds: the full one rises, the frozen one does not."""

    def arm(name, gains):
        found = []
        for seed, gain in gains.items():
            names = [f"shift-{i}" for i in range(6)] + ["relay-0"]
            held = {s: dict.fromkeys(names, 0.25 + gain * s / 8) for s in (0, 4, 8)}
            designs = [
                made(s, wins=min(4, s // 2), regret=0.5 - s / 20, rounds=1 + s % 3)
                for s in range(8)
            ]
            tries = dict.fromkeys(range(8), (10, 9))
            found.append(
                facts(name, seed, made=designs, tries=tries, heldout=held, new=("relay-0",))
            )
        return found

    return {
        "full": arm("full", {1: 0.3, 2: 0.4, 3: 0.5}),
        "frozen_designer": arm("frozen_designer", {1: 0.0, 2: 0.05, 3: 0.0}),
    }


def test_the_page_says_what_the_runs_say(runs, tmp_path):
    (tmp_path / "remarks.md").write_text("By hand.")
    evidence = evidence_of(runs, missing=["no_memory seed 1"], baselines=BASE, embedders=[])
    files = write_pages(evidence, tmp_path)
    assert {p.name for p in files} == {
        "README.md",
        "ledgers.json",
        "heldout.svg",
        "arms.svg",
        "pools.svg",
        "levers.svg",
    }
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "went from 0.25 ± 0.00 to 0.65 ± 0.25 of plays won" in text
    assert "+0.40 (+0.15 to +0.65), 95 % interval over 3 seeds" in text
    assert "That is a rise outside the interval." in text
    assert "`frozen_designer` +0.38 (+0.12 to +0.64), the full arm is better" in text
    assert "Not finished, and left out: no_memory seed 1." in text
    assert "| any option on show | 0.10 |" in text
    assert "| warm start, untrained (± over environments) | 0.06 ± 0.04 |" in text
    assert "[remarks.md](remarks.md)" in text
    for name in re.findall(r"\]\((\S+\.svg)\)", text):
        assert (tmp_path / name).is_file()
    row = next(line for line in text.splitlines() if line.startswith("| held-out win rate"))
    assert (
        "| +0.30 (+0.30 to +0.30): met |" in row
        and row.count(": met") == 3
        and row.endswith("| met |")
    )


def test_what_fails_on_one_seed_is_not_met(runs, tmp_path):
    weak = runs["frozen_designer"][0]
    weak.arm, weak.seed = "full", 4
    text = write(evidence_of({"full": [*runs["full"], weak]}, embedders=[]), tmp_path)
    row = next(line for line in text.splitlines() if line.startswith("| held-out win rate"))
    assert row.count(": met") == 3
    assert "0.00 (0.00 to 0.00): **not met**" in row and row.endswith("| **not met** |")
    assert "held-out win rate without hint (not met)" in text


def write(evidence, folder):
    write_pages(evidence, folder)
    return (folder / "README.md").read_text(encoding="utf-8")


def test_pages_are_the_same_again_and_drop_what_is_no_longer_drawn(runs, tmp_path):
    evidence = evidence_of(runs, embedders=[])
    first = write(evidence, tmp_path)
    figures = (tmp_path / "pools.svg").read_bytes()
    assert write(evidence, tmp_path) == first
    assert (tmp_path / "pools.svg").read_bytes() == figures
    write(evidence_of({"full": runs["full"]}, embedders=[]), tmp_path)
    assert not (tmp_path / "arms.svg").exists()


def test_without_the_full_arm_the_page_says_so(runs, tmp_path):
    text = write(evidence_of({"frozen_designer": runs["frozen_designer"]}, embedders=[]), tmp_path)
    assert "No run of the arm `full` is finished" in text
    assert "The criteria, seed by seed" not in text


def test_several_versions_of_the_code_are_named(runs, tmp_path):
    runs["full"][0].stamp.attempts[0].code = "another"
    text = write(evidence_of(runs, embedders=[]), tmp_path)
    assert "made by 2 versions of the code" in text


def test_the_ledgers_name_no_folder(runs, tmp_path):
    run = runs["full"][0]
    run.config = run.config.model_copy(update={"model": str(tmp_path / "secret" / "model")})
    write_pages(evidence_of(runs, embedders=[]), tmp_path)
    text = (tmp_path / "ledgers.json").read_text(encoding="utf-8")
    assert str(tmp_path) not in text
    found = json.loads(text)
    assert found[0]["model"] == "model"
    assert (found[0]["config_sha256"], found[0]["weights_sha256"]) == ("c" * 64, "w" * 64)
    assert found[0]["ledger"]["accounts"]["agent"]["tokens_out"] == 1000
    assert found[0]["attempts"] == [
        {"code": "code", "cpu_seconds": 20.0, "exit_code": 0, "seconds": 10.0}
    ]
    # Nine lines of three seconds, of which one each went into measuring.
    assert (found[0]["seconds"], found[0]["seconds_heldout"]) == (27.0, 9.0)


def test_a_figure_is_well_formed_and_escapes_what_it_is_told():
    points = [Point(0, 0.1, 0.0, 0.3), Point(10, 0.9, 0.5, 1.4)]
    panel = Panel("<b>&", [Series('a "label" <', "agent", points)])
    drawn = ElementTree.fromstring(figure("wins & <losses>", [panel, Panel("none", [])]))
    texts = [element.text for element in drawn.iter(f"{SVG}text")]
    assert {"<b>&", 'a "label" <', "wins & <losses>", "nothing measured"} <= set(texts)
    assert drawn.get("aria-label") == "wins & <losses>"
    paths = [element.get("class") for element in drawn.iter(f"{SVG}path")]
    assert (paths.count("band"), paths.count("curve")) == (1, 2)
    style = next(drawn.iter(f"{SVG}style")).text
    assert "prefers-color-scheme:dark" in style


def test_bands_stay_within_the_axes():
    wide = [Point(0, 0.5, -3.0, 4.0), Point(1, 0.5, -3.0, 4.0)]
    drawn = ElementTree.fromstring(figure("t", [Panel("p", [Series("s", "held", wide)])]))
    band = next(e for e in drawn.iter(f"{SVG}path") if e.get("class") == "band")
    heights = {float(y) for _, y in (p.split() for p in band.get("d")[1:-1].split("L"))}
    assert max(heights) - min(heights) == pytest.approx(190)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 60, [0, 20, 40, 60]),
        (-0.1, 0.25, [-0.1, 0.0, 0.1, 0.2, 0.3]),
        (0, 0, [0.0, 0.5, 1.0]),
        (0, 7, [0, 2, 4, 6, 8]),
        (0, float("nan"), [0.0, 0.5, 1.0]),
    ],
)
def test_ticks_are_round_numbers_that_span_the_values(low, high, expected):
    assert ticks(low, high) == pytest.approx(expected)


def test_tables_and_numbers():
    assert table(["a", "b"], [["x|y", "1"]]) == "| a | b |\n| --- | --- |\n| x\\|y | 1 |\n"
    assert over_seeds([1.0, 2.0, 3.0], 1) == "2.0 ± 2.5"
    assert over_seeds([]) == "–"
