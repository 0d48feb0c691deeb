# SPDX-License-Identifier: BSD-3-Clause
"""Programs of other people, fetched by the ordinary clients and built unmodified: MPICH's wheel, mpi4py's source distribution, the source
packages of the distribution with NetPIPE and with MPICH's test suite.

Everything is kept in MOTET_INPUTS (default build/inputs), so that only the first run fetches. Building against our library depends on
the installation under test and is done anew when the installation's mpi.h or library changes.
"""
import glob
import hashlib
import os
import shutil
import sys
import tarfile

from . import stage

MPICH = 'mpich==5.0.2'
MPI4PY = 'mpi4py==4.1.2'
PYTHON = '/usr/bin/python3' if os.path.exists('/usr/bin/python3') else sys.executable
FETCH_S = 300
BUILD_S = 600


def folder():
    path = os.environ.get('MOTET_INPUTS', os.path.join(stage.ROOT, 'build', 'inputs'))
    os.makedirs(path, exist_ok=True)
    return os.path.realpath(path)


def once(name, make):
    """The folder `name` of the inputs, made by make(path) unless it is there in full."""
    path = os.path.join(folder(), name)
    if not os.path.exists(os.path.join(path, '.complete')):
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
        make(path)
        with open(os.path.join(path, '.complete'), 'w', encoding='ascii'):
            pass
    return path


def fingerprint(installation):
    """Changes when what programs are compiled against changes, and with its place, which they carry as the path of their library."""
    digest = hashlib.sha256(installation.prefix.encode())
    for name in ('include/mpi.h', 'bin/mpicc'):
        with open(os.path.join(installation.prefix, name), 'rb') as file:
            digest.update(file.read())
    return digest.hexdigest()[:12]


def digest_of_folder(folder):
    """Changes when a file of the folder does."""
    digest = hashlib.sha256()
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), 'rb') as file:
            digest.update(name.encode() + file.read())
    return digest.hexdigest()[:12]


def venv(path, *packages):
    stage.run([PYTHON, '-m', 'venv', path], timeout_s=120)
    stage.run([os.path.join(path, 'bin', 'pip'), 'install', '-q', *packages], timeout_s=FETCH_S)


class Mpich:
    """MPICH from its wheel: the other library of the standard ABI."""

    def __init__(self):
        self.path = once('mpich', lambda path: venv(path, MPICH))
        self.mpiexec = os.path.join(self.path, 'bin', 'mpiexec')
        self.environment = dict(os.environ, LD_LIBRARY_PATH=os.path.join(self.path, 'lib'))
        self.environment.pop('MOTET_SOCKET', None)

    def run(self, n_ranks, *program, timeout_s=60.0):
        return stage.run([self.mpiexec, '-n', n_ranks, *program], timeout_s, env=self.environment)


def mpi4py_tools():
    """A Python with what builds mpi4py, and in its folder `source` mpi4py's source distribution. Returns its path."""
    def fetch(path):
        venv(path, 'cython', 'setuptools', 'wheel')
        stage.run([os.path.join(path, 'bin', 'pip'), 'download', '-q', '--no-deps', '--no-binary', 'mpi4py',
                   '--no-build-isolation', '-d', os.path.join(path, 'source'), MPI4PY], timeout_s=FETCH_S)

    return once('mpi4py-source', fetch)


def mpi4py_source():
    (source,) = glob.glob(os.path.join(mpi4py_tools(), 'source', 'mpi4py-*.tar.gz'))
    return source


def mpi4py(installation):
    """A Python with mpi4py built from its source distribution against our mpi.h, and with the packages that more of its test suite
    needs. Returns the path of its interpreter."""
    def build(path):
        base = mpi4py_tools()
        # -O0: the generated C is 10 MB in one file, and what is tested is our library, not its speed.
        environment = dict(os.environ, MPI4PY_BUILD_MPIABI='1', MPICC=installation.mpicc, CFLAGS='-O0 -g0')
        stage.run([os.path.join(base, 'bin', 'pip'), 'wheel', '-q', '--no-build-isolation', '--no-deps', '-w', path, mpi4py_source()],
                  timeout_s=BUILD_S, env=environment)
        (wheel,) = glob.glob(os.path.join(path, 'mpi4py-*.whl'))
        venv(os.path.join(path, 'venv'), wheel, 'numpy', 'cffi')

    return os.path.join(once(f'mpi4py-{fingerprint(installation)}', build), 'venv', 'bin', 'python')


def apt_targets():
    """The distribution's own archives as this machine's apt knows them: source lines for them."""
    form = '$(ORIGIN)|$(REPO_URI)|$(CODENAME)|$(COMPONENT)|$(CREATED_BY)'
    lines = stage.run(['apt-get', 'indextargets', '--format', form]).stdout.split('\n')
    keyrings = glob.glob('/usr/share/keyrings/debian-archive-keyring.gpg')
    option = f'[signed-by={keyrings[0]}] ' if keyrings else ''
    rows = {tuple(line.split('|')[:4]) for line in lines if line.endswith('|Packages')}
    # What is wanted lies in the release itself, not among its updates.
    return sorted(f'deb-src {option}{uri} {suite} {component}' for origin, uri, suite, component in rows
                  if origin in ('Debian', 'Ubuntu') and component in ('main', 'universe') and '-' not in suite)


def debian_source(package, tree):
    """The upstream source tree (a pattern of its name) of one of the distribution's source packages, by a private configuration of
    apt."""
    def fetch(path):
        apt = os.path.join(path, 'apt')
        for name in ('parts', 'lists/partial', 'cache/archives/partial'):
            os.makedirs(os.path.join(apt, name))
        targets = apt_targets()
        assert targets, 'apt knows no package lists of the distribution: run apt-get update'
        with open(os.path.join(apt, 'sources.list'), 'w', encoding='ascii') as file:
            file.write('\n'.join(targets) + '\n')
        with open(os.path.join(apt, 'apt.conf'), 'w', encoding='ascii') as file:
            file.write(f'Dir::Etc::sourcelist "{apt}/sources.list";\nDir::Etc::sourceparts "{apt}/parts";\n'
                       f'Dir::State::lists "{apt}/lists";\nDir::Cache "{apt}/cache";\nAPT::Sandbox::User "";\n')
        environment = dict(os.environ, APT_CONFIG=os.path.join(apt, 'apt.conf'))
        stage.run(['apt-get', '-q', 'update'], FETCH_S, env=environment)
        # The upstream archive is all that is wanted: a mirror that has lost the packaging does not matter.
        done = stage.run(['apt-get', '-q', 'source', '--download-only', package], FETCH_S, check=False, env=environment, cwd=path)
        archives = glob.glob(os.path.join(path, f'{package}_*.orig.tar.*'))
        assert archives, f'no upstream archive of {package}:\n{done.stdout}\n{done.stderr}'
        with tarfile.open(archives[0]) as archive:
            archive.extractall(path)  # signed by the distribution
        shutil.rmtree(apt)

    (found,) = glob.glob(os.path.join(once(f'{package}-debian', fetch), tree))
    return found


def netpipe(compiler, name, *words):
    """NetPIPE's program `name` (NPmpi, NPtcp) compiled by `compiler`. Returns its path."""
    tree = debian_source('netpipe', 'NetPIPE-*')
    module, define = {'NPmpi': ('mpi.c', '-DMPI'), 'NPtcp': ('tcp.c', '-DTCP')}[name]
    path = os.path.join(folder(), name)
    stage.run([compiler, '-O2', '-w', define, '-o', path, os.path.join(tree, 'src', 'netpipe.c'),
               os.path.join(tree, 'src', module), '-I', os.path.join(tree, 'src'), *words], timeout_s=120)
    return path


def mpich_suite():
    """The source folder of MPICH's test suite."""
    return os.path.join(debian_source('mpich', 'mpich-[0-9]*'), 'test', 'mpi')


def mpich_tests(installation, chapters):
    """The programs of these chapters of MPICH's test suite, from the distribution's source package, built by our mpicc. What does not
    compile is left out. Returns (the folder with the programs and their lists, the suite's source folder)."""
    source = mpich_suite()
    environment = dict(os.environ, PATH=f'{os.path.join(installation.prefix, "bin")}:{os.environ["PATH"]}')
    # Names of MPI-1 that MPI-3 took away and that the suite's own helpers call, and conversions to Fortran, as what took their place.
    renamed = ' '.join(f'-D{prefix}_{old}={prefix}_{new}' for prefix in ('MPI', 'PMPI') for old, new in (
        ('Type_hindexed', 'Type_create_hindexed'), ('Type_hvector', 'Type_create_hvector'), ('Type_struct', 'Type_create_struct'),
        ('Message_c2f', 'Message_toint'), ('Message_f2c', 'Message_fromint')))
    # What MPI-4.1 took over from MPICH.
    renamed += ''.join(f' -DMPIX_Delete_error_{what}=MPI_Remove_error_{what}' for what in ('class', 'code', 'string'))

    # Setting up for Fortran takes as long as for the rest.
    has_fortran = (os.path.exists(os.path.join(installation.prefix, 'bin', 'mpifort')) and
                   any(chapter.startswith(('f77', 'f90', 'f08')) for chapter in chapters))
    # The suite asks for conversions by its own names; calls that differ in their arguments are what mpif.h is for.
    fortran = ['FC=mpifort', 'F77=mpifort', 'MPIFC=mpifort', 'MPIF77=mpifort', 'FFLAGS=-fallow-argument-mismatch -fcray-pointer -w',
               'FCFLAGS=-fallow-argument-mismatch -fcray-pointer -w', 'LIBS=-lmpifort_abi', '--enable-fortran=f77,f90,f08']
    if has_fortran:
        renamed += ' -include mpifort.h'  # the conversions of handles, which the suite takes from mpi.h

    def configure(path):
        # The programs of mpi_f08 are built for MPICH alone unless the script is told otherwise.
        script = os.path.join(path, 'configure')
        with open(os.path.join(source, 'configure'), encoding='utf-8') as file:
            text = file.read().replace('test "$enable_f08" = "yes" -a "$FROM_MPICH" = "yes"', 'test "$enable_f08" = "yes"')
        with open(script, 'w', encoding='utf-8') as file:
            file.write(text)
        stage.run(['bash', script, f'--srcdir={source}', 'CC=mpicc', 'MPICC=mpicc', f'CPPFLAGS={renamed}',
                   'CFLAGS=-O0 -w', f'--with-mpi={installation.prefix}', *(fortran if has_fortran else ['--disable-fortran']), '--disable-cxx',
                   '--disable-romio', '--enable-strictmpi', '--enable-threads=multiple', '--disable-dependency-tracking'],
                  BUILD_S, env=environment, cwd=path)
        # One after the other: chapters that are made side by side would each begin them.
        for library in ['libmtest.la', *(f'libmtest_{form}.la' for form in ('f77', 'f90', 'f08') if has_fortran)]:
            stage.run(['make', '-s', '-C', os.path.join(path, 'util'), library], BUILD_S, env=environment)
        make(path, 'dtpools')

    def make(path, chapter, check=True):
        words = ['make', '-k', '-s', f'-j{os.cpu_count()}', '-C', os.path.join(path, chapter)]
        # These the suite makes for MPICH alone: they were MPICH's before they were MPI's.
        more = ('bigtype', 'hindexed_io', 'rdwrord', 'setviewcur', 'aggregation1', 'aggregation2', 'coll_test', 'darray_read', 'hindexed',
                'noncontig_coll', 'noncontig_coll2', 'types_with_zeros') if chapter == 'io' else ()
        stage.run([*words, 'all', *(f'i_{program}' for program in more)], BUILD_S, check=check, env=environment)
        if chapter.startswith(('f77', 'f90', 'f08')):
            # Programs that configure leaves out for what only MPICH's own compiler settings tell it (Cray pointers, 64-bit addresses).
            left_out = [os.path.splitext(os.path.basename(name))[0] for form in ('allocmem*.f*', 'aint*.f*')
                        for name in glob.glob(os.path.join(source, chapter, form))]
            if left_out:
                stage.run([*words, *left_out], BUILD_S, check=False, env=environment)

    path = once(f'mpich-tests-{"fortran-" if has_fortran else ""}{fingerprint(installation)}', configure)
    for chapter in chapters:
        mark = os.path.join(path, chapter, '.made')
        if not os.path.exists(mark) and os.path.isdir(os.path.dirname(mark)):
            make(path, chapter, check=False)
            with open(mark, 'w', encoding='ascii'):
                pass
    return path, source
