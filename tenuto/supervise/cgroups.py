"""cgroup v2, where this user may make one: a tree that nothing leaves by forking or daemonising.

A cgroup is chosen by name before it is made, so that the name can be on record first and a
crash leaves at most an empty directory. It adds to the walk over the process table and never
replaces it: a process that could not be put into its cgroup is found the other way.
"""

from __future__ import annotations

import os

from tenuto.supervise import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal


def choose() -> str | None:
    """The path of a new cgroup below our own; None where there is no cgroup v2 or no right to make one."""
    mount, root = _mount()
    own = _own()
    if mount is None or own is None:
        return None
    if root != "/" and (own + "/").startswith(root + "/"):
        own = own[len(root) :]
    home = os.path.join(mount, own.lstrip("/"))
    if not os.access(home, os.W_OK) or not os.access(os.path.join(home, "cgroup.procs"), os.W_OK):
        return None
    return os.path.join(home, f"tenuto-{os.urandom(6).hex()}")


def _mount() -> tuple[str | None, str]:
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                before, _, after = line.partition(" - ")
                if after.startswith("cgroup2 "):
                    root, mount = before.split()[3:5]
                    return mount.replace("\\040", " "), root
    except OSError:
        pass
    return None, "/"


def _own() -> str | None:
    try:
        with open("/proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                if line.startswith("0::"):
                    return line[3:].rstrip("\n")
    except OSError:
        pass
    return None


def make(path: str | None) -> bool:
    if path is None:
        return False
    try:
        os.mkdir(path)
    except OSError:
        return False
    if os.path.exists(os.path.join(path, "cgroup.kill")):
        return True
    remove(path)  # a kernel before 5.14: it could hold the tree but not end it
    return False


def fork_into(path: str) -> int:
    """os.fork, with the child in the cgroup; OSError where the kernel does not do it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return kernel.fork_into(descriptor, signal.SIGCHLD)
    finally:
        os.close(descriptor)


def members(path: str | None) -> list[int]:
    """The processes in the cgroup and in those below it."""
    if path is None:
        return []
    found: list[int] = []
    for folder, _, _ in os.walk(path):
        try:
            with open(os.path.join(folder, "cgroup.procs"), "rb") as file:
                found += [int(pid) for pid in file.read().split()]
        except OSError:
            continue
    return found


def populated(path: str | None) -> bool:
    """Does anything in it live? The kernel knows, also where who is listed is gone before anybody can look."""
    if path is None:
        return False
    try:
        with open(os.path.join(path, "cgroup.events"), "rb") as file:
            return b"populated 1" in file.read()
    except OSError:
        return False


def kill(path: str | None) -> None:
    """End all of it at once; even a process that is forking right now does not get away."""
    if path is None:
        return
    try:
        descriptor = os.open(os.path.join(path, "cgroup.kill"), os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.write(descriptor, b"1")
    except OSError:
        pass
    finally:
        os.close(descriptor)


def remove(path: str | None) -> None:
    if path is None:
        return
    for folder, _, _ in os.walk(path, topdown=False):
        try:
            os.rmdir(folder)
        except OSError:
            pass
