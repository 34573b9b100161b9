"""The report in a real Chromium: it opens, draws, filters and shows plays, without a complaint."""

import json
import os
import shutil
from pathlib import Path

import pytest

from spade_train.report import write_report

pytestmark = pytest.mark.browser

NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
)


@pytest.fixture(scope="module")
def chromium():
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("no Chromium on this machine: none of " + ", ".join(NAMES))
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def report(run_folder, tmp_path_factory):
    return write_report(run_folder, tmp_path_factory.mktemp("page") / "report.html")[0]


def wait_until(page, holds, seconds=180):
    """Ask again and again: a wait inside the page would need `eval`, which the page forbids."""
    for _ in range(seconds * 20):
        if holds():
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"did not come true in {seconds} s")


@pytest.fixture
def visit(chromium):
    """Open a page and hold it to silence: no console line, no error, no request but the file."""
    complaints, contexts = [], []

    def open_page(path, *, width=1280, height=900, scheme="light", anchor=""):
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(180_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: complaints.extend(foreign(request.url)))
        page.goto(Path(path).as_uri() + anchor)
        page.wait_for_selector("html[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def foreign(url):
    return [] if url.startswith("file:") else [url]


def shown(page):
    """How many environments the list says it has found."""
    return int(page.inner_text("#environments [aria-live]").split()[0].replace(",", ""))


def test_it_opens_and_tells_its_story(visit, report):
    page = visit(report)
    assert "never saw" in page.inner_text("h1")
    assert page.locator(".figures > div").count() == 5
    assert page.locator("#designs pre.code").count() == 2
    headings = page.locator(".point h2").all_inner_texts()
    assert headings == ["The agent", "The designer", "The hints", "The levers"]
    terms = page.locator(".terms dt").all_inner_texts()
    assert terms == ["Agent", "Designer", "Learnable band", "Hint regret", "Levers"]
    order = page.evaluate("[...document.querySelectorAll('main > section')].map((s) => s.id)")
    assert order[:4] == ["story", "designs", "hint", "curves"]


def test_the_words_agree_with_the_figures_beneath_them(visit, report):
    page = visit(report)
    figure = page.locator(".figures > div", has_text="Win rate without hint")
    first, last = figure.locator(".value").inner_text().replace("to", "").split("→")
    sentence = page.inner_text(".point >> nth=0")
    assert f"it won {first.strip()}\u00a0% of its plays" in sentence
    assert f"and {last.strip()} in the last" in sentence


def test_two_designs_stand_side_by_side_with_what_differs_marked(visit, report):
    page = visit(report)
    panels = page.locator("#designs .version")
    assert panels.count() == 2
    for panel in panels.all():
        assert panel.locator(".line.marked mark").count() > 0
        assert panel.locator(".tk").count() > 0
        for part in ("Hint", "won without hint", "with hint", "hint regret"):
            assert part in panel.inner_text()
    rows = [panel.locator(".line, .gap").count() for panel in panels.all()]
    assert rows[0] == rows[1]
    marked = panels.nth(0).locator("mark").all_inner_texts()
    source = panels.nth(0).locator("pre").inner_text()
    assert all(word in source for word in marked)
    assert "Chosen by rule" in page.inner_text("#designs")
    first = page.inner_text("#designs h3 >> nth=0")
    page.click("#designs .tabs button >> nth=1")
    assert page.inner_text("#designs h3 >> nth=0") != first


def test_equal_lines_of_the_two_sources_are_level(visit, report):
    page = visit(report)
    for tab in page.locator("#designs .tabs button").all():
        tab.click()
        level = page.evaluate("""() => [...document.querySelectorAll('#designs .version')].map(
          (panel) => [...panel.querySelectorAll('.line:not(.marked)')]
            .map((line) => line.getBoundingClientRect().top))""")
        assert level[0] == level[1]
        assert len(level[0]) > 10


def test_the_two_sources_scroll_as_one(visit, report):
    page = visit(report, width=800, height=500)
    page.add_style_tag(content=".version .code { max-height: 8rem !important; }")
    page.evaluate("document.querySelectorAll('#designs pre')[0].scrollTop = 120")
    other = "document.querySelectorAll('#designs pre')[1].scrollTop"
    wait_until(page, lambda: page.evaluate(other) == 120)


def test_one_seed_is_played_twice_turn_by_turn(visit, report):
    page = visit(report)
    heads = page.locator("#hint .heads header")
    assert "not solved" in heads.nth(0).inner_text()
    assert heads.nth(1).inner_text().split("\n")[:2] == ["With the hint", "solved"]
    turns = page.locator("#hint .turn")
    assert turns.locator(".turn-name").all_inner_texts() == ["Turn 1", "Turn 2", "End"]
    # Both read the same, so it stands there once.
    assert turns.nth(0).locator(".say.world").count() == 1
    assert turns.nth(0).locator(".say.actor").count() == 2
    assert turns.nth(0).locator(".tag").all_inner_texts() == ["without hint", "with hint"]
    assert "Chosen by rule" in page.inner_text("#hint")


def test_what_training_reckoned_and_what_was_paid_are_told_apart_where_they_differ(
    visit, make_run, tmp_path
):
    run = make_run(tmp_path / "graded", steps=3)
    for file in (run / "episodes").glob("*.jsonl"):
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        for row in rows:
            worth = "return" if "return" in row else "episode_return"
            if row.get(worth) == 1.0 and row["arm"] == "hinted":
                row["rewards"] = [0.5] * (len(row["rewards"]) - 1) + [1.0]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    page = visit(write_report(run)[0])
    heads = page.locator("#hint .heads header").all_inner_texts()
    assert "in training" not in heads[0]
    assert "return 1 in training, rewards 1.5 in all" in heads[1]


def test_a_play_that_is_over_says_so_once(visit, make_run, tmp_path):
    run = make_run(tmp_path / "lost", steps=3)
    for file in (run / "episodes").glob("*.jsonl"):
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        for row in rows:
            turns = 4 if row["arm"] == "hinted" else 1
            for key in ("actions", "rewards"):
                row[key] = [row[key][-1]] * turns
            row["observations"] = row["observations"][:1] + ["Go on."] * (turns - 1) + ["Over."]
            row.pop("messages", None)
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    page = visit(write_report(run)[0])
    turns = page.locator("#hint .turn")
    assert turns.locator(".turn-name").all_inner_texts()[:4] == [f"Turn {n + 1}" for n in range(4)]
    tags = [turns.nth(n).locator(".tag").all_inner_texts() for n in range(4)]
    assert tags == [["without hint", "with hint"]] * 2 + [["with hint"]] * 2
    assert page.inner_text("#hint .rounds").count("The episode is over.") == 1


def test_a_run_of_two_steps_tells_of_steps_and_not_of_parts(visit, make_run, tmp_path):
    page = visit(write_report(make_run(tmp_path / "short", steps=2))[0])
    for part in ("#story", "#designs", "#hint", "#curves", "#levers"):
        text = page.inner_text(part)
        assert "quarter" not in text and "third" not in text, part
    assert "Near the start, step 1" in page.inner_text("#designs")
    assert "Near the end, step 2" in page.inner_text("#designs")


def test_a_late_play_without_the_hint_follows(visit, report):
    page = visit(report)
    later = page.locator("#hint .later")
    assert later.locator(".badge").all_inner_texts() == ["solved"]
    assert "Hint:" not in later.inner_text()
    assert "in the first third" in later.inner_text()
    later.locator("button").click()
    page.wait_for_selector("dialog[open]")


def test_the_curves_carry_the_means_that_the_story_tells(visit, report):
    page = visit(report)
    for chart in ("The agent’s win rate", "Hint regret", "The designer’s environments"):
        figure = page.locator("#curves figure", has_text=chart)
        assert figure.locator("line.mean").count() >= 2
    assert page.locator("#levers figure line.mean").count() >= 9


def test_curves_are_drawn_and_read_by_key(visit, report):
    page = visit(report)
    charts = page.locator("#curves svg")
    assert charts.count() >= 3
    for index in range(charts.count()):
        assert charts.nth(index).locator("path.curve").count() >= 1
    assert page.locator("#curves path.band").count() >= 2
    chart = charts.first
    chart.focus()
    page.keyboard.press("Home")
    assert chart.get_attribute("aria-valuenow") == "0"
    page.keyboard.press("ArrowRight")
    assert chart.get_attribute("aria-valuenow") == "1"
    assert chart.get_attribute("aria-valuetext").startswith("step 2: without hint ")


def test_search_and_filters(visit, report):
    page = visit(report)
    everything = shown(page)
    page.fill("#environments input[type=search]", "harbour shift")
    assert 0 < shown(page) < everything
    titles = page.locator("#environments .card .title").all_inner_texts()
    assert all("harbour shift" in title for title in titles)
    page.fill("#environments input[type=search]", "")
    page.select_option("#environments select >> nth=2", "band")
    assert 0 < shown(page) < everything
    page.select_option("#environments select >> nth=2", "")
    page.click("#environments .more-row button")
    assert page.locator("#environments .card").count() == 48


def test_a_code_of_the_funnel_filters_the_environments(visit, report):
    page = visit(report)
    row = page.locator("#funnel .row", has_text="SPD701")
    wanted = int(row.locator(".count").inner_text().split()[0])
    row.locator("button").click()
    assert shown(page) == wanted > 0
    assert "SPD701" in page.inner_text("#environments .card >> nth=0")


def test_a_card_opens_source_hint_and_transcripts_and_gives_the_focus_back(visit, report):
    page = visit(report)
    card = page.locator("#environments .card").nth(1)
    title = card.locator(".title").inner_text()
    card.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open]")
    assert page.inner_text("#detail-title") == title
    text = page.inner_text("dialog")
    for part in ("Without the hint", "With the hint", "return", "Source", "class "):
        assert part in text
    assert page.locator("dialog .say.actor").count() >= 4
    page.click("dialog button[aria-label='Next environment']")
    wait_until(page, lambda: page.inner_text("#detail-title") != title)
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog:not([open])", state="attached")
    assert page.evaluate("document.activeElement.classList.contains('card')")


def test_an_environment_has_an_address(visit, report):
    page = visit(report, anchor="#env-3")
    page.wait_for_selector("dialog[open]")
    assert page.evaluate("location.hash") == "#env-3"


def test_hostile_text_stays_text(visit, report):
    page = visit(report)
    page.select_option("#environments select >> nth=1", "all")
    page.fill("#environments input[type=search]", "window.hacked")
    assert shown(page) == 1
    title = page.inner_text("#environments .card .title")
    assert "<script>" in title
    assert "⟨U+202E⟩" in title
    assert "\u202e" not in title
    page.click("#environments .card")
    page.wait_for_selector("dialog[open]")
    assert page.evaluate("window.hacked === undefined")
    assert page.locator("main img, dialog img, main script").count() == 0


def test_the_map_is_walked_by_keys(visit, report):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    page = visit(report)
    page.locator("#map canvas").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert "won in" in page.inner_text("#map .says")
    page.click("#map .tabs button >> nth=1")
    assert "pattern recognition" in page.inner_text("#map .scale")
    page.locator("#map canvas").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open]")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_scrolls_in_one_direction_only(visit, report, scheme):
    page = visit(report, width=360, height=740, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    skills = page.locator("#curves .scroll")
    assert skills.evaluate("(box) => box.scrollWidth > box.clientWidth")
    skills.evaluate("(box) => box.scrollTo(1000, 0)")
    last = skills.locator("th").last.bounding_box()
    assert last["x"] + last["width"] <= 360
    for panel in page.locator("#designs .version, #hint .arms, .point").all():
        box = panel.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 360
    page.click("#environments .card >> nth=0")
    page.wait_for_selector("dialog[open]")
    assert page.evaluate("document.querySelector('dialog').scrollWidth") <= 360
    assert page.evaluate("document.documentElement.scrollWidth") == 360


CONTRAST = """() => {
  const style = getComputedStyle(document.documentElement);
  const parse = (name) => {
    const probe = document.createElement('i');
    probe.style.color = style.getPropertyValue(name);
    document.body.append(probe);
    const [r, g, b] = getComputedStyle(probe).color.match(/[0-9.]+/g).map(Number);
    probe.remove();
    const line = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * line(r) + 0.7152 * line(g) + 0.0722 * line(b);
  };
  const grounds = ['--paper', '--raised', '--sunk', '--mark'].map(parse);
  const inks = ['--ink', '--soft', '--agent', '--hint', '--held', '--designer', '--bad',
    '--keyword', '--string', '--number', '--comment'];
  return inks.map((ink) => [ink, Math.min(...grounds.map((ground) => {
    const [low, high] = [parse(ink), ground].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  }))]);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(visit, report, scheme):
    page = visit(report, scheme=scheme)
    for ink, ratio in page.evaluate(CONTRAST):
        assert ratio >= 4.5, f"{ink} has the contrast {ratio:.2f} in {scheme} mode"


def test_the_reader_may_choose_the_colours(visit, report):
    page = visit(report, scheme="light")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.click("#theme")
    assert page.evaluate(ground) == light
    page.click("#theme")
    assert page.evaluate(ground) == "rgb(20, 22, 26)" != light
    assert page.get_attribute("#theme", "aria-label") == "Colours: dark"


def test_a_run_that_has_hardly_begun(visit, make_run, tmp_path):
    run = make_run(tmp_path / "short", steps=1, slots=2, plays=2)
    page = visit(write_report(run)[0])
    assert shown(page) >= 1
    assert "only one step of this run had plays" in page.inner_text("#story").lower()
    assert page.locator("#designs").count() == 0
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "metrics.jsonl").write_text("")
    page = visit(write_report(empty)[0])
    assert "no finished step" in page.inner_text("h1")


@pytest.mark.slow
def test_ten_thousand_environments(visit, make_run, tmp_path):
    run = make_run(tmp_path / "large", steps=250, slots=42, plays=2)
    path = write_report(run)[0]
    assert path.stat().st_size < 20_000_000
    page = visit(path)
    assert shown(page) > 10_000
    page.fill("#environments input[type=search]", "harbour step 17")
    assert 0 < shown(page) < 2000
    page.click("#environments .card >> nth=0")
    page.wait_for_selector("dialog[open]")
    assert "harbour" in page.inner_text("dialog pre.code")
