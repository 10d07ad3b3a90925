"""Tokens and vocabularies."""

import json
import pickle

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import errors
from funcgrad.data import Vocabulary, split_characters, split_words

TEXT = "the cat saw the dog and the dog saw a bird"


def test_words_and_punctuation():
    assert split_words("It's 3.5 <eos> naïve, N<unk>!") == [
        "It's", "3", ".", "5", "<eos>", "naïve", ",", "N", "<unk>", "!",
    ]  # fmt: skip
    assert split_words("A  B\n\tc", lower=True) == ["a", "b", "c"]
    assert split_words("") == []


def test_characters():
    assert split_characters("a é\n") == ["a", " ", "é", "\n"]


def test_frequent_tokens_come_first_then_in_order():
    vocabulary = Vocabulary.from_text(TEXT)
    assert vocabulary.tokens == (
        "<pad>", "<unk>", "the", "dog", "saw", "a", "and", "bird", "cat",
    )  # fmt: skip
    assert len(vocabulary) == 9
    assert vocabulary["dog"] == 3
    assert "dog" in vocabulary
    assert "cow" not in vocabulary
    assert list(vocabulary)[2] == "the"


def test_encode_and_decode_undo_each_other():
    for level in ("word", "character"):
        vocabulary = Vocabulary.from_text(TEXT, level=level)
        numbers = vocabulary.encode(TEXT)
        assert numbers.dtype == np.int64
        assert vocabulary.text(numbers) == TEXT


def test_tokens_can_be_given_split():
    vocabulary = Vocabulary.from_text([["a", "b"], ["b"]])
    assert vocabulary.tokens[2:] == ("b", "a")
    assert vocabulary.encode(["b", "a", "b"]).tolist() == [2, 3, 2]


def test_texts_can_be_several():
    assert Vocabulary.from_text(["ab", "b"], level="character").tokens[2:] == ("b", "a")


def test_unknown_tokens():
    vocabulary = Vocabulary.from_text(TEXT)
    assert vocabulary.encode("the cow").tolist() == [2, 1]
    assert vocabulary.decode([2, 1]) == ["the", "<unk>"]
    assert vocabulary["cow"] == 1


def test_unknown_tokens_are_errors_if_there_is_none():
    vocabulary = Vocabulary.from_text(TEXT, unknown=None)
    assert vocabulary.tokens[:2] == ("<pad>", "the")
    with pytest.raises(errors.ArgumentError, match=r"'cow' is not in the vocabulary\n.*token 1"):
        vocabulary.encode("the cow")


def test_padding_is_left_out_of_texts_only():
    vocabulary = Vocabulary.from_text(TEXT)
    assert vocabulary.decode([8, 0]) == ["cat", "<pad>"]
    assert vocabulary.text([8, 0, 0]) == "cat"


def test_size_frequency_and_special_tokens():
    vocabulary = Vocabulary.from_text(TEXT, max_size=6, special=["<eos>", "the"])
    assert vocabulary.tokens == ("<pad>", "<unk>", "<eos>", "the", "dog", "saw")
    assert Vocabulary.from_text(TEXT, min_count=2, padding=None).tokens == (
        "<unk>", "the", "dog", "saw",
    )  # fmt: skip


def test_vocabulary_goes_through_json_pickle_and_save(tmp_path):
    vocabulary = Vocabulary.from_text("naïve ☃", level="character", unknown=None)
    assert Vocabulary.from_json(json.loads(json.dumps(vocabulary.to_json()))) == vocabulary
    assert pickle.loads(pickle.dumps(vocabulary)) == vocabulary
    fg.save(tmp_path / "v.npz", vocabulary.to_json())
    assert Vocabulary.from_json(fg.load(tmp_path / "v.npz")) == vocabulary
    assert hash(Vocabulary(["a"])) == hash(Vocabulary(["a"]))
    assert Vocabulary(["a"]) != Vocabulary(["b"])


def test_order_of_tokens_is_kept_with_special_ones_among_them():
    assert Vocabulary(["a", "<unk>", "<pad>"]).tokens == ("a", "<unk>", "<pad>")
    assert Vocabulary(["a", "<unk>"]).tokens == ("<pad>", "a", "<unk>")


def test_vocabulary_does_not_change():
    with pytest.raises(AttributeError, match="does not change"):
        Vocabulary(["a"]).level = "character"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Vocabulary(["a", "a"]), "there twice: 'a'"),
        (lambda: Vocabulary(["a", 3]), "no string: int 3"),
        (lambda: Vocabulary(["a"], level="line"), "no level 'line'"),
        (lambda: Vocabulary.from_text("a", level="line"), "no level 'line'"),
        (lambda: Vocabulary.from_text(""), "no tokens"),
        (lambda: Vocabulary.from_text("a", max_size=1), "no room"),
        (lambda: Vocabulary.from_json({"tokens": []}), "no vocabulary"),
        (lambda: Vocabulary(["a"]).decode([0, 3]), r"3 is no token of 3\n.*numbers\[1\]"),
        (lambda: Vocabulary(["a"]).decode([-1]), "-1 is no token"),
        (lambda: Vocabulary(["a"]).decode([0.5]), "0.5 is no token"),
    ],
)
def test_arguments_that_make_no_sense(wrong, message):
    with pytest.raises(errors.ArgumentError, match=message):
        wrong()
