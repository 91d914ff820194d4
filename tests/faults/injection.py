"""Make write and sync calls of a child fail, one by one: the kernel asks its parent about each.

A seccomp filter stops the child at each such call, and the parent says whether it goes on or fails, and
how. Unlike a tracer this needs no tool and no right, only Linux 5.8 on x86-64 or ARM64.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import select
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Never

NUMBERS: Mapping[str, Mapping[str, int]] = {
    "x86_64": {
        "seccomp": 317, "write": 1, "pwrite64": 18, "fsync": 74, "fdatasync": 75, "ftruncate": 77,
    },
    "aarch64": {
        "seccomp": 277, "write": 64, "pwrite64": 68, "fsync": 82, "fdatasync": 83, "ftruncate": 46,
    },
}  # fmt: skip
"""The numbers of the calls by machine; each of the calls takes a descriptor first."""
CHILD_LIMIT_SECONDS = 60.0

_PR_SET_NO_NEW_PRIVS, _SET_MODE_FILTER, _NEW_LISTENER = 38, 1, 8
_LOAD, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ASK = 0x7FFF0000, 0x7FC00000
_RECEIVE, _ANSWER, _GO_ON = 0xC0502100, 0xC0182101, 1
_QUESTION, _REPLY = struct.Struct("QIIiIQ6Q"), struct.Struct("QqiI")

Decide = Callable[[str, str], int]
"""Takes a call and the path of its file; returns 0 to let it go on, or the errno that it fails with."""


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort), ("then", ctypes.c_ubyte),
        ("otherwise", ctypes.c_ubyte), ("value", ctypes.c_uint),
    )  # fmt: skip


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("first", ctypes.POINTER(_Instruction)))


def missing() -> str | None:
    """Return why calls can't be made to fail here, None if they can."""
    if sys.platform != "linux" or platform.machine() not in NUMBERS:
        return "calls are made to fail on Linux on x86-64 and ARM64 alone"
    known = Path("/proc/sys/kernel/seccomp/actions_avail")
    if not known.exists() or "user_notif" not in known.read_text(encoding="ascii").split():
        return "this kernel can't ask a parent about calls; Linux 5.8 and newer can"
    return None


def run(child: Callable[[], object], decide: Decide) -> int:
    """Fork, run `child` there under `decide`, and return its exit code, negative for a signal.

    The caller has one thread. An exception of the child goes to standard error, and 1 is returned.
    Raise TimeoutError once it has run for CHILD_LIMIT_SECONDS.
    """
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        _be_child(child, theirs)
    theirs.close()
    with ours:
        _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
    try:
        if descriptors:
            _answer(descriptors[0], decide)
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _be_child(child: Callable[[], object], parent: socket.socket) -> Never:
    code = 1
    try:
        with parent:
            listener = _ask_about_calls()
            socket.send_fds(parent, [b"x"], [listener])
            os.close(listener)
        child()
        code = 0
    except BaseException:  # noqa: BLE001  a forked child must not return into its parent's code
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _ask_about_calls() -> int:
    """Stop this process, and the threads that it starts, at each call; return who is asked."""
    numbers = dict(NUMBERS[platform.machine()])
    seccomp = numbers.pop("seccomp")
    instructions = [_Instruction(_LOAD, 0, 0, 0)]
    for place, number in enumerate(numbers.values()):
        instructions.append(_Instruction(_IF_EQUAL, len(numbers) - place, 0, number))
    instructions += [_Instruction(_RETURN, 0, 0, _ALLOW), _Instruction(_RETURN, 0, 0, _ASK)]
    program = _Program(len(instructions), (_Instruction * len(instructions))(*instructions))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs can't be set")
    listener = libc.syscall(seccomp, _SET_MODE_FILTER, _NEW_LISTENER, ctypes.byref(program))
    if listener < 0:
        raise OSError(ctypes.get_errno(), "the kernel takes no filter of calls")
    return int(listener)


def _answer(listener: int, decide: Decide) -> None:
    """Answer until the child has ended."""
    calls = {number: name for name, number in NUMBERS[platform.machine()].items()}
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    deadline = time.monotonic() + CHILD_LIMIT_SECONDS
    while True:
        left = deadline - time.monotonic()
        events = poll.poll(left * 1000) if left > 0 else []
        if not events:
            raise TimeoutError(f"the child ran for {CHILD_LIMIT_SECONDS:.0f} s")
        if events[0][1] & select.POLLHUP:
            return
        try:
            question = bytearray(_QUESTION.size)
            fcntl.ioctl(listener, _RECEIVE, question)
            asked, thread, _, number, _, _, descriptor, *_ = _QUESTION.unpack(question)
            path = str(Path(f"/proc/{thread}/fd/{descriptor}").readlink())
            failure = decide(calls[number], path)
            go_on = 0 if failure else _GO_ON
            fcntl.ioctl(listener, _ANSWER, bytearray(_REPLY.pack(asked, 0, -failure, go_on)))
        except OSError as error:
            if error.errno != errno.ENOENT:  # the child died meanwhile, and the next poll says so
                raise
