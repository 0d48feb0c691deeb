# SPDX-License-Identifier: BSD-3-Clause
"""The system calls that a lab needs and this Python lacks, and the question whether the kernel grants them.

Everything raises OSError with the call's name, so that what is forbidden on a machine is said and not guessed.
"""
import ctypes
import os
import signal

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 2, 4, 8, 16384, 1 << 18
PR_SET_PDEATHSIG, PR_SET_NAME, PR_SET_DUMPABLE = 1, 15, 4

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name, *arguments):
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f'{name}: {os.strerror(number)}')


def unshare(flags):
    _call('unshare', ctypes.c_int(flags))


def setns(descriptor, flags):
    """Enters namespaces; with a pidfd several at once (Linux 5.8)."""
    _call('setns', ctypes.c_int(descriptor), ctypes.c_int(flags))


def mount(source, target, kind, flags=0, data=None):
    def encode(text):
        return None if text is None else text.encode()

    _call('mount', encode(source), encode(target), encode(kind), ctypes.c_ulong(flags), encode(data))


def set_hostname(name):
    _call('sethostname', name.encode(), ctypes.c_size_t(len(name.encode())))


def die_with_parent(death_signal=signal.SIGKILL):
    _call('prctl', ctypes.c_int(PR_SET_PDEATHSIG), ctypes.c_ulong(death_signal), 0, 0, 0)


def set_title(title):
    """The name that ps shows in its short form; 15 bytes of it."""
    _call('prctl', ctypes.c_int(PR_SET_NAME), title.encode()[:15], 0, 0, 0)


def become_root_of_user_namespace():
    """A new user namespace in which the caller is root: the way for an ordinary user."""
    uid, gid = os.getuid(), os.getgid()
    unshare(CLONE_NEWUSER)
    for name, text in (('setgroups', 'deny'), ('uid_map', f'0 {uid} 1'), ('gid_map', f'0 {gid} 1')):
        with open(f'/proc/self/{name}', 'w', encoding='ascii') as file:
            file.write(text)


def private_root(with_user_namespace):
    """Makes the caller's children live in new process and mount namespaces (in a new user namespace for an ordinary user).
    The next child of the caller is process 1 of the lab: when it dies the kernel kills everything else in it."""
    if with_user_namespace:
        become_root_of_user_namespace()
    unshare(CLONE_NEWPID | CLONE_NEWNS)


def _try(with_user_namespace):
    """Does in a child what a lab does first. Returns None or what was refused."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            private_root(with_user_namespace)
            grandchild = os.fork()
            if grandchild == 0:
                mount(None, '/', None, MS_REC | MS_PRIVATE)
                mount('proc', '/proc', 'proc', MS_NOSUID | MS_NODEV | MS_NOEXEC)
                unshare(CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNS)
                mount('tmpfs', '/run', 'tmpfs', MS_NOSUID | MS_NODEV)
                os._exit(0)
            status = os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1])
        except OSError as error:
            os.write(writer, str(error.strerror).encode())
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, 'rb') as pipe:
        text = pipe.read().decode()
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
        return None
    return text or 'refused'


def usable_mode():
    """('root', None), ('user', None) or (None, why not): how this process may make a lab."""
    reasons = []
    if os.geteuid() == 0:
        refused = _try(False)
        if refused is None:
            return 'root', None
        reasons.append(f'as root: {refused}')
    refused = _try(True)
    if refused is None:
        return 'user', None
    reasons.append(f'in a user namespace: {refused}')
    return None, '; '.join(reasons)
