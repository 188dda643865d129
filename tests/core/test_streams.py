"""Streams: named, independent of models and recipes, and the same everywhere."""

import numpy as np

from fathometer.core.streams import seed_of, stream


def test_the_value_of_a_stream_is_fixed_for_good() -> None:
    assert seed_of("train", 0, "task", 1) == 664667998210634235
    assert stream("train", 0, "task", 1).integers(1000, size=3).tolist() == [947, 679, 611]


def test_every_part_of_the_name_matters() -> None:
    names = [("train", 0), ("train", 1), ("test", 0), ("train", 0, "a"), ("train", 0, "a", 1), ("train", 0, "a", 2)]
    assert len({seed_of(*name) for name in names}) == len(names)


def test_streams_do_not_overlap() -> None:
    one, two = stream("train", 0, "task", 1), stream("train", 0, "task", 2)
    assert abs(np.corrcoef(one.normal(size=10_000), two.normal(size=10_000))[0, 1]) < 0.05
