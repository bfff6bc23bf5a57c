"""`tenuto hook EVENT < payload`, and `python -I -S .../hook.py EVENT < payload` for hosts that call it often.

As a script this file is compiled anew each time, so it holds no more than the way to hook_call.py.
"""

import gc
import sys


def main(words: list[str]) -> int:
    from tenuto.entrypoints.hook_call import call

    return call(words)


if __name__ == "__main__":
    gc.disable()  # the process ends before there is anything to collect
    root = __file__.rpartition("/tenuto/")[0]
    sys.path.append(root)
    from tenuto.entrypoints.image import install

    image = install(root, "hook")
    from tenuto.entrypoints.hook_call import call_and_leave

    call_and_leave(sys.argv[1:], image.save)
