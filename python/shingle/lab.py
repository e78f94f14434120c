"""What a workload would cost under each scheme, and the figures of the papers, in simulation.

    from shingle import lab

    rows = lab.simulate(["adaptive", "leveled"], writes=10_000_000, value_size=1000)
    lab.frame(rows)

Everything runs on the engine's own schemes in virtual time, so the same call gives the same figures
on every machine. Answers are plain dictionaries and lists; ``frame`` makes a data frame of rows.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from typing import Any, Literal, Optional, Union

from . import _shingle
from ._types import Path

Row = dict[str, Any]
Names = Union[str, Iterable[str]]

__all__ = ["experiments", "frame", "run", "schemes", "simulate", "trace"]

_MIB = 1 << 20


def schemes() -> list[Row]:
    """The schemes: a dictionary each, with ``name``, ``summary``, ``help``, ``paper`` and the names of
    its ``options``."""
    return json.loads(_shingle.schemes())


def simulate(
    schemes: Names = (),
    *,
    writes: int = 10_000_000,
    key_size: int = 16,
    value_size: int = 100,
    keys: Literal["uniform", "zipf", "sequential"] = "uniform",
    keys_count: Optional[int] = None,
    memtable_bytes: int = 64 * _MIB,
    table_bytes: Optional[int] = None,
    fan_out: Optional[float] = None,
    reads_share: float = 0.0,
    scale: Optional[int] = None,
) -> list[Row]:
    """What schemes cost under ``writes`` of equal size, without data: a dictionary for each scheme.

    ``schemes`` is a name or several, all where there is none. ``keys`` are "uniform", "zipf" (0.99) or
    "sequential", drawn from ``keys_count``, as many as writes where it is None. Sizes are bytes.
    ``reads_share`` is the share of operations that are reads. One simulated record stands for
    ``scale`` records; where it is None, as many as give a table enough of them.
    """
    return json.loads(
        _shingle.simulate_schemes(
            _names(schemes),
            keys,
            writes,
            keys_count,
            key_size + value_size,
            memtable_bytes,
            table_bytes,
            fan_out,
            reads_share,
            scale,
        )
    )


def trace(
    path: Path,
    *,
    format: Optional[str] = None,
    goal: Literal["write", "read", "space", "time"] = "time",
    device: Literal["ssd", "hdd", "smr"] = "ssd",
    schemes: Optional[Names] = None,
    values: Names = ("inline", "log", "hashed"),
    fan_out: Sequence[float] = (4, 8, 10, 16, 25),
    value_threshold: int = 1024,
    memtable_bytes: int = 64 * _MIB,
    grow: int = 1,
    sample: int = 32_768,
) -> Row:
    """What a recorded workload is like, and what it would cost under each scheme, value layout and
    fan-out, as ``shingle lab trace`` says it.

    ``format`` is "shingle", "twitter", "rocksdb", "ycsb" or "redis", and is recognised by content
    where it is None. ``goal`` is what candidates are sorted by: "write", "read", "space" or "time" on
    ``device``: "ssd", "hdd" or "smr". ``grow`` multiplies keys and operations; ``sample`` is how many
    keys are simulated. The answer has ``reading``, ``summary``, ``candidates``, ``recommendation`` and
    ``remarks``.
    """
    return json.loads(
        _shingle.answer_trace(
            os.fspath(path),
            format,
            goal,
            device,
            None if schemes is None else _names(schemes),
            _names(values),
            [float(times) for times in fan_out],
            value_threshold,
            memtable_bytes,
            grow,
            sample,
        )
    )


def experiments() -> list[Row]:
    """The experiments, one for each figure and table of the papers: a dictionary each, with ``id``,
    ``figure``, ``title``, ``deviation``, ``systems`` and the ids of its ``claims``."""
    return json.loads(_shingle.experiments())


def run(
    ids: Names = "all",
    *,
    scale: Literal["smoke", "small", "paper"] = "smoke",
    seed: int = 1,
    threads: int = 2,
    progress: Optional[Callable[[int, int, str], object]] = None,
) -> Row:
    """Runs experiments on models of the papers' devices and holds the claims against them.

    ``ids`` are papers, experiments and claims, one or several. ``scale`` is "smoke" (a minute or two
    for all), "small" (tens of minutes) or "paper" (the published sizes). What is left to chance
    follows from ``seed``, 1 or more. ``progress(done, total, name)`` hears of each run that ended.
    The answer has ``claims`` with their verdicts, and ``metrics``: a dictionary for each run. An
    interrupt ends it after the runs in progress.
    """
    return json.loads(_shingle.run_experiments(_names(ids), scale, seed, threads, progress))


def frame(rows: Iterable[Row]) -> Any:
    """A data frame of ``rows``, of pandas or else of polars; the rows themselves where neither is
    installed. Dictionaries within rows become columns, named with a dot between."""
    flat = [_flat(row) for row in rows]
    if find_spec("pandas"):
        import pandas

        return pandas.DataFrame(flat)
    if find_spec("polars"):
        import polars

        return polars.DataFrame(flat, infer_schema_length=None)
    return flat


def _names(names: Names) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _flat(row: Row, before: str = "") -> Row:
    flat = {}
    for name, value in row.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{before}{name}."))
        else:
            flat[before + name] = value
    return flat
