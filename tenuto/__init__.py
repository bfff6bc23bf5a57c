"""Tenuto: a deterministic, durable orchestrator and state keeper for AI coding agents.

    import tenuto
    repository = tenuto.open(".")

Names are loaded when they are first used: a hook imports this package and must not pay
for what it does not call.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenuto.errors import BadInput, Damaged, NotFound, Refused, SchemaSkew, TenutoError, Waiting
    from tenuto.repository import Repository
    from tenuto.repository import open_repository as open
    from tenuto.workspace.workspace import Turn, Workspace

__version__ = "0.1.0"
__all__ = [
    "BadInput",
    "Damaged",
    "NotFound",
    "Refused",
    "Repository",
    "SchemaSkew",
    "TenutoError",
    "Turn",
    "Waiting",
    "Workspace",
    "open",
]


def __getattr__(name: str) -> object:
    match name:
        case "open":
            from tenuto.repository import open_repository

            return open_repository
        case "Repository":
            from tenuto.repository import Repository

            return Repository
        case "Workspace":
            from tenuto.workspace.workspace import Workspace

            return Workspace
        case "Turn":
            from tenuto.workspace.workspace import Turn

            return Turn
    if name not in __all__:
        raise AttributeError(f"module 'tenuto' has no attribute {name!r}")
    from tenuto import errors

    return vars(errors)[name]
