import json

import pytest

from spade_runtime.errors import UsageError
from spade_train.corpus import CHARS_A_WORD, TOPICS, Corpus, cut_words


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def test_cut_golden(golden):
    for case in golden["corpus_cut"]:
        assert cut_words(case["text"], case["max_words"]).split() == case["expected_words"]


def test_cut_keeps_the_space_between_words():
    assert cut_words("  one\n\ttwo  three ", 2) == "one\n\ttwo"
    assert cut_words(" a b ", 9) == "a b"
    assert cut_words("   ", 3) == ""


def test_what_ships():
    corpus = Corpus.open(["builtin"], max_words=6000)
    documents = [corpus.draw(0, i) for i in range(len(corpus))]
    assert len({d.id for d in documents}) == len(corpus) >= 120
    assert len({d.text for d in documents}) == len(corpus)
    assert min(len(d.text.split()) for d in documents) >= 40
    assert not corpus.problems
    for topic in TOPICS:
        part = Corpus.open([f"builtin:{topic}"], max_words=6000)
        assert 25 <= len(part) < len(corpus)
        assert all(part.draw(1, i).id.startswith(topic) for i in range(len(part)))


def test_each_document_comes_once_before_any_comes_again(tmp_path):
    corpus = Corpus.open(
        [write(tmp_path / "a.jsonl", [{"text": str(i)} for i in range(37)])], max_words=5
    )
    first, second = ([corpus.draw(3, p * 37 + i).text for i in range(37)] for p in (0, 1))
    assert sorted(first) == sorted(second) == sorted(map(str, range(37)))
    assert first != second != sorted(second)


def test_draws_depend_on_seed_and_counter_alone(tmp_path):
    path = write(tmp_path / "a.jsonl", [{"text": str(i)} for i in range(50)])
    one, two = Corpus.open([path], max_words=5), Corpus.open([path], max_words=5)
    assert one.draw(7, 41) == two.draw(7, 41)
    assert [one.draw(7, i) for i in range(9)] == [one.draw(7, i) for i in range(9)]
    assert [one.draw(7, i) for i in range(9)] != [one.draw(8, i) for i in range(9)]


def test_ids_and_fields(tmp_path):
    rows = [{"id": 9, "text": "a"}, {"orig_doc": "b"}, {"text": "c", "id": None}]
    corpus = Corpus.open([write(tmp_path / "mix.jsonl", rows)], max_words=5)
    ids = {corpus.draw(0, i).text: corpus.draw(0, i).id for i in range(3)}
    assert ids == {"a": "9", "b": "mix.jsonl:2", "c": "mix.jsonl:3"}


def test_bad_documents_are_reported_and_passed_over(tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(
        b'{"text": "good"}\n\n{"text": 3}\n{broken\n[1]\n{"other": "x"}\n{"text": "  "}\n\xff\xfe\n'
    )
    corpus = Corpus.open([str(path)], max_words=5)
    assert len(corpus) == 7
    assert {corpus.draw(0, i).text for i in range(14)} == {"good"}
    assert {p.where: p.why.partition(":")[0] for p in corpus.problems} == {
        "bad.jsonl:3": "`text` is int, not text",
        "bad.jsonl:4": "no JSON",
        "bad.jsonl:5": "the line holds a list, not an object",
        "bad.jsonl:6": "no field `text` or `orig_doc`",
        "bad.jsonl:7": "the document has no words",
        "bad.jsonl:8": "not UTF-8",
    }


def test_a_corpus_of_bad_documents_is_refused_when_it_is_opened(tmp_path):
    path = write(tmp_path / "a.jsonl", [{"x": 1}, {"x": 2}])
    with pytest.raises(UsageError, match="none of 2 documents.*a.jsonl:[12]: no field `text`"):
        Corpus.open([path], max_words=5)


def test_half_of_a_surrogate_pair_is_no_text(tmp_path):
    path = tmp_path / "half.jsonl"
    path.write_text('{"text": "lone \\ud800 half"}\n{"text": "a pair \\ud83d\\ude00"}\n')
    corpus = Corpus.open([str(path)], max_words=5)
    assert {corpus.draw(0, i).text for i in range(4)} == {"a pair \N{GRINNING FACE}"}
    assert [p.where for p in corpus.problems] == ["half.jsonl:1"]


def test_documents_that_are_passed_over_are_told_once_a_kind_and_then_counted(tmp_path):
    rows = [{"text": 3}] * 12 + [{"other": i} for i in range(3)] + [{"text": "good"}]
    told: list[str] = []
    corpus = Corpus.open([write(tmp_path / "a.jsonl", rows)], max_words=5, warn=told.append)
    for counter in range(len(rows)):
        corpus.draw(0, counter)
    assert len(corpus.problems) == 15
    firsts = [line for line in told if "is passed over" in line]
    assert sorted(line.partition("(")[2] for line in firsts) == [
        "`text` is int, not text)",
        f"no field `text` or `orig_doc`: only {['other']})",
    ]
    assert [line for line in told if line not in firsts] == [
        "corpus: 10 documents so far can't be used (`text` is int, not text)"
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.jsonl", "'nowhere.jsonl' does not exist"),
        ("builtin:poetry", "no built-in topic 'poetry'"),
    ],
)
def test_sources_that_are_not_there(name, message):
    with pytest.raises(UsageError, match=message):
        Corpus.open([name], max_words=5)


def test_an_empty_corpus(tmp_path):
    (tmp_path / "empty.jsonl").write_text("\n\n", encoding="utf-8")
    with pytest.raises(UsageError, match="holds no documents"):
        Corpus.open([str(tmp_path / "empty.jsonl")], max_words=5)


def test_ten_megabytes_are_cut(tmp_path):
    path = write(tmp_path / "big.jsonl", [{"text": "word " * 2_000_000}])
    document = Corpus.open([path], max_words=6000).draw(0, 0)
    assert len(document.text.split()) == 6000


def test_a_text_without_spaces_is_cut_too(tmp_path):
    assert cut_words("x" * 10_000_000, 10) == "x" * 10 * CHARS_A_WORD
    assert cut_words(" " * 10_000 + "one two", 1) == "one"
    for topic in TOPICS:  # no shipped document has so few spaces
        corpus = Corpus.open([f"builtin:{topic}"], max_words=24)
        words = (len(corpus.draw(0, i).text.split()) for i in range(len(corpus)))
        assert set(words) == {24}


def damaged(tmp_path, text):
    """Write a parquet file of five groups of 700 rows, the first two of them overwritten."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    import pyarrow

    path = tmp_path / "rows.parquet"
    table = pyarrow.table({"text": [f"{text} {i}" for i in range(3500)]})
    parquet.write_table(table, path, row_group_size=700, use_dictionary=False)
    first, third = (parquet.ParquetFile(path).metadata.row_group(i).column(0) for i in (0, 2))
    raw = bytearray(path.read_bytes())
    start, end = first.data_page_offset, third.data_page_offset
    raw[start:end] = b"\xff" * (end - start)
    path.write_bytes(raw)
    return path


def test_damaged_row_groups_are_passed_over_whole(tmp_path):
    told: list[str] = []
    corpus = Corpus.open([str(damaged(tmp_path, "row"))], max_words=5, warn=told.append)
    rows = {int(corpus.draw(0, i).text.removeprefix("row ")) for i in range(500)}
    assert len(rows) > 250
    assert min(rows) == 1400
    assert any("damaged: row group" in line for line in told)


def test_a_row_that_is_no_text_spoils_no_other(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    import pyarrow

    raw = pyarrow.array([b"good", b"\xff\xfe", b"fine"], pyarrow.binary())
    parquet.write_table(pyarrow.table({"text": raw.view("string")}), tmp_path / "rows.parquet")
    corpus = Corpus.open([str(tmp_path / "rows.parquet")], max_words=5)
    assert {corpus.draw(0, i).text for i in range(3)} == {"good", "fine"}
    assert [p.where for p in corpus.problems] == ["rows.parquet:1"]


def test_parquet(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    import pyarrow

    path = tmp_path / "rows.parquet"
    table = pyarrow.table({"orig_doc": [f"doc {i}" for i in range(10)] + [None], "n": range(11)})
    parquet.write_table(table, path, row_group_size=4)
    corpus = Corpus.open([str(path)], max_words=5)
    texts = {corpus.draw(0, i).text for i in range(11)}
    assert texts == {f"doc {i}" for i in range(10)}
    assert [p.where for p in corpus.problems] == ["rows.parquet:10"]
    parquet.write_table(pyarrow.table({"n": [1]}), path)
    with pytest.raises(UsageError, match="no column `text` or `orig_doc`"):
        Corpus.open([str(path)], max_words=5)
    path.write_bytes(b"PAR1 not really")
    with pytest.raises(UsageError, match="can't read the corpus"):
        Corpus.open([str(path)], max_words=5)


def test_several_sources_are_one_list(tmp_path):
    names = [
        write(tmp_path / "a.jsonl", [{"text": "a"}]),
        write(tmp_path / "b.jsonl", [{"text": "b"}, {"text": "c"}]),
    ]
    corpus = Corpus.open(names, max_words=5)
    assert {corpus.draw(0, i).text for i in range(3)} == {"a", "b", "c"}
    assert {corpus.draw(0, i).source for i in range(3)} == {"a.jsonl", "b.jsonl"}


def test_a_dataset_folder(tmp_path):
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    rows = datasets.Dataset.from_dict({"text": ["a b c d", "e"], "id": ["x", "y"]})
    rows.save_to_disk(str(tmp_path / "saved"))
    corpus = Corpus.open([str(tmp_path / "saved")], max_words=2)
    found = {(d.id, d.text) for d in (corpus.draw(0, i) for i in range(2))}
    assert found == {("x", "a b"), ("y", "e")}
    told: list[str] = []
    (arrow,) = (tmp_path / "saved").glob("*.arrow")
    raw = bytearray(arrow.read_bytes())
    place = raw.index(b"a b c d")
    raw[place : place + 1] = b"\xff"
    arrow.write_bytes(raw)
    corpus = Corpus.open([str(tmp_path / "saved")], max_words=2, warn=told.append)
    assert {corpus.draw(0, i).text for i in range(2)} == {"e"}
    assert len(told) == 1 and "can't be read" in told[0]
    (tmp_path / "plain").mkdir()
    with pytest.raises(UsageError, match="is no dataset folder"):
        Corpus.open([str(tmp_path / "plain")], max_words=2)
