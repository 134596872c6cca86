"""Fetches files with niquests as described by JSON in its argument; see peers/__init__.py for the modes."""

import concurrent.futures
import json
import pathlib
import sys

import niquests

ask = json.loads(sys.argv[1])
folder = pathlib.Path(ask["folder"])


def session(**more):
    made = niquests.Session(disable_http2=True, disable_http1=True, **more)
    made.quic_cache_layer.add_domain(ask["host"], ask["port"])
    return made


def keep(response, path):
    assert response.status_code == 200, f"status {response.status_code} for {path}"
    assert response.http_version == 30, f"HTTP version {response.http_version}"
    (folder / pathlib.Path(path).name).write_bytes(response.content)


def url(path):
    return f"https://{ask['authority']}/{path}"


def alone(path):
    with session() as client:
        keep(client.get(url(path), timeout=ask["seconds"], verify=False), path)


def main():
    mode, paths = ask["mode"], ask["paths"]
    if mode == "separate":
        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            list(pool.map(alone, paths))
        return
    with session(multiplexed=mode == "many") as client:
        at_a_time = 100 if mode == "many" else 1
        for first in range(0, len(paths), at_a_time):
            some = paths[first : first + at_a_time]
            responses = [client.get(url(path), timeout=ask["seconds"], verify=False) for path in some]
            if mode == "many":
                client.gather(*responses)
            for response, path in zip(responses, some):
                keep(response, path)


main()
