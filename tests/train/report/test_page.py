import argparse
import gzip
import json
import re
from base64 import b64decode, b64encode
from hashlib import sha256

import pytest

from spade_runtime.errors import UsageError
from spade_train.commands.report import command
from spade_train.report import write_report


@pytest.fixture(scope="module")
def html(run_folder, tmp_path_factory):
    path, problems = write_report(run_folder, tmp_path_factory.mktemp("out") / "report.html")
    assert not problems
    return path.read_text(encoding="utf-8")


def blob(html, name):
    data = re.search(rf'id="data-{name}">([^<]*)</script>', html).group(1)
    return json.loads(gzip.decompress(b64decode(data)))


def test_nothing_is_fetched_and_only_the_pages_script_runs(html):
    assert not re.search(r'(?:src|href)="(?!#)', html)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html).group(1)
    script = re.search(r"<script>(.*)</script>", html, re.DOTALL).group(1)
    hashed = b64encode(sha256(script.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hashed}'"
    )
    assert "innerHTML" not in script


def test_text_of_environments_is_data_only(html):
    assert "hacked" not in html
    chunk = blob(html, "chunk-0")
    assert any("hacked" in f["message"] for details in chunk for f in details["findings"])


def test_the_same_run_gives_the_same_file(html, run_folder, tmp_path):
    path, _ = write_report(run_folder, tmp_path / "again.html")
    assert path.read_text(encoding="utf-8") == html


def test_the_map_can_be_left_out(run_folder, tmp_path):
    path, _ = write_report(run_folder, tmp_path / "plain.html", embedder="none")
    index = blob(path.read_text(encoding="utf-8"), "index")
    assert index["embedder"] == "none"
    assert set(index["envs"]["x"]) == {None}


def parsed(*words):
    parser = argparse.ArgumentParser()
    command.configure(parser)
    return parser.parse_args([str(word) for word in words])


def test_the_command_prints_the_file(run_folder, tmp_path, capsys):
    out = tmp_path / "r.html"
    assert command.run(parsed(run_folder, "--out", out, "--embedding", "none")) == 0
    assert capsys.readouterr().out.strip() == str(out)
    assert out.is_file()


def test_an_empty_run_has_a_report_too(tmp_path, capsys):
    (tmp_path / "metrics.jsonl").write_text("")
    (tmp_path / "designs.jsonl").write_text("{half")
    assert command.run(parsed(tmp_path)) == 0
    assert "designs.jsonl:1: not readable" in capsys.readouterr().err
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert blob(page, "index")["headline"]["title"] == "This run has no finished step yet"


def test_a_file_that_cannot_be_written(run_folder, tmp_path):
    with pytest.raises(UsageError, match="name another with --out"):
        write_report(run_folder, tmp_path / "none" / "r.html", embedder="none")
    assert not list(tmp_path.iterdir())
