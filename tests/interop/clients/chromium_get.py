"""Chromium fetches files over HTTP/3, as a page does: `chromium_get.py JSON`, the JSON object with `host`, `port`, `paths`,
`folder`, `seconds`, and `identity`, the folder with the server's `key.pem`."""

import base64
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import server  # noqa: E402
from peers import Ask, chromium  # noqa: E402


def main():
    wish = json.loads(sys.argv[1])
    folder = pathlib.Path(wish["folder"])
    ask = Ask(
        host=wish["host"], port=wish["port"], paths=wish["paths"], folder=folder, mode="plain", seconds=wish["seconds"],
        key_hash=server.key_hash(pathlib.Path(wish["identity"])), output=folder / "output.txt",
    )
    browser = chromium.Browser(ask)
    try:
        session = browser.page()
        # The page is that of status 404: its origin counts.
        browser.go(session, "page")
        found = browser.evaluate(session, f"{chromium.FETCH}({json.dumps(ask.paths)}, 6)")
    finally:
        browser.close()
    if found["protocols"] != ["h3"]:
        sys.exit(f"protocols: {found['protocols']}")
    for path, body in found["bodies"].items():
        (folder / pathlib.Path(path).name).write_bytes(base64.b64decode(body))


main()
