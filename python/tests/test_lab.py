"""Simulation from Python."""

import os
import signal
import time

import pytest
import shingle
from shingle import lab


def test_schemes_are_those_of_the_engine():
    by_name = {scheme["name"]: scheme for scheme in lab.schemes()}
    assert {"adaptive", "leveled", "ldc", "lwc", "sets"} <= set(by_name)
    assert "garbage_share" in by_name["adaptive"]["options"] and by_name["ldc"]["paper"]


def test_a_simulation_tells_schemes_apart_and_repeats():
    once, again = (
        lab.simulate(["adaptive", "leveled"], writes=15_000_000, keys_count=5_000_000, scale=64, memtable_bytes=4 << 20)
        for _ in range(2)
    )
    assert once == again
    adaptive, leveled = once
    assert adaptive["scheme"] == "adaptive" and leveled["scheme"] == "leveled"
    assert 1 < adaptive["write_amplification"] < leveled["write_amplification"]
    assert lab.simulate("adaptive", writes=100_000, keys="sequential")[0]["write_amplification"] < 1.1
    for wrong in (
        {"key_size": 0, "value_size": 0},
        {"writes": 2**63, "scale": 2**62},
        {"writes": 0},
        {"value_size": 2**62},
        {"memtable_bytes": 0},
        {"keys_count": 2**40, "scale": 2**30},
    ):
        with pytest.raises(shingle.InvalidArgument):
            lab.simulate(**{"schemes": "leveled", "writes": 10, **wrong})
    for wrong in ({"schemes": "none"}, {"keys": "random"}, {"fan_out": 1.0}, {"reads_share": 2.0}):
        with pytest.raises(shingle.InvalidArgument):
            lab.simulate(**{"schemes": "adaptive", "writes": 1000, **wrong})


def test_a_trace_is_answered(tmp_path):
    lines = (f"INSERT usertable user{n * 7919 % 5000} [ field0={'x' * 50} ]\n" for n in range(20_000))
    path = tmp_path / "load.ycsb"
    path.write_text("".join(lines))
    answer = lab.trace(path, schemes=["adaptive", "leveled"], goal="write", memtable_bytes=1 << 16)
    assert answer["reading"]["operations"] == 20_000 and answer["goal"] == "write"
    costs = [candidate["write_amplification"] for candidate in answer["candidates"]]
    assert len(costs) > 2 and costs == sorted(costs) and answer["recommendation"]
    with pytest.raises(shingle.InvalidArgument, match="goal"):
        lab.trace(path, goal="fun")
    with pytest.raises(shingle.NotFound, match="nowhere"):
        lab.trace(tmp_path / "nowhere")
    (tmp_path / "empty").write_text("")
    with pytest.raises(shingle.InvalidArgument, match="empty"):
        lab.trace(tmp_path / "empty")


def test_experiments_run_and_claims_have_verdicts():
    known = {experiment["id"]: experiment for experiment in lab.experiments()}
    assert len(known) > 40
    heard = []
    answer = lab.run("sealdb/fig03", scale="smoke", progress=lambda *step: heard.append(step))
    assert {claim["experiment"] for claim in answer["claims"]} == {"sealdb/fig03"}
    assert all(claim["verdict"] for claim in answer["claims"])
    assert answer["metrics"][0]["metrics"] and heard[-1][0] == heard[-1][1] == len(heard)
    again = lab.run("sealdb/fig03", scale="smoke", seed=2)
    assert again["metrics"][0]["metrics"] != answer["metrics"][0]["metrics"]
    with pytest.raises(shingle.InvalidArgument, match="seed"):
        lab.run("sealdb/fig03", scale="smoke", seed=0)
    with pytest.raises(shingle.InvalidArgument, match="nothing"):
        lab.run("nothing")
    with pytest.raises(ZeroDivisionError):
        lab.run("sealdb/fig03", scale="smoke", progress=lambda *step: 1 / 0)


def test_an_interrupt_ends_a_run():
    # A shell without a terminal starts programs in the background with the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    heard = []

    def interrupt(*step):
        heard.append(step)
        if len(heard) == 1:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.3)

    try:
        with pytest.raises(KeyboardInterrupt):
            lab.run("sealdb", scale="smoke", threads=1, progress=interrupt)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(heard) < heard[0][1]


def test_a_frame_has_the_rows():
    rows = [{"scheme": "adaptive", "metrics": {"load.wa": 2.0}}, {"scheme": "leveled", "metrics": {"load.wa": 3.0}}]
    made = lab.frame(rows)
    if isinstance(made, list):
        assert made[1] == {"scheme": "leveled", "metrics.load.wa": 3.0}
    else:
        assert list(made.columns) == ["scheme", "metrics.load.wa"] and list(made["metrics.load.wa"]) == [2.0, 3.0]
