"""Tenuto: a deterministic, durable orchestrator and state keeper for AI coding agents.

    import tenuto
    repository = tenuto.open(".")

Names are loaded when they are first used: a hook imports this package and must not pay
for what it does not call.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.errors import BadInput, Damaged, NotFound, Refused, SchemaSkew, TenutoError, Waiting
    from tenuto.workspace.open import open_workspace as open
    from tenuto.workspace.turn import Turn, Workspace

__version__ = "0.1.0"
__all__ = [
    "BadInput",
    "Damaged",
    "NotFound",
    "Refused",
    "SchemaSkew",
    "TenutoError",
    "Turn",
    "Waiting",
    "Workspace",
    "open",
]

_ELSEWHERE = {
    "open": ("tenuto.workspace.open", "open_workspace"),
    "Workspace": ("tenuto.workspace.turn", "Workspace"),
    "Turn": ("tenuto.workspace.turn", "Turn"),
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'tenuto' has no attribute {name!r}")
    module, attribute = _ELSEWHERE.get(name, ("tenuto.errors", name))
    return getattr(__import__(module, fromlist=[attribute]), attribute)
