# SPDX-License-Identifier: BSD-3-Clause
"""Writes the manual pages of the MPI functions (section 3): manual.py DESCRIPTION-FOLDER TEXT-FOLDER OUTPUT-FOLDER.

What a function looks like comes from its description (api/*.api), what it is for from text/*.txt, in which an entry is one
logical line as in the descriptions:

    Name [section property] summary
        Sentences about it. @parameter: what it means !MPI_ERR_CLASS: when

    section      of the MPI 5.0 standard
    property     local: never waits for another process; waits: for another process, perhaps; collective: called by all
                 processes of the communicator (or group, window, file); starts=Name, prepares=Name: the nonblocking and the
                 persistent form of Name, which has the text

text/parameters.txt has the words for parameters that mean the same everywhere. Every parameter must get some: the generator fails
where neither the function nor this file says anything."""

import os
import re
import shutil
import sys
from dataclasses import dataclass

import description
from header import result_type
from kinds import HANDLES, INTS, LISTS, SCALARS, api_declaration

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', 'fortran'))
import fortran
import modules as fortran_modules

DATE = 'November 21, 2026'  # of the texts
ENTRY = re.compile(r'(\w+) \[(?P<section>\d[\d.]*)( (?P<property>local|waits|collective))?( (?P<form>starts|prepares)=(?P<of>\w+))?\](?P<rest>.*)$')
PIECE = re.compile(r'(?:^|(?<=\s))([@!])(\w+): ')

# What can go wrong with a parameter of a kind, in any function that has one: error class and words.
CLASS_OF_HANDLE = {'comm': 'COMM', 'group': 'GROUP', 'type': 'TYPE', 'anytype': 'TYPE', 'op': 'OP', 'info': 'INFO',
                   'errhandler': 'ERRHANDLER', 'request': 'REQUEST', 'message': 'REQUEST', 'win': 'WIN', 'file': 'FILE',
                   'session': 'SESSION'}
ERRORS_OF_KIND = {
    'count': ('COUNT', 'is negative'), 'bigcount': ('COUNT', 'is negative'), 'counts': ('COUNT', 'has a negative element'),
    'nonneg': ('ARG', 'is negative'), 'size': ('SIZE', 'is negative'), 'sizec': ('SIZE', 'is negative'),
    'dispunit': ('ARG', 'is not positive'), 'dest': ('RANK', 'is no rank of the communicator and not MPI_PROC_NULL'),
    'source': ('RANK', 'is no rank of the communicator and no wildcard'), 'rank': ('RANK', 'is no rank of the communicator'),
    'root': ('ROOT', 'is no rank of the communicator'), 'tag': ('TAG', 'is negative'),
    'rtag': ('TAG', 'is negative and not MPI_ANY_TAG'), 'keyval': ('KEYVAL', 'is no key'),
    'requests': ('REQUEST', 'has an element that is no request'), 'types': ('TYPE', 'has an element that is no committed datatype'),
    'anytypes': ('TYPE', 'has an element that is no datatype'), 'buf': ('BUFFER', 'is a null pointer where data are needed'),
    'cbuf': ('BUFFER', 'is a null pointer where data are needed'), 'string': ('ARG', 'is a null pointer')}


@dataclass
class Text:
    """What a person wrote about a function."""
    section: str
    property: str
    summary: str
    body: str
    parameters: dict
    errors: list
    form: str = ''
    of: str = ''


def parse_text(line, where):
    match = ENTRY.match(line)
    if not match:
        raise description.DescriptionError(f'{where}: not "Name [section property] summary"')
    pieces = PIECE.split(match['rest'].strip())
    summary, _, body = pieces[0].partition('\x01')
    text = Text(match['section'], match['property'] or '', summary.strip(), body.strip(), {}, [], match['form'] or '', match['of'] or '')
    for mark, name, words in zip(pieces[1::3], pieces[2::3], pieces[3::3]):
        if mark == '@':
            text.parameters[name] = words.strip()
        else:
            text.errors.append((name, words.strip()))
    return match[1], text


def entries(path):
    """(line number, text) as description.logical_lines, with a mark where the first line ends."""
    number, lines = 0, []
    with open(path, encoding='ascii') as file:
        for i, line in enumerate(file, 1):
            if line.startswith('#') or not line.strip():
                continue
            if not line[0].isspace():
                if lines:
                    yield number, lines[0] + '\x01 ' + ' '.join(lines[1:])
                number, lines = i, []
            lines.append(line.strip())
    if lines:
        yield number, lines[0] + '\x01 ' + ' '.join(lines[1:])


def read_texts(folder):
    texts = {}
    for file in sorted(os.listdir(folder)):
        if file in ('parameters.txt', 'limits.txt'):
            continue
        path = os.path.join(folder, file)
        for number, line in entries(path):
            name, text = parse_text(line, f'{path}:{number}')
            if name in texts:
                raise description.DescriptionError(f'{path}:{number}: {name} is described twice')
            texts[name] = text
    for name, text in texts.items():
        if text.of:
            if text.of not in texts:
                raise description.DescriptionError(f'{name}: there is no {text.of}')
            fill_in(text, texts[text.of])
    return texts


def fill_in(text, base):
    """The nonblocking and persistent forms of a function say what it does, and how they differ."""
    text.parameters = {**base.parameters, **text.parameters}
    text.errors = base.errors
    text.property = base.property
    if text.form == 'starts':
        text.summary = f'{base.summary}, nonblocking'
        text.body = (f'Starts what MPI_{text.of} does and returns at once; the request is complete when it is done at this process. '
                     f'The buffers may not be touched before that. {base.body}')
    else:
        text.summary = f'{base.summary}, persistent'
        text.body = (f'Makes an inactive persistent request; each MPI_Start of it does what MPI_{text.of} does, without waiting for '
                     f'the end. {base.body}')


def read_parameter_words(path):
    with open(path, encoding='ascii') as file:
        pairs = [line.strip().split(None, 1) for line in file if line.strip() and not line.startswith('#')]
    return dict(pairs)


def buffer_of(function, p):
    """The buffer whose elements a count or a datatype describes."""
    return next((b for b in function.of_kind('buf', 'cbuf') if p.name in b.args and p.name != 'inplace'), None)


def words_of(function, p, text, common):
    """What a parameter means."""
    if p.name in text.parameters:
        return text.parameters[p.name]
    buffer = buffer_of(function, p)
    if buffer and p.name not in common:
        return f'number of elements in {buffer.name}' if p.kind == 'count' else f'datatype of the elements in {buffer.name}'
    for key in (f'{p.name}{p.direction}', f'{p.name}:{p.kind}', p.name, f':{p.kind}{p.direction}', f':{p.kind}'):
        if key in common:
            return common[key]
    raise description.DescriptionError(f'nothing is said about the parameter {p.name} ({p.kind}{p.direction})')


def direction_of(p):
    """in, out or in-out as the standard means it: of what the parameter points to."""
    if p.direction == '<>':
        return 'in-out'
    return 'out' if p.direction == '>' or p.kind == 'buf' else 'in'


def condition_words(function, p):
    """Where the parameter counts, and whether it may be null."""
    words = ''
    if p.when and function.parameter(p.when).kind == 'root':
        words = '; counts at the root only'
    elif p.when:
        words = f'; does not count where {p.when} is {"MPI_NO_OP" if function.parameter(p.when).kind == "op" else "MPI_IN_PLACE"}'
    if not p.optional or p.kind == 'info':
        return words
    return words + ('; may be the null handle' if p.kind in HANDLES else '; may be a null pointer')


def sentence(words):
    return words if words.endswith('.') else words + '.'


def escape(text):
    """For roff: no line begins with a control character, and hyphens of names stay themselves."""
    text = text.replace('\\', '\\e')
    return ('\\&' + text) if text[:1] in ".'" else text


def prose(text):
    """Text as roff lines: a sentence each, names of functions as references or emphasis left plain."""
    return [escape(s) for s in re.split(r'(?<=[.:;])\s+(?=[A-Z])', text) if s]


def page_name(name):
    return f'MPI_{name}'


def errors_of(function, text):
    found = {}
    for p in function.parameters:
        if p.kind in HANDLES and p.direction not in ('>', '#'):
            words = 'is no ' + {'anytype': 'datatype', 'type': 'committed datatype', 'comm': 'communicator', 'op': 'operation',
                                'info': 'info object', 'errhandler': 'error handler', 'win': 'window'}.get(p.kind, p.kind)
            found.setdefault(CLASS_OF_HANDLE[p.kind], []).append(f'{p.name} {words}')
        elif p.kind in ERRORS_OF_KIND and not p.direction:
            if (p.kind in ('buf', 'cbuf') and not p.args) or (p.kind == 'string' and p.optional):
                continue
            error, words = ERRORS_OF_KIND[p.kind]
            found.setdefault(error, []).append(f'{p.name} {words}')
        elif (p.kind in INTS or p.kind in SCALARS or p.kind in ('string', 'ptr')) and p.direction and not p.optional:
            found.setdefault('ARG', []).append(f'{p.name} is a null pointer')
        elif (p.kind in LISTS and p.args) or (p.kind in ('fn', 'widefn') and not p.optional):
            found.setdefault('ARG', []).append(f'{p.name} is a null pointer')
    for p in function.of_kind('buf'):
        if len(p.args) == 2 and any(q.args == p.args + ['inplace'] for q in function.of_kind('cbuf')):
            found.setdefault('BUFFER', []).append('both buffers are the same')
    for error, words in text.errors:
        found.setdefault(error[len('MPI_ERR_'):], []).append(words)
    return [(f'MPI_ERR_{error}', words) for error, words in found.items()]


def synopsis(function):
    lines = []
    for large in (False, True) if function.has('large') else (False,):
        name = page_name(function.name) + ('_c' if large else '')
        lines += [f'.Ft {result_type(function)}', f'.Fo {name}']
        parameters = [api_declaration(p, large) for p in function.parameters if large or not p.large_only]
        if function.variadic:
            parameters.append('...')
        lines += [f'.Fa "{p}"' for p in parameters or ['void']] + ['.Fc']
    return lines


def result_lines(function):
    if function.has('returns'):
        return ['The result is the value itself; there is no error code.']
    if function.has('tool'):
        return ['The result is MPI_SUCCESS or one of MPI_T_ERR_*; no error handler is called.']
    return ['The result is MPI_SUCCESS, or an error code if the error handler returns.']


def state_lines(function):
    """What Motet does with it today."""
    if function.has('done') or function.has('convert'):
        return []
    error = 'MPI_T_ERR_NOT_SUPPORTED' if function.has('tool') else 'MPI_ERR_UNSUPPORTED_OPERATION'
    return ['.Sh BUGS', f'This version of Motet does not have this function yet: every call ends in {error}.']


def property_words(function, text):
    words = []
    if text.property == 'collective':
        words.append('Collective: every process of the group must call it, in the same order as other collective operations.')
    elif text.property == 'local':
        words.append('Local: it never waits for another process.')
    elif text.property == 'waits':
        words.append('It may wait for another process.')
    if text.form == 'starts':
        words.append('It returns without waiting.')
    elif text.form == 'prepares':
        words.append('It may wait for the other processes.')
    if function.has('anytime'):
        words.append('It may be called at any time, also before initialization and after finalization, by any thread.')
    else:
        words.append('Several threads may call it at the same time when MPI_THREAD_MULTIPLE was granted.')
    return words


def head_lines(function, text):
    names = [page_name(function.name)] + ([page_name(function.name) + '_c'] if function.has('large') else [])
    lines = ['.\\" SPDX-License-Identifier: BSD-3-Clause', '.\\" Generated from client/abi; do not edit.', f'.Dd {DATE}',
             f'.Dt {names[0].upper()} 3', '.Os Motet', '.Sh NAME']
    lines += [f'.Nm {name}' + (' ,' if name != names[-1] else '') for name in names]
    return lines + [f'.Nd {text.summary}', '.Sh SYNOPSIS', '.In mpi.h'] + synopsis(function)


def parameter_lines(function, text, common):
    if not function.parameters:
        return []
    lines = ['.Pp', '.Bl -tag -width Ds']
    for p in function.parameters:
        words = words_of(function, p, text, common) + condition_words(function, p)
        only = ', large-count form only' if p.large_only else ''
        lines += [f'.It Fa {p.name} Pq {direction_of(p)}{only}'] + prose(sentence(words[0].upper() + words[1:]))
    return lines + ['.El']


def error_lines(function, text):
    errors = errors_of(function, text)
    if not errors or function.has('returns') or function.has('tool'):
        return []
    lines = ['.Sh ERRORS', '.Bl -tag -width Ds']
    for error, words in errors:
        lines += [f'.It {error}', escape(sentence('; '.join(words)))]
    return lines + ['.El']


def fortran_lines(function, forms):
    """The procedure of mpi_f08, in its forms, as the module declares it."""
    if function.name not in forms:
        return []
    lines = ['.Sh FORTRAN', '.Bd -literal']
    for proc in forms[function.name]:
        lines += [escape(line) for line in fortran_modules.statement(proc).split('\n')]
    return lines + ['.Ed']


def page(function, text, common, forms):
    body = text.body or text.summary[0].upper() + text.summary[1:]
    lines = head_lines(function, text) + ['.Sh DESCRIPTION'] + prose(sentence(body))
    lines += parameter_lines(function, text, common) + ['.Pp'] + property_words(function, text)
    lines += ['.Sh RETURN VALUES'] + result_lines(function) + error_lines(function, text)
    lines += fortran_lines(function, forms) + ['.Sh SEE ALSO'] + ([f'.Xr {page_name(text.of)} 3 ,'] if text.of else []) + ['.Xr mpiexec 1']
    place = 'section' if '.' in text.section else 'chapter'
    lines += ['.Sh STANDARDS', f'MPI 5.0, {place} {text.section}.'] + state_lines(function)
    return '\n'.join(lines) + '\n'


def fortran_forms(source):
    """name of a function -> its procedures in mpi_f08."""
    functions, _, differences = fortran.read(source)
    return {pair[0].function.name: [p for p in pair if p] for pair in fortran.procedures(functions, differences)
            if pair[0].function.name not in differences.deprecated | differences.plain}


def write(source, text_folder, output):
    functions = description.read_functions(source)
    texts = read_texts(text_folder)
    common = read_parameter_words(os.path.join(text_folder, 'parameters.txt'))
    forms = fortran_forms(source)
    names = {f.name for f in functions}
    for name in sorted(names ^ set(texts)):
        raise description.DescriptionError(f'{name} is in {"api, but not in text" if name in names else "text, but not in api"}')
    shutil.rmtree(output, ignore_errors=True)
    os.makedirs(output)
    for function in functions:
        text = texts[function.name]
        extra = set(text.parameters) - {p.name for p in function.parameters}
        if extra and not text.of:
            raise description.DescriptionError(f'{function.name} has no parameter {", ".join(sorted(extra))}')
        try:
            content = page(function, text, common, forms)
        except description.DescriptionError as error:
            raise description.DescriptionError(f'{function.name}: {error}') from None
        with open(os.path.join(output, f'{page_name(function.name)}.3'), 'w', encoding='ascii') as file:
            file.write(content)
        if function.has('large'):
            with open(os.path.join(output, f'{page_name(function.name)}_c.3'), 'w', encoding='ascii') as file:
                file.write(f'.so man3/{page_name(function.name)}.3\n')


if __name__ == '__main__':
    try:
        write(*sys.argv[1:4])
    except (description.DescriptionError, OSError) as error:
        sys.exit(f'manual.py: {error}')
