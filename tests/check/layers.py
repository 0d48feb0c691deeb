#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fails when an include runs against the architecture, an outside library leaves its home, or a file or folder is too long.

Run by `meson test` on every build. The rules are the two tables below; they restate doc/architecture.md (layout), so a change of
one is a change of the other. Only the text of the tree is read, nothing is built: an arrow that runs the wrong way shows here
before it becomes a habit.
"""
import collections
import os
import re
import sys
import tempfile

MAX_LINES = 1000
MAX_FILES = 30  # of a folder
FOLDERS = ('base', 'proto', 'daemon', 'client', 'launcher', 'tests', 'bench', 'examples', 'conf')
CODE = ('.c', '.h', '.py', '.proto', '.promela', '.pml', '.sh', '.build', '.in', '.api', '.1', '.5', '.8')
SKIPPED = {'__pycache__', '.git', 'build', 'corpus'}

# A file in the first column may include files below those in the second. The longest matching prefix decides. A trailing '/' is a
# folder; without it a file name without its suffix. Folders that are not listed (tests, bench) may include anything.
CLIENT_BASE = ['base/', 'proto/', 'client/client', 'client/transport/']
CLIENT_LOCK = ['base/', 'client/client', 'client/lock/']
CLIENT_PROCESS = CLIENT_BASE + ['client/process/']
CLIENT_OBJECT = CLIENT_PROCESS + ['client/lock/', 'client/object/']
CLIENT_PROGRESS = CLIENT_OBJECT + ['client/progress/']
CLIENT_CORE = CLIENT_PROGRESS + ['client/datatype/']
CLIENT_P2P = CLIENT_CORE + ['client/p2p/']
# The rooms of the collectives, from the bottom up. A collective of several nodes calls those of its parts (family/coll.h), which the
# choice above gives an algorithm: through a pointer, so that no include runs back up.
CLIENT_COLL = CLIENT_P2P + ['client/coll/']
COLL_OP = CLIENT_CORE + ['client/coll/op/']
COLL_TOPOLOGY = CLIENT_CORE + ['client/coll/topology/']
COLL_NODE = CLIENT_P2P + ['client/coll/topology/shape', 'client/coll/node/']
COLL_SCHEDULE = COLL_NODE + ['client/coll/op/', 'client/coll/schedule/']
COLL_FAMILY = COLL_SCHEDULE + ['client/coll/family/']
COLL_ALGORITHMS = COLL_FAMILY + ['client/coll/algorithms/']
COLL_HIERARCHY = COLL_ALGORITHMS + ['client/coll/topology/', 'client/coll/hierarchy/']
COLL_CHOICE = COLL_FAMILY + ['client/coll/topology/', 'client/coll/algorithms/algorithms', 'client/coll/choice/']
COLL_INTER = COLL_HIERARCHY + ['client/coll/inter/']
CLIENT_UPPER = CLIENT_COLL + ['client/comm/', 'client/rma/', 'client/io/']
CLIENT_TOP = CLIENT_UPPER + ['client/tools/', 'client/topo/', 'client/init/']
DAEMON_SEAL = ['base/', 'daemon/seal/']
DAEMON_NET = DAEMON_SEAL + ['proto/', 'daemon/net/']
DAEMON_FLOW = ['base/', 'proto/', 'daemon/flow/']
DAEMON_PORT = DAEMON_NET + ['daemon/port/']
DAEMON_CHANNEL = DAEMON_PORT + DAEMON_FLOW + ['daemon/channel/']
# Of the channels the control plane sees what is theirs to show: making them, commands and events, counters. Its rooms stand on one
# another: routing, cluster, jobs, status, control. Nothing but control and main sees the whole node.
DAEMON_ROUTING = ['base/', 'proto/', 'daemon/routing/']
DAEMON_CLUSTER = DAEMON_ROUTING + DAEMON_SEAL + ['daemon/config', 'daemon/channel/channel', 'daemon/port/cmd', 'daemon/port/count',
                  'daemon/net/net', 'daemon/net/net_none', 'daemon/cluster/']
DAEMON_JOBS = DAEMON_CLUSTER + ['daemon/jobs/']
DAEMON_STATUS = DAEMON_JOBS + ['daemon/status/']
DAEMON_CONTROL = DAEMON_STATUS + ['daemon/control/']
# The spawner is a program of its own: daemon/jobs talks to it over a socket. The programs of the launcher share launcher/cli alone;
# motetctl knows of the daemon what comes as JSON, and no frame or segment.
LAUNCHER_CLI = ['base/', 'launcher/cli/']


def ladder(folder, below, modules):
    """Rules for a folder whose modules stand on one another: each may include those before it, and itself."""
    return {folder + module: below + [folder + m for m in modules[:n + 1]] for n, module in enumerate(modules)}


MAY_INCLUDE = {
    'base/': ['base/'],
    'proto/': ['base/', 'proto/'],
    'daemon/': DAEMON_CONTROL,
    'daemon/config': ['base/', 'proto/', 'daemon/config', 'daemon/seal/seal'],
    'daemon/routing/': DAEMON_ROUTING,
    'daemon/cluster/': DAEMON_CLUSTER,
    'daemon/jobs/': DAEMON_JOBS,
    'daemon/status/': DAEMON_STATUS,
    'daemon/control/': DAEMON_CONTROL,
    'daemon/seal/': DAEMON_SEAL,
    'daemon/net/': DAEMON_NET,
    'daemon/flow/': DAEMON_FLOW,
    'daemon/port/': DAEMON_PORT,
    'daemon/channel/': DAEMON_CHANNEL,
    'daemon/spawner/': ['base/', 'proto/', 'daemon/spawner/'],
    'launcher/': [],
    'launcher/cli/': LAUNCHER_CLI,
    'launcher/mpiexec/': LAUNCHER_CLI + ['proto/', 'launcher/mpiexec/'],
    'launcher/mpiexec/command/': LAUNCHER_CLI + ['proto/', 'launcher/mpiexec/command/'],
    'launcher/motetctl/': LAUNCHER_CLI + ['proto/status_views', 'launcher/motetctl/'],
    'client/': CLIENT_TOP + ['client/abi/', 'client/'],
    'client/client': ['base/', 'client/client'],
    'client/transport/': CLIENT_BASE,
    'client/lock/': CLIENT_LOCK,
    'client/process/': CLIENT_PROCESS,
    'client/object/': CLIENT_OBJECT,
    'client/progress/': CLIENT_PROGRESS,
    'client/datatype/': CLIENT_CORE,
    'client/p2p/': CLIENT_P2P,
    'client/coll/': CLIENT_COLL,
    'client/coll/op/': COLL_OP,
    'client/coll/topology/': COLL_TOPOLOGY,
    'client/coll/node/': COLL_NODE,
    'client/coll/schedule/': COLL_SCHEDULE,
    'client/coll/family/': COLL_FAMILY,
    'client/coll/algorithms/': COLL_ALGORITHMS,
    'client/coll/hierarchy/': COLL_HIERARCHY,
    'client/coll/choice/': COLL_CHOICE,
    'client/coll/inter/': COLL_INTER,
    'client/comm/': CLIENT_UPPER,
    'client/rma/': CLIENT_UPPER,
    'client/io/': CLIENT_UPPER,
    'client/io/access/': CLIENT_CORE + ['client/io/access/'],
    'client/dynamic/': CLIENT_UPPER + ['client/dynamic/'],
    'client/init/': CLIENT_UPPER + ['client/dynamic/', 'client/init/'],
    'client/topo/': CLIENT_UPPER + ['client/topo/'],
    'client/tools/': CLIENT_UPPER + ['client/tools/'],
    'client/abi/': CLIENT_TOP + ['client/abi/'],
    # The Fortran interface stands on what libmpi_abi exports, so it works on any library of the standard ABI.
    'client/fortran/': ['client/fortran/'],
}

MAY_INCLUDE |= ladder('daemon/net/', DAEMON_SEAL + ['proto/'],
                      ['block.', 'block_queue', 'address', 'net.', 'ofi_load',
                       'tcp/tcp.', 'tcp/tcp_proof', 'tcp/tcp_peer', 'tcp/tcp_conn.', 'tcp/tcp_hello', 'tcp/tcp_connect', 'tcp/tcp_stream',
                       'net_none', 'net_tcp',
                       'udp/udp_wire', 'udp/udp_mtu', 'udp/udp_rate', 'udp/udp_tx', 'udp/udp_rx', 'udp/udp_peer', 'udp/udp_end',
                       'udp/udp_socket', 'net_udp', 'net_ofi', 'net_frag', 'net_fault', 'net_drivers'])
MAY_INCLUDE |= ladder('daemon/port/', DAEMON_NET, ['count', 'cmd', 'pulse', 'watch', 'record_queue', 'handover', 'hub', 'port', 'link', 'way',
                                                   'relay'])
MAY_INCLUDE |= ladder('daemon/channel/', DAEMON_PORT + DAEMON_FLOW, ['job_table', 'ack', 'delivery', 'send', 'backlog', 'tx', 'rx', 'attach',
                                                                    'turn', 'loop', 'channel'])

# mpi.h and the prototypes of the semantics functions are generated from the interface description: every layer of the client
# includes them, since they are the contract that it fulfils.
ALWAYS = {'mpi.h', 'client/abi/semantics.h', 'client/abi/entries.h', 'client/abi/mpi.h'}

# The state machines of cluster and jobs take time as an argument and hold no socket (doc/architecture.md, rule C): only these files of
# the two rooms may ask the clock.
CLOCKED = ['daemon/cluster/mesh_socket', 'daemon/cluster/stream', 'daemon/jobs/client', 'daemon/jobs/job_site', 'daemon/jobs/spawner']
MACHINES = ['daemon/routing/', 'daemon/cluster/', 'daemon/jobs/']

# An outside library's header (by prefix) and the only places that may name it.
HOMES = {
    'event2/': CLOCKED + ['daemon/cluster/channels', 'daemon/cluster/listener', 'daemon/jobs/pipes', 'daemon/status/', 'daemon/control/',
                          'daemon/main'],
    'rdma/': ['daemon/net/net_ofi', 'daemon/net/ofi_load'],
    'jansson.h': ['client/coll/choice/table', 'daemon/status/', 'launcher/motetctl/'],
    'ffi.h': ['client/fortran/closure'],
    'ISO_Fortran_binding.h': ['client/fortran/'],
    'systemd/': ['daemon/control/service', 'daemon/control/journal', 'base/log'],
}

# Rooms whose modules (a .c and its .h) use one another in one direction: what includes, itself or over others, what includes it, is a
# circle.
# In client/datatype there is one: a type owns its map and the arguments of its constructor, and both own types.
# In daemon/jobs job_tables is a part of job that has a file of its own: it fills the struct that job.h has.
ONE_WAY = ['client/client', 'client/transport/', 'client/lock/', 'client/process/', 'client/object/', 'client/progress/', 'client/p2p/',
           'client/comm/', 'client/init/', 'client/topo/', 'client/fortran/', 'daemon/net/', 'daemon/flow/', 'daemon/seal/', 'daemon/routing/',
           'daemon/cluster/',
           'daemon/status/', 'daemon/spawner/', 'launcher/cli/', 'launcher/mpiexec/', 'launcher/motetctl/', 'proto/', 'base/']

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')


def matches(path, prefix):
    """`path` lies in the folder `prefix` ('x/') or is a file whose name starts with it (net_ofi covers net_ofi_dgram.c)."""
    return path.startswith(prefix)


def check_include(path, name, quoted):
    """The complaint about one include of the file `path`, or None."""
    for header, homes in HOMES.items():
        if matches(name, header) and not path.startswith(('tests/', 'bench/')):
            if not any(matches(path, home) for home in homes):
                return f'<{name}> belongs to {", ".join(homes)}'
    if not quoted or name in ALWAYS:
        return None
    rules = [prefix for prefix in MAY_INCLUDE if matches(path, prefix)]
    if not rules:
        return None
    if '/' not in name:
        return f'"{name}": includes are written from the source root'
    rule = max(rules, key=len)
    if any(matches(name, allowed) for allowed in MAY_INCLUDE[rule]):
        return None
    return f'"{name}": {rule} may include only {" ".join(MAY_INCLUDE[rule])}'


def check_file(root, path):
    """All complaints about one file, as lines 'path:line: text'."""
    complaints = []
    with open(os.path.join(root, path), encoding='utf-8') as file:
        lines = file.read().split('\n')
    if len(lines) - 1 > MAX_LINES:
        complaints.append(f'{path}: {len(lines) - 1} lines, {MAX_LINES} is the limit: split it')
    if path.endswith(('.c', '.h')) and 'SPDX-License-Identifier: BSD-3-Clause' not in lines[0]:
        complaints.append(f'{path}:1: the first line names the licence (SPDX-License-Identifier: BSD-3-Clause)')
    clockless = any(matches(path, room) for room in MACHINES) and not any(matches(path, file) for file in CLOCKED)
    if path.endswith(('.c', '.h')):
        for number, line in enumerate(lines, 1):
            if clockless and 'clock_now_ns(' in line:
                complaints.append(f'{path}:{number}: a state machine takes the time as an argument; only {", ".join(CLOCKED)} ask the clock')
            found = INCLUDE.match(line)
            complaint = check_include(path, found.group(2), found.group(1) == '"') if found else None
            if complaint:
                complaints.append(f'{path}:{number}: {complaint}')
    return complaints


def read_module_includes(root, paths):
    """The modules of the one-way rooms, and which others of them each includes."""
    includes = {}
    for path in paths:
        if not path.endswith(('.c', '.h')) or not any(matches(path, room) for room in ONE_WAY):
            continue
        module = os.path.splitext(path)[0]
        own = includes.setdefault(module, set())
        with open(os.path.join(root, path), encoding='utf-8') as file:
            found = [INCLUDE.match(line) for line in file]
        own.update(os.path.splitext(match.group(2))[0] for match in found if match and match.group(1) == '"')
        own.discard(module)
    return {module: sorted(own & includes.keys()) for module, own in includes.items()}


def check_circles(root, paths):
    """A complaint for each circle that a walk through the one-way rooms meets."""
    includes = read_module_includes(root, paths)
    complaints, done = [], set()

    def walk(module, way):
        if module in way:
            complaints.append('circle: ' + ' -> '.join(way[way.index(module):] + [module]))
        elif module not in done:
            for other in includes[module]:
                walk(other, way + [module])
            done.add(module)

    for module in sorted(includes):
        walk(module, [])
    return complaints


def source_files(root):
    for folder in FOLDERS:
        for where, folders, files in os.walk(os.path.join(root, folder)):
            folders[:] = sorted(f for f in folders if f not in SKIPPED)
            for name in sorted(files):
                if name.endswith(CODE):
                    yield os.path.relpath(os.path.join(where, name), root)


def check_folders(paths):
    """A complaint for each folder with more files than a reader can keep apart."""
    sizes = collections.Counter(os.path.dirname(path) for path in paths)
    return [f'{folder}: {n} files, {MAX_FILES} is the limit: it is more than one room' for folder, n in sorted(sizes.items()) if n > MAX_FILES]


def check_tree(root):
    paths = list(source_files(root))
    complaints = [complaint for path in paths for complaint in check_file(root, path)]
    return len(paths), complaints + check_circles(root, paths) + check_folders(paths)


def self_test():
    """Every rule is shown to catch what it is for: a check that cannot fail proves nothing."""
    bad = {
        'base/a.c': '#include "proto/ring.h"\n',
        'proto/a.c': '#include "daemon/config.h"\n',
        'client/p2p/a.c': '#include "client/coll/family/coll.h"\n',
        'client/client.c': '#include "client/transport/transport.h"\n',
        'client/coll/op/a.c': '#include "client/p2p/p2p.h"\n',
        'client/coll/topology/a.c': '#include "client/coll/schedule/schedule.h"\n',
        'client/coll/node/a.c': '#include "client/coll/schedule/schedule.h"\n',
        'client/coll/schedule/a.c': '#include "client/coll/family/coll.h"\n',
        'client/coll/family/a.c': '#include "client/coll/choice/select.h"\n',
        'client/coll/algorithms/a.c': '#include "client/coll/topology/node_groups.h"\n',
        'client/coll/hierarchy/a.c': '#include "client/coll/choice/rules.h"\n',
        'client/coll/choice/a.c': '#include "client/coll/hierarchy/place.h"\n',
        'client/coll/inter/a.c': '#include "client/coll/choice/select.h"\n',
        'client/transport/a.c': '#include "client/object/comm.h"\n',
        'client/lock/a.c': '#include "client/object/object.h"\n',
        'client/process/a.c': '#include "client/object/err.h"\n',
        'client/object/a.c': '#include "client/progress/vci.h"\n',
        'client/progress/a.c': '#include "client/datatype/datatype.h"\n',
        'client/datatype/a.c': '#include "client/p2p/p2p.h"\n',
        'client/comm/a.c': '#include "client/init/init.h"\n',
        'client/init/a.c': '#include "client/topo/topo.h"\n',
        'client/topo/a.c': '#include "client/init/env.h"\n',
        'daemon/net/a.c': '#include "daemon/channel/tx.h"\n',
        'daemon/flow/a.c': '#include "daemon/net/net.h"\n',
        'daemon/channel/a.c': '#include "daemon/routing/route.h"\n',
        'daemon/port/a.c': '#include "daemon/channel/tx.h"\n',
        'daemon/port/b.c': '#include "daemon/flow/flow.h"\n',
        'daemon/port/link.c': '#include "daemon/port/way.h"\n',
        'daemon/channel/delivery.h': '#include "daemon/channel/rx.h"\n',
        'daemon/cluster/c.c': '#include "daemon/port/link.h"\n',
        'daemon/jobs/a.c': '#include "daemon/channel/tx.h"\n',
        'daemon/cluster/a.c': '#include "daemon/jobs/job.h"\n',
        'daemon/routing/a.c': '#include "daemon/cluster/mesh.h"\n',
        'daemon/cluster/b.c': '#include "daemon/control/node.h"\n',
        'daemon/cluster/mesh.c': 'uint64_t now_ns = clock_now_ns();\n',
        'daemon/cluster/mail.c': '#include <event2/event.h>\n',
        'daemon/jobs/c.c': '#include "daemon/status/status.h"\n',
        'daemon/status/a.c': '#include "daemon/control/control.h"\n',
        'daemon/net/b.c': '#include <rdma/fabric.h>\n',
        'daemon/net/net_tcp.c': '#include "daemon/net/net_drivers.h"\n',
        'daemon/net/net.h': '#include "daemon/net/net_tcp.h"\n',
        'daemon/channel/c.c': '#include <event2/event.h>\n',
        'daemon/jobs/b.c': '#include "daemon/spawner/reaper.h"\n',
        'daemon/spawner/a.c': '#include "daemon/jobs/job.h"\n',
        'launcher/cli/a.c': '#include "launcher/mpiexec/command/hosts.h"\n',
        'launcher/mpiexec/a.c': '#include "launcher/motetctl/ask.h"\n',
        'launcher/motetctl/a.c': '#include "proto/frame.h"\n',
        'launcher/motetctl/b.c': '#include "b.h"\n',
        'launcher/mpiexec/b.c': '#include <jansson.h>\n',
        'launcher/mpiexec/long.c': '\n' * 1000,
        'launcher/mpiexec/command/a.c': '#include "launcher/mpiexec/run.h"\n',
        'client/io/access/a.c': '#include "client/io/file.h"\n',
    }
    good = {
        'daemon/control/a.c': '#include "daemon/port/cmd.h"\n#include <event2/event.h>\n',
        'daemon/jobs/job_site.c': '#include "daemon/cluster/cluster.h"\nuint64_t now_ns = clock_now_ns();\n',
        'daemon/status/b.c': '#include "daemon/jobs/manager.h"\n',
        'daemon/cluster/mesh_socket.c': '#include <event2/event.h>\n',
        'client/object/a.c': '#include "client/lock/lock.h"\n#include "client/process/job.h"\n',
        'client/progress/a.c': '#include "client/object/comm.h"\n',
        'client/datatype/a.c': '#include "client/progress/vci.h"\n',
        'client/init/a.c': '#include "client/comm/create.h"\n',
        'client/coll/a.c': '#include "client/p2p/p2p.h"\n#include "mpi.h"\n#include <string.h>\n',
        'client/coll/schedule/b.c': '#include "client/coll/node/node.h"\n',
        'client/coll/algorithms/b.c': '#include "client/coll/family/coll.h"\n#include "client/coll/algorithms/algorithms.h"\n',
        'client/coll/hierarchy/b.c': '#include "client/coll/topology/node_tree.h"\n#include "client/coll/family/coll.h"\n',
        'client/coll/choice/b.c': '#include "client/coll/algorithms/algorithms.h"\n',
        'daemon/net/net_ofi.c': '#include <rdma/fabric.h>\n',
        'daemon/channel/rx.c': '#include "daemon/channel/rx.h"\n#include "daemon/channel/send.h"\n#include "daemon/port/relay.h"\n',
        'daemon/spawner/b.c': '#include "proto/frame.h"\n#include "daemon/spawner/bind.h"\n',
        'launcher/mpiexec/c.c': '#include "launcher/cli/words.h"\n#include "proto/frame.h"\n',
        'launcher/motetctl/c.c': '#include "launcher/cli/file.h"\n#include "proto/status_views.h"\n#include <jansson.h>\n',
        'tests/unit/a.c': '#include "daemon/channel/tx.h"\n',
    }
    licence = '/* SPDX-License-Identifier: BSD-3-Clause */\n'
    with tempfile.TemporaryDirectory() as root:
        for tree, expected in ((bad, 1), (good, 0)):
            for path, text in tree.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), 'w', encoding='utf-8') as file:
                    file.write(licence + text)
                found = check_file(root, path)
                if len(found) != expected:
                    print(f'{path}: expected {expected} complaints, got {found}')
                    return 1
        straight = {'client/p2p/x.h': '', 'client/p2p/x.c': '#include "client/p2p/x.h"\n#include "client/p2p/y.h"\n', 'client/p2p/y.h': ''}
        for tree, expected in ((straight, 0), (straight | {'client/p2p/y.c': '#include "client/p2p/x.h"\n'}, 1)):
            for path, text in tree.items():
                with open(os.path.join(root, path), 'w', encoding='utf-8') as file:
                    file.write(licence + text)
            found = check_circles(root, tree)
            if len(found) != expected:
                print(f'{" ".join(tree)}: expected {expected} circles, got {found}')
                return 1
    crowd = [f'client/p2p/f{i}.c' for i in range(MAX_FILES)]
    if check_folders(crowd) or len(check_folders([*crowd, 'client/p2p/one_more.c'])) != 1:
        print('a folder with too many files is not caught, or one at the limit is')
        return 1
    print(f'{len(bad)} bad files and a circle caught, {len(good)} good ones passed')
    return 0


def main():
    if '--self-test' in sys.argv:
        return self_test()
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), '..', '..')
    n_files, complaints = check_tree(root)
    for complaint in complaints:
        print(complaint)
    print(f'{n_files} files read, {len(complaints)} complaints')
    return 1 if complaints or n_files == 0 else 0


if __name__ == '__main__':
    sys.exit(main())
