"""The repository around the current folder, for a command that answers on standard output: no secret is said there."""

from __future__ import annotations

import sys

from tenuto.errors import TenutoError
from tenuto.workspace.open import open_workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.workspace.secrets import Secrecy
    from tenuto.workspace.turn import Workspace


def open_here(by: str = "user") -> Workspace:
    workspace = open_workspace(".", by=by)
    try:
        secrecy = workspace.secrecy
    except TenutoError:  # settings that cannot be read: whoever changes something is told so, whoever looks may look
        return workspace
    if secrecy is not None:
        veil(secrecy)
    return workspace


def veil_here() -> None:
    """The same for who has opened no repository, and may not open one any more."""
    from tenuto.workspace.locate import locate, main_root
    from tenuto.workspace.open import secrecy_of

    root, tree, state = locate(".")
    secrecy = secrecy_of(root, main_root(root, tree, state))
    if secrecy is not None:
        veil(secrecy)


def veil(secrecy: Secrecy) -> None:
    """From here on, whatever this process says: most of all what it repeats of what it was told."""
    from tenuto.entrypoints.veil import veiled

    sys.stdout, sys.stderr = veiled(sys.stdout, secrecy), veiled(sys.stderr, secrecy)
