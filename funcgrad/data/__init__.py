"""Data: readers of files, pipelines that make batches, transforms, text, and toy problems.

>>> import numpy as np
>>> import funcgrad as fg
>>> arrays = {"x": np.zeros((100, 3)), "y": np.arange(100) % 2}
>>> train, test = fg.data.random_split(fg.random.key(0), arrays, [0.8, 0.2])
>>> loader = fg.data.DataLoader(train, 32, key=fg.random.key(1))
>>> for epoch in range(2):
...     for batch in loader.iterate(epoch=epoch):
...         pass  # one training step

Written against the public names of funcgrad, so that nothing in it is out of the reach of users.
Inside: ``stages`` (what pipelines are made of), ``indexed`` (with items by number), ``streams``
(one item after the other), ``prefetching`` (the thread), ``dataset`` and ``loading`` (the public
face of these).
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from funcgrad.data import toys
    from funcgrad.data.augmenting import random_crop, random_flip
    from funcgrad.data.binary import parse_idx, read_cifar10, read_idx, read_npz
    from funcgrad.data.collating import collate
    from funcgrad.data.csvs import read_csv
    from funcgrad.data.dataset import Dataset
    from funcgrad.data.images import (
        ImageFiles,
        ImageFolder,
        list_image_folder,
        read_image,
        read_image_folder,
    )
    from funcgrad.data.loading import DataLoader, batch_iterator, random_split
    from funcgrad.data.opening import DataFormatError
    from funcgrad.data.regression import make_regression
    from funcgrad.data.scaling import Standardizer, one_hot, standardize
    from funcgrad.data.sequences import batchify, get_batch, pad_sequences
    from funcgrad.data.stages import DataIterator
    from funcgrad.data.text import Vocabulary, split_characters, split_words

__all__ = [
    "DataFormatError",
    "DataIterator",
    "DataLoader",
    "Dataset",
    "ImageFiles",
    "ImageFolder",
    "Standardizer",
    "Vocabulary",
    "batch_iterator",
    "batchify",
    "collate",
    "get_batch",
    "list_image_folder",
    "make_regression",
    "one_hot",
    "pad_sequences",
    "parse_idx",
    "random_crop",
    "random_flip",
    "random_split",
    "read_cifar10",
    "read_csv",
    "read_idx",
    "read_image",
    "read_image_folder",
    "read_npz",
    "split_characters",
    "split_words",
    "standardize",
    "toys",
]

# Names are loaded when they are first used; those that are not here are modules.
_MODULES = {
    "DataFormatError": "opening",
    "DataIterator": "stages",
    "DataLoader": "loading",
    "Dataset": "dataset",
    "ImageFiles": "images",
    "ImageFolder": "images",
    "Standardizer": "scaling",
    "Vocabulary": "text",
    "batch_iterator": "loading",
    "batchify": "sequences",
    "collate": "collating",
    "get_batch": "sequences",
    "list_image_folder": "images",
    "make_regression": "regression",
    "one_hot": "scaling",
    "pad_sequences": "sequences",
    "parse_idx": "binary",
    "random_crop": "augmenting",
    "random_flip": "augmenting",
    "random_split": "loading",
    "read_cifar10": "binary",
    "read_csv": "csvs",
    "read_idx": "binary",
    "read_image": "images",
    "read_image_folder": "images",
    "read_npz": "binary",
    "split_characters": "text",
    "split_words": "text",
    "standardize": "scaling",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'funcgrad.data' has no attribute {name!r}")
    module = importlib.import_module(f"funcgrad.data.{_MODULES.get(name, name)}")
    found = globals()[name] = getattr(module, name) if name in _MODULES else module
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
