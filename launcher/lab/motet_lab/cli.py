# SPDX-License-Identifier: BSD-3-Clause
"""motet-lab: a mixed cluster of unlike networks, emulated on this machine.

    motet-lab up FILE|EXAMPLE        bring a lab up: nodes, networks, a motetd on each node
    motet-lab exec NODE -- CMD ...   run a command on a node
    motet-lab shell NODE             a shell on a node
    motet-lab status                 drawing and state of the lab
    motet-lab cut NODE NETWORK       pull the cable of a node's NIC (--silent: drop everything, carrier stays)
    motet-lab heal NODE NETWORK      plug it in again
    motet-lab kill NODE              kill -9 the node's daemon (--power: every process of the node)
    motet-lab start NODE             start the daemon again
    motet-lab wait                   until every living daemon has a route to every other
    motet-lab log NODE               what the daemon wrote
    motet-lab ps [NODE]              the processes of a node or of all
    motet-lab down                   everything away
    motet-lab list                   labs that are up
    motet-lab check                  can this machine make a lab?
"""
import argparse
import json
import os
import shutil
import signal
import sys
import time

from . import client, cluster, holder, kernel, limits, node

EXIT_REFUSED = 3  # the kernel does not allow namespaces; scripts tell it from a mistake (1) and a wrong usage (2)


def bin_dir():
    return os.path.dirname(os.path.realpath(sys.argv[0]))


def find_motetd(given):
    """The daemon's path: as given, beside this program, or on the PATH."""
    beside = os.path.join(bin_dir(), '..', 'sbin', 'motetd')
    for path in (given, os.environ.get('MOTET_MOTETD')):
        if path:
            if not os.access(path, os.X_OK):
                raise client.LabError(f'{path} cannot be executed')
            return os.path.realpath(path)
    found = os.path.realpath(beside) if os.access(beside, os.X_OK) else shutil.which('motetd')
    if not found:
        raise client.LabError('motetd is neither beside motet-lab (../sbin) nor on the PATH: name it with --motetd, or say '
                              '--no-daemons')
    return found


def find_lab_file(name):
    """A path, or the name of one of the examples that are installed with motet-lab."""
    if os.path.exists(name):
        return name
    for folder in ('../share/motet/examples', '../../conf/examples'):
        path = os.path.join(bin_dir(), folder, name + '.lab')
        if os.path.exists(path):
            return os.path.realpath(path)
    raise client.LabError(f'{name}: no such file, nor an example of that name')


def do_up(options):
    lab_file = find_lab_file(options.file)
    plan = cluster.read(lab_file)
    name = options.name or plan.name or os.path.splitext(os.path.basename(lab_file))[0]
    motetd = None if options.no_daemons else find_motetd(options.motetd)
    mode, reason = kernel.usable_mode()
    if mode is None:
        return refused(reason)
    for tool in ('ip', 'tc', 'bridge'):
        if not shutil.which(tool):
            raise client.LabError(f'{tool} is missing (Debian: apt-get install iproute2)')
    log_dir = os.path.abspath(options.logs) if options.logs else None
    if log_dir:
        os.makedirs(log_dir, exist_ok=True)
    if options.congestion:
        plan.congestion = options.congestion
    note, overflows = limits.raise_neighbours(plan), limits.overflows()
    listener = client.listen(name)
    print(f'lab {name}: {len(plan.nodes)} nodes, {len(plan.networks)} networks from {lab_file} '
          f'({"as root" if mode == "root" else "in a user namespace"})', flush=True)
    if note:
        print(f'  note: {note}', flush=True)
    watched = os.pidfd_open(options.watch) if options.watch else None
    messages = fork_holder(holder.Lab(plan, name, mode, motetd, log_dir), listener, watched)
    ready = False
    for message in messages:
        if 'progress' in message:
            print(f'  {message["progress"]}', flush=True)
        elif 'error' in message:
            raise client.LabError(message['error'])
        ready = ready or message.get('ready', False)
    if not ready:
        raise client.LabError('the lab ended while it came up')
    if motetd and not options.no_wait:
        try:
            wait_for_routes(name, options.timeout)
        except client.LabError:
            if limits.overflows() > overflows:
                print('motet-lab: the neighbour table of the kernel was full meanwhile: raise '
                      'net.ipv4.neigh.default.gc_thresh3', file=sys.stderr)
            if not options.keep:
                print_logs(name)
                client.ask(name, 'down')
            raise
        print('  all routes are up', flush=True)
    print_drawing(name)
    return 0


def fork_holder(lab, listener, watched):
    """Starts the holder in its namespaces. Yields its messages, until it closes the pipe."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            os.setsid()
            kernel.private_root(lab.mode == 'user')
            if os.fork() == 0:
                null = os.open('/dev/null', os.O_RDWR)
                for descriptor in (0, 1, 2):
                    os.dup2(null, descriptor)
                os.chdir('/')
                holder.main(lab, listener, watched, writer)
        except OSError as error:
            os.write(writer, (json.dumps({'error': str(error)}) + '\n').encode())
        finally:
            os._exit(0)
    os.close(writer)
    listener.close()
    os.waitpid(child, 0)
    with os.fdopen(reader, encoding='utf-8') as pipe:
        for line in pipe:
            yield json.loads(line)


def refused(reason):
    print('motet-lab: this kernel or container allows no namespaces, which a lab is made of.\n'
          f'  tried {reason}\n'
          '  In a container: run it with --privileged, or with --cap-add SYS_ADMIN --cap-add NET_ADMIN and unmasked /proc.\n'
          '  On a machine: become root, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1,\n'
          '  user.max_user_namespaces > 0, kernel.apparmor_restrict_unprivileged_userns=0).', file=sys.stderr)
    return EXIT_REFUSED


def wait_for_routes(name, timeout_s):
    """Until nothing is missing. Raises LabError with what still is."""
    deadline = time.monotonic() + timeout_s
    while True:
        missing = client.ask(name, 'missing')[0]['missing']
        if not missing:
            return
        ended = [line for line in missing if 'the daemon ended' in line]
        if ended or time.monotonic() > deadline:
            why = 'a daemon ended' if ended else f'routes are missing after {timeout_s:g} s'
            raise client.LabError('\n  '.join([f'{why}:'] + (ended or missing)))
        time.sleep(0.05)


def print_logs(name):
    for one in client.ask(name, 'status')[0]['nodes']:
        text = client.ask(name, 'log', node=one['name'])[0]['text']
        lines = text.splitlines()[-15:]
        print(f'--- log of {one["name"]}: ' + ('' if lines else 'empty'), file=sys.stderr)
        for line in lines:
            print(f'    {line}', file=sys.stderr)


def print_drawing(name):
    print('\n' + client.ask(name, 'status')[0]['drawing'] + '\n', flush=True)


def enter(name, node_name):
    """Puts this process's next children on a node. The caller forks afterwards."""
    answer, (pidfd,) = client.ask(name, 'enter', node=node_name)
    flags = node.SPACES | kernel.CLONE_NEWPID | (kernel.CLONE_NEWUSER if answer['mode'] == 'user' else 0)
    here = os.getcwd()
    kernel.setns(pidfd, flags)
    os.close(pidfd)
    try:
        os.chdir(here)
    except OSError:
        os.chdir('/')


def run_on(name, node_name, argv):
    """Runs a command on a node, as a child that dies with us. Returns its exit code, 128 + n for signal n."""
    enter(name, node_name)
    environment = dict(os.environ, MOTET_LAB=name, MOTET_LAB_NODE=node_name,
                       PATH=bin_dir() + os.pathsep + os.environ.get('PATH', os.defpath))
    environment.pop('XDG_RUNTIME_DIR', None)  # it lies in the outer /run
    child = os.fork()
    if child == 0:
        try:
            kernel.die_with_parent()
            os.execvpe(argv[0], argv, environment)
        except OSError as error:
            print(f'motet-lab: {argv[0]}: {error.strerror}', file=sys.stderr, flush=True)
        finally:
            os._exit(127)
    # What the terminal sends reaches the child by itself; what is sent to us alone is passed on.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGQUIT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda n, _: os.kill(child, n))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else 128 - code


def do_exec(options):
    if options.command and options.command[0] == '--':
        options.command.pop(0)
    if not options.command:
        raise client.LabError('exec: what shall be run? motet-lab exec NODE -- CMD ...')
    return run_on(client.choose(options.name), options.node, options.command)


def do_shell(options):
    name = client.choose(options.name)
    shell = os.environ.get('SHELL', '/bin/sh')
    print(f'on node {options.node} of lab {name}; leave with exit', flush=True)
    os.environ['PS1'] = f'[{options.node}] \\w \\$ '
    plain = ['--norc'] if os.path.basename(shell) == 'bash' else []
    return run_on(name, options.node, [shell] + plain + ['-i'])


def do_status(options):
    name = client.choose(options.name)
    answer = client.ask(name, 'status')[0]
    if options.json:
        print(json.dumps(answer))
        return 0
    print(f'lab {name} from {answer["file"]} ({"as root" if answer["mode"] == "root" else "in a user namespace"})\n')
    print(answer['drawing'] + '\n')
    for one in answer['nodes']:
        addresses = ' '.join(f'{network}={address}' + (' (cut)' if network in one['cuts'] else '')
                             for network, address in one['addresses'].items())
        daemon = f'motetd {one["daemon"]}' if one['daemon'] else f'no motetd ({one["daemon_end"] or "not started"})'
        print(f'  {one["name"]:12} {daemon:24} {addresses}')
    for note in answer['notes']:
        print(f'  note: {note}')
    for line in client.ask(name, 'missing')[0]['missing'] if any(n['daemon'] for n in answer['nodes']) else []:
        print(f'  missing: {line}')
    return 0


def do_port(options):
    arguments = {'node': options.node, 'network': options.network}
    if options.command_name == 'cut':
        arguments['silent'] = options.silent
    client.ask(client.choose(options.name), options.command_name, **arguments)
    return 0


def do_kill(options):
    client.ask(client.choose(options.name), 'kill', node=options.node, power=options.power)
    return 0


def do_start(options):
    client.ask(client.choose(options.name), 'start', node=options.node)
    return 0


def do_wait(options):
    wait_for_routes(client.choose(options.name), options.timeout)
    return 0


def do_log(options):
    sys.stdout.write(client.ask(client.choose(options.name), 'log', node=options.node)[0]['text'])
    return 0


def do_ps(options):
    name = client.choose(options.name)
    for one in [options.node] if options.node else [n['name'] for n in client.ask(name, 'status')[0]['nodes']]:
        for pid, command in client.ask(name, 'processes', node=one)[0]['processes']:
            print(f'{one:12} {pid:7} {command}')
    return 0


def do_list(_):
    for name in client.running():
        print(name)
    return 0


def do_down(options):
    names = client.running() if options.all else [client.choose(options.name)]
    for name in names:
        client.ask(name, 'down')
    deadline = time.monotonic() + 15
    while set(names) & set(client.running()):
        if time.monotonic() > deadline:
            raise client.LabError(f'still there: {" ".join(sorted(set(names) & set(client.running())))}')
        time.sleep(0.02)
    return 0


def do_check(_):
    mode, reason = kernel.usable_mode()
    if mode is None:
        return refused(reason)
    print('namespaces: ' + ('as root' if mode == 'root' else 'in a user namespace'))
    return 0


def parser():
    top = argparse.ArgumentParser(prog='motet-lab', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument('--name', help='which lab; needed when several are up (or $MOTET_LAB)')
    commands = top.add_subparsers(dest='command_name', required=True, metavar='COMMAND')

    def command(name, function, *arguments):
        sub = commands.add_parser(name)
        sub.set_defaults(function=function)
        for argument in arguments:
            sub.add_argument(argument)
        # also after the command, where people write it; not given there, it leaves the one before alone
        sub.add_argument('--name', default=argparse.SUPPRESS)
        return sub

    up = command('up', do_up, 'file')
    up.add_argument('--motetd', help='the daemon to start')
    up.add_argument('--no-daemons', action='store_true', help='namespaces and networks only')
    up.add_argument('--no-wait', action='store_true', help='do not wait until the routes are up')
    up.add_argument('--keep', action='store_true', help='leave the lab up when the routes do not come up')
    up.add_argument('--logs', metavar='DIR', help='the daemons\' logs as DIR/NODE.log instead of inside the lab')
    up.add_argument('--congestion', help='TCP congestion control of the nodes')
    up.add_argument('--timeout', type=float, default=30.0, help='seconds to wait for routes')
    up.add_argument('--watch', type=int, metavar='PID', help='the lab goes down when this process ends')
    execute = command('exec', do_exec, 'node')
    execute.add_argument('command', nargs=argparse.REMAINDER)
    command('shell', do_shell, 'node')
    command('status', do_status).add_argument('--json', action='store_true')
    command('cut', do_port, 'node', 'network').add_argument('--silent', action='store_true')
    command('heal', do_port, 'node', 'network')
    command('kill', do_kill, 'node').add_argument('--power', action='store_true')
    command('start', do_start, 'node')
    command('wait', do_wait).add_argument('--timeout', type=float, default=30.0)
    command('log', do_log, 'node')
    command('ps', do_ps).add_argument('node', nargs='?')
    command('list', do_list)
    command('down', do_down).add_argument('--all', action='store_true')
    command('check', do_check)
    return top


def main():
    options = parser().parse_args()
    try:
        return options.function(options)
    except (client.LabError, cluster.LabFileError) as error:
        print(f'motet-lab: {error}', file=sys.stderr)
        return 1
    except OSError as error:
        print(f'motet-lab: {error.strerror or error}', file=sys.stderr)
        return 1
