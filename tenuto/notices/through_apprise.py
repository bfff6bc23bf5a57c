"""Started by delivery.py: sends one notice through apprise, whose services are many and whose modules are heavy.

Gets {address, title, body, kind} as JSON on standard input. Ends with 0 when the service has taken it; else says why on
standard error. It imports nothing of Tenuto, and reads no configuration but the one address.
"""

from __future__ import annotations

import json
import logging
import sys


def main() -> int:
    import apprise

    asked = json.load(sys.stdin)
    logging.basicConfig(stream=sys.stderr, format="%(message)s", level=logging.WARNING)
    # A notice is text of agents and of people: nothing in it is markup, an escape sequence or an emoji's name.
    asset = apprise.AppriseAsset(
        app_id="Tenuto", app_desc="", app_url="", interpret_escapes=False, interpret_emojis=False
    )
    sender = apprise.Apprise(asset=asset)
    if not sender.add(asked["address"]):
        print("apprise does not understand this address", file=sys.stderr)
        return 1
    sent = sender.notify(
        title=asked["title"], body=asked["body"], notify_type=asked["kind"], body_format=apprise.NotifyFormat.TEXT
    )
    return 0 if sent else 1


if __name__ == "__main__":
    sys.exit(main())
