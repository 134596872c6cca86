"""The package runs the program, and its results are the program's."""

import gzip
import json
import pathlib
import subprocess

import pytest

import lastbyte

NOTEBOOK = pathlib.Path(__file__).parents[1] / "examples/four-arms.ipynb"


def test_simulations_are_those_of_the_command():
    transfer = lastbyte.simulate("vdsl", "cubic", size="200kB", seed=7)
    words = ["sim", "--json", "--network", "vdsl", "--arm", "cubic", "--size", "200kB", "--seed", "7"]
    done = subprocess.run([lastbyte.program(), *words], capture_output=True, check=True)
    assert [transfer] == json.loads(done.stdout)
    assert (transfer["arm"], transfer["size_bytes"]) == ("cubic", 200_000)
    path = {"rate": "10Mb/s", "rtt": "100ms"}
    slow = lastbyte.simulate(path, "cubic", size="200kB", time_limit="9s", tls=True, ecn=False)
    assert slow["ttlb_ms"] > transfer["ttlb_ms"]
    assert slow["path_rtt_ms"] == 100


def test_wrong_arguments_are_errors_of_the_program(tmp_path):
    with pytest.raises(lastbyte.Error, match="unknown congestion control `x`"):
        lastbyte.simulate("vdsl", "x")
    with pytest.raises(lastbyte.Error, match="unexpected argument '--sizes'"):
        lastbyte.simulate("vdsl", sizes="1MB")
    with pytest.raises(lastbyte.Error, match="2 transfers"):
        lastbyte.simulate("vdsl", size=["1MB", "2MB"])
    with pytest.raises(lastbyte.Error, match="absent"):
        lastbyte.read_log(tmp_path / "absent")
    with pytest.raises(lastbyte.Error, match="no files"):
        lastbyte.read_log([])


def test_experiments_and_populations_are_frames():
    log = lastbyte.experiment(arms=["slow-start", "rapid-start"], connections=20, seed=3, size="20kB")
    assert list(log["arm"].value_counts()) == [10, 10]
    assert {"ttlb", "link.rate", "site"} <= set(log.columns)
    paths = lastbyte.population(connections=15, seed=3, size="20kB")
    assert len(paths) == 15
    assert {"seed", "site", "class", "content_length", "link.rate", "link.rtt"} <= set(paths.columns)
    assert not [key for key in paths.columns if key == "ttlb" or "drops" in key]
    # The same seed draws the same paths.
    again = lastbyte.population(connections=15, seed=3, size="20kB")
    assert paths.equals(again)
    assert set(log["link.rate"]) <= set(paths["link.rate"])


def test_logs_are_frames_and_queries_are_lists(tmp_path):
    rows = [{"arm": "a", "ttlb": 1}, {"arm": "b", "ttlb": None}, {"arm": "a", "ttlb": 3.5}]
    path = tmp_path / "-log.ndjson.gz"
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()))
    frame = lastbyte.read_log(path)
    assert list(frame["arm"]) == ["a", "b", "a"] and frame["ttlb"].sum() == 4.5
    assert len(lastbyte.read_log([path, path], where='_["arm"] == "a"')) == 4
    query = 'select(slow(_)) >> group_by(_["arm"]) { count() }'
    helpers = tmp_path / "h.rb"
    helpers.write_text('def slow(row) row["ttlb"] end\n')
    assert lastbyte.query(query, path, helpers=[helpers]) == [{"a": 2}]


def test_the_notebook_draws_the_numbers_of_the_report(tmp_path, monkeypatch):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    monkeypatch.setenv("CONNECTIONS", "240")
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell("print(changes.to_json())"))
    nbclient.NotebookClient(notebook, timeout=300).execute()
    shown = json.loads(notebook.cells[-1].outputs[0].text)
    pictures = [out for cell in notebook.cells for out in cell.get("outputs", []) if "image/png" in out.get("data", {})]
    assert len(pictures) == 1
    folder = tmp_path / "ab"
    program = lastbyte.program()
    words = ["ab", "--connections", "240", "--seed", "1", "--unpaired", "--out", folder]
    subprocess.run([program, *words], capture_output=True, check=True)
    words = ["report", "--json", "--resamples", "100", "-o", tmp_path / "page.html", folder / "conns.ndjson"]
    done = subprocess.run([program, *words], capture_output=True, check=True)
    arms = json.loads(done.stdout)["groups"][0]["arms"]
    compared = 0
    for arm in arms[1:]:
        estimates = [one and one[0] for one in arm["changes_estimate_alone_together"]]
        for estimate, ours in zip(estimates, shown[arm["arm"]].values(), strict=True):
            if estimate is not None and ours is not None:
                assert abs(estimate - ours) < 1e-9
                compared += 1
    assert compared > 200
