"""How git is started: with settings, an environment and a program that no repository and no agent chooses.

    start(root, *questions)      processes of git, at the same time, and their answers
    make_repository(root)        a new one, in a folder that is in none
    repository_of(root)          where git's own files lie for a folder; None where there is no repository
    is_allowed(root, name)       may this filter of the user's run? (git-filters, see below)

Only files/git.py and files/git_remote.py call this.

The repository's own configuration can name programs (fsmonitor, filters, drivers of diff and merge, hooks, helpers,
included files), and every agent can write to it. The user's configuration can, too, and an agent of the same user can
write to it just so. So git reads neither. Each call gets a stand-in for the common directory (GIT_COMMON_DIR), made by
us, where objects, refs and all the rest are links to the real ones, `config` holds only settings that say what the
repository is (_OF_REPOSITORY), `user` only what the user's and the machine's settings say about names, line ends and
ignored files (_OF_USER), and hooks and info/attributes are left out. A list of what is dangerous would have to grow
with every version of git; these lists do not.

A filter of the user's (git-lfs, git-crypt) runs only if it stands in a file of their own, outside every repository:
`git-filters` in the folder `tenuto` of the user's settings (~/.config), in the form of git's own settings. Of that file
nothing but filters is taken. Beside it lies `git-remotes`: what reaches another machine takes credential helpers,
proxies, other addresses and another ssh from there, and nothing else.

GIT_DIR and GIT_WORK_TREE are told, too: git looks for no repository of its own, and a repository that belongs to
somebody else (a folder mounted into a container) is read as any other, since nothing of it can run.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import stat
import subprocess
import tempfile
import threading
from typing import NamedTuple

from tenuto.errors import Refused
from tenuto.files.git_links import git_directory, path_in
from tenuto.files.planted import read_plain

NOT_STARTED = 127  # the status where the program itself could not be started
OUT_OF_TIME = 124  # the status where it took too long
_LONGEST = 900.0  # seconds, where nothing else is said: whatever git waits for there is not coming
TRANSPORTS = "file:git:http:https:ssh"
NO_REPOSITORY = 128  # git's own, where there is no repository
FILTERS = "git-filters"
REMOTES = "git-remotes"

_ALWAYS = tuple(
    word
    for setting in (
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "core.untrackedCache=false",
        "safe.bareRepository=explicit",
        "diff.ignoreSubmodules=dirty",
        "commit.gpgSign=false",
        "core.quotePath=false",
        "gc.auto=0",
        "maintenance.auto=false",
        "core.fsync=committed,index,reference",
        "advice.detachedHead=false",
        "merge.renames=true",
        "protocol.ext.allow=never",
        "submodule.recurse=false",
    )
    for word in ("-c", setting)
)
# Who the user is. Nothing that says which repository, which settings or which program.
_KNOWN = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")
# Where the user's settings lie: for the one call that reads them.
_PLACES = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
HOOK_GUARD = "TENUTO_HOOK"
"""Set for what a hook starts: a hook that finds it set was called by a hook, and only says what may be done."""
_PROGRAMS = ("PAGER", "EDITOR", "VISUAL", "SSH_ASKPASS")

# Keys of the repository's configuration that git is told: what kind of repository it is, and who commits.
_OF_REPOSITORY = re.compile(
    r"core\.(repositoryformatversion|filemode|ignorecase|precomposeunicode|symlinks|autocrlf|eol|bigfilethreshold"
    r"|sparsecheckout|sparsecheckoutcone)|index\.sparse|extensions\.(?!worktreeconfig$)[a-z]+"
    r"|(user|author|committer)\.(name|email)|remote\..+\.(url|pushurl|fetch|promisor|partialclonefilter)"
)
_OF_USER = re.compile(
    r"core\.(autocrlf|eol|excludesfile|precomposeunicode)|init\.defaultbranch|(user|author|committer)\.(name|email)"
)
_OF_FILTERS = re.compile(r"filter\..+\.(clean|smudge|process|required)")
_OF_REMOTES = re.compile(
    r"credential(\..+)?\.(helper|username|usehttppath)|url\..+\.(insteadof|pushinsteadof)"
    r"|http(\..+)?\.(proxy|sslcainfo)|core\.sshcommand|ssh\.variant"
)
_OWN = ("config", "config.worktree", "hooks", "info")  # entries of a common directory that the stand-in has of its own


class Repository(NamedTuple):
    tree: str  # the top of the work tree
    own: str  # its git directory
    common: str  # what the work trees of a repository share


class Answer:
    __slots__ = ("errors", "out", "status")

    def __init__(self, status: int, out: bytes, errors: bytes) -> None:
        self.status = status
        self.out = out.decode("utf-8", "surrogateescape")
        self.errors = errors.decode("utf-8", "replace").strip()


# git directory -> what its stand-in was made from, where it lies, and the list of ignored files that it has a copy of
_stand_ins: dict[str, tuple[object, str, str]] = {}
_making = threading.Lock()


# ---- which repository


def repository_of(root: str) -> Repository | None:
    """Of the work tree that this folder lies in. Git looks upwards: for a folder .git, or a file that names one."""
    folder = os.path.realpath(root)
    while True:
        path = f"{folder.rstrip('/')}/.git"
        own = ""
        if os.path.isdir(path):
            own = path
        elif os.path.isfile(path):
            own = git_directory(folder)
        if own and os.path.lexists(f"{own}/HEAD"):
            return Repository(folder, own, os.path.realpath(os.path.join(own, path_in(f"{own}/commondir") or ".")))
        if folder == "/":
            return None
        folder = os.path.dirname(folder)


# ---- the stand-in


def _stand_in(repository: Repository) -> str:
    """Where the stand-in for this repository's common directory lies."""
    common = repository.common
    settings = [f"{common}/config", f"{repository.own}/config.worktree"]
    entries = sorted(os.listdir(common))
    stamps = [_stamp(path) for path in (*settings, *_user_files(), *_user_lists())]
    with _making:
        known, place, listed = _stand_ins.get(repository.own, (None, "", ""))
        stamp = (repository, entries, stamps, _stamp(listed))
        if known != stamp or not os.path.isfile(f"{place}/user"):
            place = place if os.path.isdir(place) else _new_folder()
            listed = _make_stand_in(repository, entries, settings, place)
            _stand_ins[repository.own] = ((repository, entries, stamps, _stamp(listed)), place, listed)
        return place


def _new_folder() -> str:
    place, maker = tempfile.mkdtemp(prefix="tenuto-git-"), os.getpid()

    def remove() -> None:
        if os.getpid() == maker:
            shutil.rmtree(place, ignore_errors=True)

    atexit.register(remove)
    return place


def _make_stand_in(repository: Repository, entries: list[str], settings: list[str], place: str) -> str:
    """The path of the list of ignored files that it has a copy of."""
    common = repository.common
    for name in os.listdir(place):
        path = f"{place}/{name}"
        shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
    os.makedirs(f"{common}/logs", exist_ok=True)  # a folder that git would make in the stand-in would be lost
    for name in dict.fromkeys([*entries, "logs", "packed-refs", "worktrees"]):
        if name not in _OWN:
            os.symlink(f"{common}/{name}", f"{place}/{name}")
    os.mkdir(f"{place}/info")
    for name in ("exclude", "sparse-checkout"):
        os.symlink(f"{common}/info/{name}", f"{place}/info/{name}")
    _write(f"{place}/config", "".join(_taken_over(path, _OF_REPOSITORY, repository.tree) for path in settings))
    ignored, attributes = _user_lists()
    _write(f"{place}/attributes", _plain_text(attributes))
    users = _users_settings(repository, place)
    listed = _named_list(users) or ignored
    _write(f"{place}/ignore", _plain_text(listed))
    own = f'[core]\n\texcludesFile = "{_escaped(place)}/ignore"\n\tattributesFile = "{_escaped(place)}/attributes"\n'
    _write(f"{place}/user", users + own + _filters(repository.tree))
    return listed


def _named_list(settings: str) -> str:
    """The file of ignored names that the user's settings name; "" where they name none."""
    found = re.findall(r"(?m)^\[core\]\n\texcludesfile = \"(.*)\"$", settings)
    path = re.sub(r"\\(.)", r"\1", found[-1]) if found else ""
    return os.path.expanduser(path)


def _user_lists() -> tuple[str, str]:
    """The user's own list of ignored files, and of attributes, where their settings name no other."""
    folder = f"{os.environ.get('XDG_CONFIG_HOME') or os.environ.get('HOME', '/') + '/.config'}/git"
    return f"{folder}/ignore", f"{folder}/attributes"


def _plain_text(path: str) -> str:
    """Copied: git would wait for a pipe in its place."""
    return (read_plain(path) or b"").decode("utf-8", "surrogateescape")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)


def _taken_over(path: str, wanted: re.Pattern[str], tree: str) -> str:
    """Of one file of settings, what git is told, as a file of settings. No included file is read."""
    if not os.path.isfile(path):
        return ""
    return "".join(_setting(entry) for entry in _entries(path, tree) if wanted.fullmatch(entry.partition("\n")[0]))


def _entries(path: str, tree: str) -> list[str]:
    words = ("config", "--file", path, "--no-includes", "--list", "-z")
    listed = _run("/", _environment(tree, {}), words)[0]
    if listed.status != 0:
        raise Refused("git-failed", f"git cannot read {path}: {listed.errors}", "correct it, and run again", path=path)
    return listed.out.split("\0")


def _users_settings(repository: Repository, place: str) -> str:
    """Of what stands in the settings of the user and of the machine, and in what these include."""
    more = {name: os.environ[name] for name in _PLACES if name in os.environ}
    environment = _environment(repository.tree, {**more, **_told(repository, place)})
    words = ("config", "--includes", "--list", "--show-scope", "-z")
    listed = _run(repository.tree, environment, words)[0]
    if listed.status == NOT_STARTED:
        return ""
    if listed.status != 0:
        raise Refused("git-failed", f"git cannot read your settings: {listed.errors}", "git config --list")
    entries = listed.out.split("\0")
    pairs = zip(entries[::2], entries[1::2], strict=False)
    return "".join(
        _setting(entry)
        for scope, entry in pairs
        if scope in ("system", "global") and _OF_USER.fullmatch(entry.partition("\n")[0])
    )


def _setting(entry: str) -> str:
    key, given, value = entry.partition("\n")
    section, _, name = key.rpartition(".")
    head, _, rest = section.partition(".")
    title = f'{head} "{_escaped(rest)}"' if rest else head
    return f"[{title}]\n\t{name}{f' = {chr(34)}{_escaped(value)}{chr(34)}' if given else ''}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _user_files() -> list[str]:
    home = os.environ.get("HOME", "/")
    places = os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    return [
        os.environ.get("GIT_CONFIG_GLOBAL") or f"{home}/.gitconfig",
        f"{places}/git/config",
        os.environ.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig",
        filters_file(),
    ]


def _stamp(path: str) -> tuple[int, ...]:
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def ignored_by_user(root: str) -> str:
    """The user's own list of ignored files."""
    repository = repository_of(root)
    if repository is None:
        return ""
    try:
        _stand_in(repository)
    except (Refused, OSError):
        pass  # the repository's settings cannot be read: the list is another matter
    return _plain_text(_stand_ins[repository.own][2]) if repository.own in _stand_ins else ""


# ---- filters that the user allows


def filters_file() -> str:
    """Outside every repository: where the user's own settings lie."""
    return _own_file(FILTERS)


def remotes_file() -> str:
    return _own_file(REMOTES)


def _own_file(name: str) -> str:
    home = os.environ.get("HOME", "/")
    return f"{os.environ.get('XDG_CONFIG_HOME') or f'{home}/.config'}/tenuto/{name}"


def _filters(tree: str) -> str:
    return _taken_over(filters_file(), _OF_FILTERS, tree) if _is_own(filters_file()) else ""


def remote_words(tree: str) -> list[str]:
    """For a call that reaches another machine: the settings in the user's own file, as words of the command line."""
    path = remotes_file()
    if not _is_own(path):
        return []
    entries = [entry.partition("\n") for entry in _entries(path, tree)]
    return [word for key, _, value in entries if _OF_REMOTES.fullmatch(key) for word in ("-c", f"{key}={value}")]


def _is_own(path: str) -> bool:
    """False where it is not there."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    if not stat.S_ISREG(found.st_mode) or found.st_uid not in (0, os.geteuid()) or found.st_mode & 0o022:
        message = f"{path} names programs that git may run, and others could have written it"
        raise Refused("filters-not-safe", message, f"it must be a file of yours: chmod go-w {path}", path=path)
    return True


def is_allowed(root: str, name: str) -> bool:
    return f'[filter "{_escaped(name)}"]\n' in _filters(root)


# ---- processes


def start(
    root: str,
    *questions: tuple[str, ...],
    given: str = "",
    index: str = "",
    seconds: float | None = None,
    transfers: bool = False,
) -> list[Answer]:
    """Several at the same time: most of what a short one takes is its start. `index`: another one than the
    repository's. `seconds`: after which it is ended. `transfers`: to or from a repository that a person has named;
    nothing else may start ssh or a helper."""
    repository = repository_of(root)
    if repository is None:
        return [Answer(NO_REPOSITORY, b"", f"{root} is no git repository".encode()) for _ in questions]
    try:
        told = _told(repository, _stand_in(repository))
    except (Refused, OSError) as problem:
        return [Answer(NOT_STARTED, b"", str(getattr(problem, "message", problem)).encode()) for _ in questions]
    if index:
        told["GIT_INDEX_FILE"] = index
    if transfers:
        told["GIT_ALLOW_PROTOCOL"] = TRANSPORTS
    return _run(root, _environment(repository.tree, told), *questions, given=given, seconds=seconds)


def make_repository(root: str) -> Answer:
    """Where there is none yet there is nothing to stand in for: git takes no settings and no template at all."""
    told = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return _run(root, _environment(root, told), ("init", "--quiet", "--template=", "--initial-branch=main", root))[0]


def version() -> str:
    """What git says of itself; "" where there is none."""
    repository = repository_of(".")
    answer = _run("/", _environment(repository.tree if repository else os.getcwd(), {}), ("--version",))[0]
    return answer.out.strip() if answer.status == 0 else ""


def _told(repository: Repository, place: str) -> dict[str, str]:
    return {
        "GIT_DIR": repository.own,
        "GIT_WORK_TREE": repository.tree,
        "GIT_COMMON_DIR": place,
        "GIT_CONFIG_GLOBAL": f"{place}/user",
        "GIT_CONFIG_NOSYSTEM": "1",
    }


def _environment(tree: str, more: dict[str, str]) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if (not name.startswith("GIT_") or name in _KNOWN) and name not in _PROGRAMS
    }
    fixed = {
        "PATH": os.pathsep.join(program_folders(tree)),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "GIT_PAGER": "cat",
        "GIT_EDITOR": "true",
        "GIT_ALLOW_PROTOCOL": "none",  # but for git_remote.py: ssh, helpers and proxies are programs, too
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",  # a replaced object would hide a change
        HOOK_GUARD: "1",  # whatever stands in git's place may call our hooks, and these would start git
        "GIT_LITERAL_PATHSPECS": "0",
        "LC_ALL": "C",
    }
    return {**kept, **fixed, **more}


def program_folders(tree: str) -> list[str]:
    """Where programs of ours are looked for: what PATH names, the work tree and relative places left out."""
    top = os.path.realpath(tree).rstrip("/")
    folders = (os.environ.get("PATH") or os.defpath).split(os.pathsep)
    return [
        folder
        for folder in folders
        if folder.startswith("/") and not (top and f"{os.path.realpath(folder)}/".startswith(f"{top}/"))
    ]


def _run(
    folder: str, environment: dict[str, str], *questions: tuple[str, ...], given: str = "", seconds: float | None = None
) -> list[Answer]:
    program = shutil.which("git", path=environment["PATH"]) if environment["PATH"] else None
    if program is None:
        return [Answer(NOT_STARTED, b"", b"git is not installed") for _ in questions]
    pipe = subprocess.PIPE
    begun: list[subprocess.Popen[bytes]] = []
    try:
        for words in questions:
            command = [program, *_ALWAYS, *words]
            begun.append(subprocess.Popen(command, cwd=folder, env=environment, stdin=pipe, stdout=pipe, stderr=pipe))
    except OSError as error:
        for process in begun:
            process.communicate()
        return [Answer(NOT_STARTED, b"", str(error).encode()) for _ in questions]
    return [_answer(process, given.encode("utf-8", "surrogateescape"), seconds) for process in begun]


def _answer(process: subprocess.Popen[bytes], given: bytes, seconds: float | None) -> Answer:
    try:
        out, errors = process.communicate(given, timeout=seconds or _LONGEST)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return Answer(OUT_OF_TIME, b"", b"it took too long")
    return Answer(process.returncode, out, errors)
