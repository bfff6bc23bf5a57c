"""`python -m tenuto`: the same as the program `tenuto`."""

from __future__ import annotations

from tenuto.entrypoints.launch import main

main()
