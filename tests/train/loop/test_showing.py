"""What a run says of itself: its progress, its closing tables, figures rounded alike."""

import io
from decimal import ROUND_HALF_UP, Decimal

import pytest
from rich.console import Console

from spade_train.progress import StepProgress, headline
from spade_train.run_folder import RunFolder
from spade_train.summary import steps_table
from spade_train.told import fixed, percent, share, signed

PLAYED = {
    "agent/win_rate": 0.125,
    "agent/win_rate_hinted": 1.0,
    "designer/regret": 0.625,
    "designer/regret_se": 0.0625,
    "designer/acceptance": 1.0,
    "designer/band_share": 1 / 3,
    "seconds": 1234.56,
}


def table(lines, width=80):
    file = io.StringIO()
    Console(file=file, width=width).print(steps_table(lines))
    return file.getvalue()


def test_the_widest_table_of_steps_fits_eighty_columns_whole():
    held = {"heldout/win_rate": 1.0, "heldout/win_rate_se": 0.045}
    lines = [{"step": step, **PLAYED, "designer/regret": -0.625, **held} for step in range(399)]
    text = table([*lines, {"step": 399, **PLAYED}, {"step": 400, "flush": True, "seconds": 1.0}])
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80
    rows = text.splitlines()
    assert [row.split()[0] for row in rows if row.strip()][-2:] == ["374", "end"]
    assert "-0.63 ± 0.06" in text and "100 ± 5 %" in text and "1234.6" in text


def test_a_table_tells_steps_from_one_and_leaves_out_what_no_step_has():
    text = table([{"step": 0, **PLAYED}, {"step": 1, "flush": True, "seconds": 0.5}])
    assert "held out" not in text
    rows = [row.split() for row in text.splitlines() if row.strip()]
    assert rows[1][:4] == ["step", "wins", "hinted", "regret"]
    assert rows[3][:3] == ["1", "13", "%"]
    assert rows[4][0] == "end"


def progress(capsys, calls, steps=2, done=0):
    with StepProgress(steps, done) as shown:
        calls(shown)
    return capsys.readouterr().err.splitlines()


def test_away_from_a_terminal_each_step_is_a_line_and_the_first_ones_phases_too(capsys):
    def calls(shown):
        for step in range(2):
            shown.phase("designing")
            shown.phase("playing")
            shown.step_done({"step": step, **PLAYED})
        shown.phase("learning")
        shown.step_done({"step": 2, "flush": True, "seconds": 1.25})

    figures = "wins 13 %, with hint 100 %, regret +0.63, accepted 100 %, in band 33 %"
    assert progress(capsys, calls) == [
        "step 1/2: designing",
        "step 1/2: playing",
        f"step 1/2, 1234.6 s: {figures}",
        f"step 2/2, 1234.6 s: {figures}",
        "after the last step, 1.2 s: the last designs were paid",
    ]


def test_a_resumed_run_counts_on(capsys):
    def calls(shown):
        shown.phase("playing")
        shown.step_done({"step": 3, "seconds": 2.0})

    assert progress(capsys, calls, steps=5, done=3) == [
        "step 4/5: playing",
        "step 4/5, 2.0 s: nothing was played",
    ]


def test_a_run_that_was_stopped_before_its_last_designs_were_paid_says_where_it_is(capsys):
    assert progress(capsys, lambda shown: shown.phase("learning"), steps=2, done=2) == [
        "after the last step: learning"
    ]


def test_the_last_line_tells_what_was_measured(capsys):
    line = {"step": 2, "flush": True, "seconds": 9.0, "heldout/win_rate": 0.4}
    assert progress(capsys, lambda shown: shown.step_done(line)) == [
        "after the last step, 9.0 s: the last designs were paid, held out 40 %"
    ]
    assert headline({}) == ""


@pytest.mark.parametrize("value", [0.005, 0.125, 0.135, 0.495, 0.12345649, 2 / 3, 1.0])
def test_figures_are_rounded_as_the_page_rounds_them(value):
    # Both take halves up: the page by `Math.round` and `toFixed`, of a number of five digits.
    page = float(f"{value:.5g}")
    assert share(value) == int(100 * page + 0.5)
    assert percent(value) == f"{share(value)} %"
    assert fixed(value) == str(Decimal(page).quantize(Decimal("0.01"), ROUND_HALF_UP))
    assert signed(-value) == f"-{fixed(value)}"


def test_halves_go_away_from_zero():
    assert (fixed(0.625), fixed(-0.625), fixed(-0.001), signed(0.0)) == (
        "0.63",
        "-0.63",
        "0.00",
        "+0.00",
    )


def test_a_taken_folder_is_told_of_by_what_is_in_it(tmp_path):
    from spade_runtime.errors import UsageError

    taken = tmp_path / "taken"
    (taken / "checkpoints" / "step-000000").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"go on with it by `spade resume .*run_dir=FOLDER"):
        RunFolder.refuse_taken(taken)
    with pytest.raises(UsageError, match=r"exists already; name another folder by --out FOLDER$"):
        RunFolder.refuse_taken(taken, designs=True)
    pool = tmp_path / "pool"
    (pool / "checkpoints").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"is no run to go on with; name .* by run_dir=FOLDER$"):
        RunFolder.refuse_taken(pool)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--steps", "2"], "write steps=2"),
        (["--steps=2"], "write steps=2"),
        (["--learning-rate", "1e-4"], "write learning_rate=1e-4"),
        (["--steps"], "write steps=VALUE"),
    ],
)
def test_a_setting_that_looks_like_an_option_is_told_how_it_is_written(capsys, words, message):
    from spade_runtime.cli import main

    with pytest.raises(SystemExit) as left:
        main(["train", "--preset", "tiny", "--dry-run", *words])
    assert left.value.code == 2
    assert capsys.readouterr().err.strip().endswith(message)


def test_an_unknown_key_is_one_short_line():
    from spade_runtime.errors import ConfigError
    from spade_train.presets import resolve

    with pytest.raises(ConfigError, match="unknown configuration key 'device'; none is named") as e:
        resolve("tiny", overrides=["device=cuda"])
    assert len(str(e.value)) < 120


def test_measures_are_an_aligned_table():
    pytest.importorskip("torch")
    from spade_train.commands.tiny import told
    from spade_train.tiny.measure import Measures

    held = {"win_rate": 0.125, "win_rate_se": 0.0312, "win_rate_hinted": None, "environments": 24}
    text = told(Measures(96, 0.8541666, 0.75, {"SPD701": 3, "SPD601": 1}, held, 0.25, 1.0))
    rows = dict(row.split("  ", 1) if row[0] != " " else row.strip().split("  ", 1)
                for row in text.splitlines())  # fmt: skip
    values = {name.strip(): value.strip() for name, value in rows.items()}
    assert values["designs accepted"] == "85 % of 96"
    assert values["refused by"] == "SPD601 1, SPD701 3"
    assert values["held-out wins (24 environments)"] == "13 % ± 3 %"
    assert values["with the hint"] == "-"
    column = {len(row) - len(row.split("  ", 1)[-1].lstrip()) for row in text.splitlines()[:4]}
    assert len(column) == 1
