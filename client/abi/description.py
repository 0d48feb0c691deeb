# SPDX-License-Identifier: BSD-3-Clause
"""Reads the description of the MPI interface: api/*.api (functions) and api/*.txt (types, handles, constants).

A function is one logical line; lines that begin with white space continue it:

    Name [attributes] parameter parameter ...

    parameter   [+]name:kind[(arguments)][?][> | <> | #][@condition]
        +       only in the large-count form
        ?       the null handle, or a null pointer, is allowed
        >  <>   output, in and out
        #       the handle itself, not the object behind it
        @name   counts only when `name` says so: at the root where name is a root, unless MPI_IN_PLACE where name is
                a buffer, unless MPI_NO_OP where it is an operation
    attributes
        done         implemented: the binding calls mpi_<name in lower case>
        large        has a form with the suffix _c
        anytime      may be called before initialization and after finalization
        nolock       the binding does not take the library lock
        vci         only the lock of the vci that the communicator, the request or all of the requests have, if they have
                     one (client/progress/vci.h)
        schedule=x   carried out by the function entry_x, which writes the steps: at once, or, with an output request, later; with hints
                     as well, at each start of that request (entries.py)
        waits        may wait for other ranks, or starts a collective: what others see it do
        tool         MPI_T: errors are returned, never raised; only between MPI_T_init_thread and MPI_T_finalize (unless anytime)
        convert      between handle and integer, done by the handle table
        as=Name      shares the semantics function of Name
        form         the semantics function gets a last argument `bool large`: called through the suffix _c
        returns=T    result that is no error code
        errors=what  file: the default error handler of files hears of errors, whatever the parameters are;
                     otherwise the parameter of this name is the error handler that does

Kinds are listed in kinds.py."""

import os
import re
from dataclasses import dataclass, field

PARAMETER = re.compile(
    r'(?P<large>\+)?(?P<name>\w+):(?P<kind>\w+)(\((?P<args>[^()]*)\))?(?P<optional>\?)?(?P<direction><>|>|#)?(@(?P<when>\w+))?$')
ATTRIBUTES = {'done', 'large', 'anytime', 'nolock', 'vci', 'tool', 'convert', 'as', 'form', 'returns', 'errors', 'schedule', 'waits'}


class DescriptionError(Exception):
    pass


@dataclass
class Parameter:
    name: str
    kind: str
    args: list
    optional: bool = False
    direction: str = ''
    when: str = None
    large_only: bool = False


@dataclass
class Function:
    name: str                 # without MPI_
    chapter: str
    attributes: dict
    parameters: list
    variadic: bool = False

    def has(self, attribute):
        return attribute in self.attributes

    def get(self, attribute, default=None):
        return self.attributes.get(attribute, default)

    def parameter(self, name):
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        return None

    def of_kind(self, *kinds):
        return [p for p in self.parameters if p.kind in kinds]


@dataclass
class Section:
    """One [section] of a .txt file: its first word, the rest of its title, and its lines."""
    kind: str
    title: str
    lines: list = field(default_factory=list)


def logical_lines(path):
    """Yields (line number, text) of a file without comments and with continuation lines joined."""
    number, text = 0, ''
    with open(path, encoding='ascii') as file:
        for i, line in enumerate(file, 1):
            line = line.rstrip()
            if line.startswith('#') or not line:
                continue
            if line[0].isspace():
                text += ' ' + line.strip()
            else:
                if text:
                    yield number, text
                number, text = i, line
    if text:
        yield number, text


def split_words(text):
    """Words separated by blanks outside of parentheses."""
    return re.findall(r'(?:[^\s()]|\([^()]*\))+', text)


def parse_function(text, chapter):
    match = re.match(r'(\w+)(?:\s*\[([^\]]*)\])?\s*(.*)$', text)
    if not match:
        raise DescriptionError('not a function line')
    attributes = {}
    for word in (match[2] or '').split():
        key, _, value = word.partition('=')
        if key not in ATTRIBUTES:
            raise DescriptionError(f'unknown attribute {key}')
        attributes[key] = value or True
    function = Function(match[1], chapter, attributes, [])
    for word in split_words(match[3]):
        if word == '...':
            function.variadic = True
            continue
        part = PARAMETER.match(word)
        if not part:
            raise DescriptionError(f'cannot read parameter "{word}"')
        args = [a.strip() for a in part['args'].split(',')] if part['args'] else []
        function.parameters.append(Parameter(part['name'], part['kind'], args, bool(part['optional']),
                                             part['direction'] or '', part['when'], bool(part['large'])))
    names = [p.name for p in function.parameters]
    for parameter in function.parameters:
        if parameter.when and parameter.when not in names:
            raise DescriptionError(f'{parameter.name}: no parameter {parameter.when}')
    return function


def read_functions(folder):
    """All functions, in alphabetical order."""
    functions = {}
    for file in sorted(os.listdir(folder)):
        if not file.endswith('.api'):
            continue
        path = os.path.join(folder, file)
        for number, text in logical_lines(path):
            try:
                function = parse_function(text, file[:-4])
            except DescriptionError as error:
                raise DescriptionError(f'{path}:{number}: {error}') from None
            if function.name in functions:
                raise DescriptionError(f'{path}:{number}: {function.name} is described twice')
            functions[function.name] = function
    return [functions[name] for name in sorted(functions)]


def read_sections(path):
    sections = []
    for _, text in logical_lines(path):
        match = re.match(r'\[(\w+)\s*(.*)\]$', text)
        if match:
            sections.append(Section(match[1], match[2]))
        else:
            sections[-1].lines.append(text)
    return sections
