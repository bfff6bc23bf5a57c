"""python -I -S .../tenuto/supervise/__main__.py DIRECTORY: supervise the attempt in DIRECTORY.

A script is compiled at every start, a module only once: so this file holds next to nothing.
"""

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from tenuto.supervise.supervisor import main

    os._exit(main(sys.argv[1]))
