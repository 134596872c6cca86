"""Fetches files with curl_cffi as described by JSON in its argument; see peers/__init__.py for the modes."""

import asyncio
import json
import pathlib
import sys

from curl_cffi import requests
from curl_cffi.const import CurlHttpVersion

ask = json.loads(sys.argv[1])
folder = pathlib.Path(ask["folder"])


def session(**more):
    return requests.AsyncSession(http_version=CurlHttpVersion.V3ONLY, verify=False, timeout=ask["seconds"], **more)


async def get(client, path, turns):
    async with turns:
        response = await client.get(f"https://{ask['authority']}/{path}")
    assert response.status_code == 200, f"status {response.status_code} for {path}"
    assert response.http_version == CurlHttpVersion.V3, f"HTTP version {response.http_version}"
    (folder / pathlib.Path(path).name).write_bytes(response.content)


async def main():
    mode, paths = ask["mode"], ask["paths"]
    turns = asyncio.Semaphore({"plain": 1, "many": 100, "separate": 10}[mode])
    if mode == "separate":

        async def alone(path):
            async with session(max_clients=1) as client:
                await get(client, path, turns)

        await asyncio.gather(*(alone(path) for path in paths))
    else:
        async with session(max_clients=100 if mode == "many" else 1) as client:
            await get(client, paths[0], turns)
            await asyncio.gather(*(get(client, path, turns) for path in paths[1:]))


asyncio.run(main())
