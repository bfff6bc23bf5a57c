"""`tenuto hook EVENT < payload`, and `python -I -S .../hook.py EVENT < payload` for hosts that call it often.

As a script this file is compiled at each call, so it holds no more than the way to hooks/call.py.
"""

import gc
import sys


def main(words: list[str]) -> int:
    if words[:1] == ["declare"] or not words or "--help" in words or "-h" in words:
        from tenuto.entrypoints.hook_declare import for_people

        if for_people(words):
            return 0
    from tenuto.hooks.call import call

    return call(words)


if __name__ == "__main__":
    gc.disable()  # the process ends before there is anything to collect
    sys.path.append(__file__.rpartition("/tenuto/")[0])
    from tenuto.hooks.call import leave_with

    leave_with(main, sys.argv[1:])
