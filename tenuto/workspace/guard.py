"""Who decides: a person, an agent that Tenuto started, or a model inside an agent program.

    caller = who_calls()                      judged at the door: here, for a process with its surroundings
    caller = judge_process(pid)               the same for another process: the browser behind a request
    require_person(caller, what, command)     Refused for everybody but a person
    refuse_agents(caller, what)               Refused for agents that Tenuto started
    refuse_attempts(caller, state, what)      Refused for who works in an attempt of this repository

The door judges, and passes the caller on: a terminal and a hook look at their process, another door (a browser, a
remote terminal) brings its own proof that a person is there. Nothing behind the door looks at the process again.

An agent that Tenuto started is known by the supervisor above it, a model by what its program leaves in the
environment. This keeps mistakes out, not malice: a program of the same user can go around it (engine/gates.py says what
else there is).

The dialects' own commands (RESUME, update_user_checkpoint) are what a model calls to pass a user's word on, by their
seeds: there, only agents that Tenuto started are refused, and decisions that must be signed. That holds for runs that
are led by hand; where a pipeline is in force, these commands are no way around its gates.

Light enough for a hot command: a look at the processes above, when a decision is asked for.
"""

from __future__ import annotations

import posix

from tenuto.core.approvals import protection
from tenuto.errors import Refused
from tenuto.workspace.settings import gate_level, stricter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TypeAlias

    from tenuto.core.records.run import Json, Run

    Caller: TypeAlias = "Person | Supervised | Host"


_MARK = b"TENUTO_ATTEMPT"
_SUPERVISOR = b"tenuto/supervise/__main__.py"
_LONGEST = 1 << 21  # bytes of an environment: no kernel takes a longer one by default


class Person:
    """Somebody at a door: `door` says which, `proof` what the door knows of them beyond that."""

    __slots__ = ("door", "proof", "sees_all")

    def __init__(self, door: str = "terminal", proof: Json | None = None, sees_all: bool = True) -> None:
        self.door = door
        self.proof: Json = proof or {}
        self.sees_all = sees_all  # False: in a container, where the processes above are not all seen


class Supervised:
    """An agent that Tenuto started: `attempts` are the directories of its attempts, the innermost first. `known`:
    False where it may also be a person, and nobody can tell."""

    __slots__ = ("attempts", "known")

    def __init__(self, attempts: tuple[str, ...], known: bool = True) -> None:
        self.attempts = attempts
        self.known = known


class Host:
    """A model in a session of an agent program, which `mark`, a variable, gives away."""

    __slots__ = ("mark", "program")

    def __init__(self, program: str, mark: str) -> None:
        self.program = program
        self.mark = mark


def who_calls() -> Caller:
    """Judge this process by its surroundings."""
    attempts = tuple(_attempts_above())
    blind = not _text("/proc/self/stat")
    if attempts or _MARK in posix.environ or (blind and (posix.uname().sysname == "Linux" or _is_enclosed())):
        return Supervised(attempts)  # a Linux without /proc was made so: who cannot tell says no
    around = {
        name.decode("utf-8", "replace"): value.decode("utf-8", "replace") for name, value in posix.environ.items()
    }
    name = program(around)
    return Host(name, mark(around)) if name else Person(sees_all=_sees_all())


class Ancestor:
    """A process, as it stands in /proc."""

    __slots__ = ("command", "environment", "pid")

    def __init__(self, pid: int, command: bytes, environment: bytes) -> None:
        self.pid = pid
        self.command = command
        self.environment = environment


def judge_process(pid: int) -> Caller | None:
    """The same rule for a process that is not this one. None where its surroundings cannot be read.

    A browser writes its title over its own environment, so the environments of those above it count as well.
    """
    line = list(lineage(pid))
    if not line or not any(one.environment for one in line):
        return None
    attempts = [directory for one in line if (directory := _attempt_of(one.command))]
    found = [_variables(one.environment) for one in line]
    if attempts or any(_MARK.decode() in variables for variables in found):
        return Supervised(tuple(attempts))
    for variables in found:
        name = program(variables)
        if name:
            return Host(name, mark(variables))
    return Person("web")


def lineage(pid: int) -> Iterator[Ancestor]:
    """A process and those above it, up to the one that started the machine."""
    while True:  # however deep: one that was not looked at would pass for a person
        stat = _text(f"/proc/{pid}/stat")
        if pid <= 1 or not stat:
            return
        yield Ancestor(pid, _text(f"/proc/{pid}/cmdline"), _text(f"/proc/{pid}/environ", _LONGEST))
        pid = int(stat.rpartition(b")")[2].split()[1])


def _variables(environment: bytes) -> dict[str, str]:
    pairs = [variable.partition(b"=") for variable in environment.split(b"\0")]
    return {name.decode("utf-8", "replace"): value.decode("utf-8", "replace") for name, _, value in pairs}


def refuse_agents(caller: Caller, what: str, harmless: bool = False) -> None:
    """What an agent that Tenuto started may not do. `harmless`: it may be done by who could be one."""
    if isinstance(caller, Supervised) and not caller.known:
        if harmless:
            return
        message = f"Agents are at work here, and it cannot be told from inside this container who wants to {what}"
        raise Refused("agent-decides", message, "outside of it, or when no agent is at work")
    if isinstance(caller, Supervised):
        message = f"An agent cannot {what}: only a person can"
        raise Refused("agent-decides", message, "leave it to the person who runs Tenuto")


def require_person(caller: Caller, what: str, command: str) -> None:
    """What no agent may do: a model in a session of yours neither."""
    refuse_agents(caller, what)
    if isinstance(caller, Host):
        message = f"An agent ({caller.program}) cannot {what}: only a person can"
        hint = f"in a terminal of your own, without {caller.mark}: {command}"
        raise Refused("agent-decides", message, hint, agent=caller.program)


def is_in_attempt(caller: Caller, state: str) -> bool:
    """Of this very repository, whose state that is."""
    return isinstance(caller, Supervised) and any(
        directory.startswith(f"{state}/attempts/") for directory in caller.attempts
    )


def refuse_attempts(caller: Caller, state: str, what: str) -> None:
    """What an agent may not do from inside an attempt of this repository; elsewhere it may be its very work."""
    if is_in_attempt(caller, state):
        message = f"An agent cannot {what}: it works in an attempt that somebody else leads"
        raise Refused("agent-leads", message, "do what your own prompt asks for, and end with its verdict")


def decision_by_hand(caller: Caller, root: str, state: str, what: str, gate: bool, run: Run) -> Json:
    """A decision through a dialect's own command. The proof to record with it; Refused where a signature is needed."""
    if run["driver"] == "manual":
        refuse_agents(caller, what)
    else:
        require_person(caller, what, f"tenuto {'approve' if gate else 'resume'} {run['id']}")
    level = stricter(protection(run)["level"], gate_level(root, state))
    if gate and level == "signed":
        raise Refused(
            "not-signed", "Decisions in this repository are signed", "tenuto approve RUN --sign-with KEY --as NAME"
        )
    return {"level": level, **(caller.proof if isinstance(caller, Person) else {})}


def _attempts_above() -> Iterator[str]:
    """The directories of the attempts that this process runs in, the innermost first."""
    pid = posix.getppid()
    while True:  # however deep: one that was not looked at would pass for a person
        stat, command = _text(f"/proc/{pid}/stat"), _text(f"/proc/{pid}/cmdline")
        if pid <= 1 or not stat:
            return
        directory = _attempt_of(command)
        if directory:
            yield directory
        pid = int(stat.rpartition(b")")[2].split()[1])


def _attempt_of(command: bytes) -> str:
    """The directory of the attempt that a process with this command line owns; "" where it is no supervisor."""
    arguments = command.split(b"\0")
    if len(arguments) > 4 and arguments[3].endswith(_SUPERVISOR):
        return arguments[4].decode("utf-8", "surrogateescape")
    return ""


def here(caller: Caller, state: str) -> Caller:
    """The same, for this repository: where not all processes above are seen, and agents are at work, one of them may
    be. That is so in a PID namespace, which an agent can make for itself."""
    if isinstance(caller, Person) and not caller.sees_all and _is_somebody_at_work(state):
        return Supervised((), known=False)
    return caller


def _sees_all() -> bool:
    """Is this the machine's own PID namespace? Its number is the same everywhere."""
    try:
        return posix.readlink("/proc/self/ns/pid") == "pid:[4026531836]"
    except OSError:
        return posix.uname().sysname != "Linux"


def _is_somebody_at_work(state: str) -> bool:
    from glob import iglob

    from tenuto.supervise.attempts import inspect

    starts = iglob(f"{state}/attempts/*/*/[0-9]*/")
    return any(inspect(start.rstrip("/"))["state"] in ("queued", "running", "launching") for start in starts)


def _is_enclosed() -> bool:
    """Where there is no /proc: the slower way, which asks ps."""
    from tenuto.supervise.attempts import enclosing_attempt

    return enclosing_attempt() is not None


def _text(path: str, most: int = 1 << 16) -> bytes:
    try:
        file = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return posix.read(file, most)
    except OSError:
        return b""
    finally:
        posix.close(file)


# Programs say so to what they start.
_PROGRAMS = {
    "CLAUDECODE": "Claude Code",
    "CODEX_THREAD_ID": "Codex",
    "CODEX_SANDBOX": "Codex",
    "GEMINI_CLI": "Gemini",
    "COPILOT_AGENT_SESSION_ID": "Copilot",
    "OPENCODE": "OpenCode",
    "CURSOR_AGENT": "Cursor",
    "QWEN_CODE": "Qwen Code",
    "GOOSE_TERMINAL": "Goose",
    "AI_AGENT": "a program that says so",
}
_SESSIONS = ("CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID", "GEMINI_SESSION_ID", "COPILOT_AGENT_SESSION_ID")


def mark(environment: Mapping[str, str]) -> str:
    """The variable that tells; "" where a person, or a script of theirs, started this."""
    return next((variable for variable in _PROGRAMS if environment.get(variable)), "")


def program(environment: Mapping[str, str]) -> str:
    """The program's name; "" where there is no mark of one."""
    return _PROGRAMS.get(mark(environment), "")


def session(environment: Mapping[str, str]) -> str:
    """The session inside it, where it is told; "" where not."""
    return next((environment[variable] for variable in _SESSIONS if environment.get(variable)), "")
