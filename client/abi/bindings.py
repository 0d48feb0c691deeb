# SPDX-License-Identifier: BSD-3-Clause
"""Writes the exported functions, one .c file per chapter.

Each kind of parameter contributes to a binding, in this order: its object (handle look-up), its check, its arguments in
the call of the semantics function, and what is done with its result afterwards. A new special case is a new kind here
and in kinds.py, never the name of a function."""

import os

from description import DescriptionError
from header import result_type, wrap
from kinds import HANDLES, INTS, LISTS, SCALARS, VECTORS, api_declaration
from semantics import semantics_name

TOP = '''/* SPDX-License-Identifier: BSD-3-Clause */
/* Generated from client/abi/api/{chapter}.api; do not edit. */

/* The rest of the library is compiled with hidden visibility; what mpi.h declares is exported. */
#pragma GCC visibility push(default)
#include "mpi.h"
#pragma GCC visibility pop

#include "client/abi/check.h"
'''
TOOLS = '#include "client/tools/tools.h"\n'

NULL_HANDLES = {'comm': 'MPI_COMM_NULL', 'group': 'MPI_GROUP_NULL', 'type': 'MPI_DATATYPE_NULL',
                'anytype': 'MPI_DATATYPE_NULL', 'op': 'MPI_OP_NULL', 'info': 'MPI_INFO_NULL',
                'errhandler': 'MPI_ERRHANDLER_NULL', 'request': 'MPI_REQUEST_NULL', 'message': 'MPI_MESSAGE_NULL',
                'win': 'MPI_WIN_NULL', 'file': 'MPI_FILE_NULL', 'session': 'MPI_SESSION_NULL'}
CONTEXTS = ('comm', 'win', 'file', 'session')
NEGATIVE = {'count': 'MPI_ERR_COUNT', 'bigcount': 'MPI_ERR_COUNT', 'nonneg': 'MPI_ERR_ARG', 'size': 'MPI_ERR_SIZE',
            'sizec': 'MPI_ERR_SIZE'}
# Kinds that count nothing in a process that takes no part in a rooted collective over an intercommunicator.
SIGNIFICANT = {'type', 'anytype', 'count', 'counts', 'buf', 'cbuf'}
# Scalars whose output has another type in the small form than in semantics: how the value is brought back.
NARROWED = {'count': 'check_fit_int({v})', 'dispunit': 'check_fit_int({v})', 'aintc': '(MPI_Aint){v}',
            'sizec': '(MPI_Aint){v}'}


def object_kind(kind):
    return 'OBJECT_' + HANDLES[kind][1].upper()


def is_object(p):
    return p.kind in HANDLES and p.direction != '#'


def indented(line):
    return line if not line or line.endswith(':') else '    ' + line


class Binding:
    """The text of one function in one of its forms."""

    def __init__(self, function, large):
        self.function = function
        self.large = large
        self.parameters = [p for p in function.parameters if large or not p.large_only]
        self.name = function.name + ('_c' if large else '')
        self.context = self.find_context()
        self.bad_argument = 'MPI_T_ERR_INVALID' if function.has('tool') else 'MPI_ERR_ARG'
        self.root = next(iter(function.of_kind('root')), None)
        self.comm = next((p for p in function.of_kind('comm') if p.direction == ''), None)

    def find_context(self):
        """The parameter whose error handler hears of errors, if any."""
        if self.function.has('errors'):
            return None
        for p in self.parameters:
            if p.kind in CONTEXTS and p.direction in ('', '<>'):
                return p
        return None

    # Pieces

    def prototype(self, prefix, end):
        declarations = [api_declaration(p, self.large) for p in self.parameters]
        if self.function.variadic:
            declarations.append('...')
        text = wrap(f'{result_type(self.function)} {prefix}{self.name}(', declarations or ['void'])
        return text[:-1] + end

    def lookup(self, p):
        """The object behind an input handle; NULL for null handles and rubbish."""
        struct, kind = HANDLES[p.kind][1], object_kind(p.kind)
        if p.direction == '<>':
            return f'{p.name} ? (struct {struct} *)handle_get({kind}, (uintptr_t)*{p.name}) : NULL'
        count = self.count_of(p)
        if count:
            return f'check_type_of({p.name}, {count})'
        return f'(struct {struct} *)handle_get({kind}, (uintptr_t){p.name})'

    def count_of(self, p):
        """The name of the count of elements of this type that a buffer holds, if it is one number."""
        if p.kind != 'type':
            return None
        for q in self.function.of_kind('cbuf') + self.function.of_kind('buf'):
            if len(q.args) > 1 and q.args[1] == p.name and self.function.parameter(q.args[0]).kind == 'count':
                return q.args[0]
        return None

    def conditions(self, p):
        """C expressions that must all hold for the parameter to count."""
        terms = []
        if p.when:
            other = self.function.parameter(p.when)
            terms.append({'root': 'at_root', 'op': f'{p.when} != MPI_NO_OP'}.get(other.kind, f'{p.when} != MPI_IN_PLACE'))
        if self.root and p.kind in SIGNIFICANT and 'at_root' not in terms:
            # The side of the root that MPI_IN_PLACE can stand for has no meaning between two groups.
            side = 'check_is_opposite' if p.when or 'inplace' in p.args else 'check_takes_part'
            terms.append(f'{side}(o_{self.comm.name}, {self.root.name})')
        return terms

    def array_length(self, p):
        """Number of elements of an array(n): n is a count, or a communicator with one element for each peer."""
        first = self.function.parameter(p.args[0])
        if first.kind != 'comm':
            return first.name
        return f'o_{first.name}->size' if 'local' in p.args else f'check_n_peers(o_{first.name})'

    def check_lines(self, p):
        """(condition of failure, expression of the error) pairs; an empty condition: the expression is 0 when well."""
        k, name, quoted = p.kind, p.name, f'"{p.name}"'
        if is_object(p):
            return self.object_checks(p)
        if k in SCALARS or k in INTS:
            return self.scalar_checks(p)
        if k in ('buf', 'cbuf'):
            return self.buffer_checks(p)
        if k == 'counts' and p.args:
            return [('', f'check_counts({quoted}, {self.vector(p)}, {self.array_length(p)})')]
        if k == 'requests':
            return [('', f'check_requests({quoted}, {name}, {self.array_length(p)})')]
        if k in ('types', 'anytypes') and p.args:
            counts = f'&v_{p.args[1]}' if len(p.args) > 1 else 'NULL'
            committed = 'true' if k == 'types' else 'false'
            return [('', f'check_types({quoted}, {name}, {self.array_length(p)}, {committed}, {counts})')]
        if k in LISTS and p.args:
            return [(f'!{name} && {self.array_length(p)} > 0', f'check_null_pointer({self.bad_argument}, {quoted})')]
        if (k == 'ptr' and p.direction == '>') or (k in ('fn', 'widefn') and not p.optional):
            return [self.null_check(p)]
        if k in ('string', 'status') and not p.optional and not (k == 'status' and p.direction == '>'):
            return [self.null_check(p)]
        return []

    def null_check(self, p):
        return f'!{p.name}', f'check_null_pointer({self.bad_argument}, "{p.name}")'

    def object_checks(self, p):
        if p.direction == '>':
            return [self.null_check(p)]
        kind = object_kind(p.kind)
        value = f'*{p.name}' if p.direction else p.name
        bad = f'!o_{p.name}' + (f' && {value} != {NULL_HANDLES[p.kind]}' if p.optional else '')
        checks = [self.null_check(p)] if p.direction else []
        checks.append((bad, f'check_bad_handle({kind}, "{p.name}", (uintptr_t){value})'))
        if p.kind == 'type' and not p.direction:
            checks.append((f'!o_{p.name}->committed', f'check_bad_type("{p.name}", o_{p.name})'))
        return checks

    def scalar_checks(self, p):
        k, name, quoted = p.kind, p.name, f'"{p.name}"'
        comm = f'o_{self.comm.name}' if self.comm else None
        if p.direction:
            return [] if p.optional else [self.null_check(p)]
        if k in NEGATIVE:
            return [(f'{name} < 0', f'check_negative({NEGATIVE[k]}, {quoted}, {name})')]
        if k == 'dispunit':
            return [(f'{name} <= 0', f'check_not_positive(MPI_ERR_ARG, {quoted}, {name})')]
        if k in ('dest', 'source'):
            wild = 'true' if k == 'source' else 'false'
            return [(f'!check_{k}_ok({comm}, {name})', f'check_bad_rank({quoted}, {name}, {comm}, {wild})')]
        if k == 'root':
            return [(f'!check_root_ok({comm}, {name})', f'check_bad_root({quoted}, {name}, {comm})')]
        if k == 'rank':
            return [(f'(unsigned){name} >= (unsigned)o_{p.args[0]}->size',
                     f'check_bad_member({quoted}, {name}, o_{p.args[0]})')]
        if k == 'tag':
            return [(f'{name} < 0', f'check_bad_tag({quoted}, {name}, false)')]
        if k == 'rtag':
            return [(f'{name} < 0 && {name} != MPI_ANY_TAG', f'check_bad_tag({quoted}, {name}, true)')]
        if k == 'keyval':
            return [(f'{name} == MPI_KEYVAL_INVALID', f'check_bad_keyval({quoted}, {name})')]
        return []

    def buffer_checks(self, p):
        checks, quoted = [], f'"{p.name}"'
        comm = f'o_{self.comm.name}' if self.comm else 'NULL'
        if 'inplace' not in p.args:
            checks.append((f'{p.name} == MPI_IN_PLACE', f'check_bad_in_place({quoted}, NULL)'))
        else:
            allowed = f'{comm}->remote_group' + (' || !at_root' if self.root else '')
            checks.append((f'{p.name} == MPI_IN_PLACE && ({allowed})', f'check_bad_in_place({quoted}, {comm})'))
        pair = [a for a in p.args if a not in ('inplace', 'each')]
        if pair:
            count, datatype = pair
            # A type that does not count here (MPI_IN_PLACE) may be anything: its own conditions are in force as well.
            terms = self.conditions(self.function.parameter(datatype)) + [f'!check_buffer_ok({p.name}, {count}, o_{datatype})']
            checks.append((' && '.join(terms), f'check_null_buffer({quoted}, {count}, o_{datatype})'))
            checks += self.alias_checks(p, pair)
        return checks

    def alias_checks(self, p, pair):
        """What comes may not lie where what goes does; certain where both are the same elements at the same address, unless that is
        MPI_BOTTOM. Between two groups not both of them count."""
        other = next((q for q in self.function.of_kind('cbuf') if q.args[:2] == pair), None)
        if p.kind != 'buf' or not other or 'each' in p.args:
            return []
        bad = f'{p.name} == {other.name} && {p.name} && check_any_data({pair[0]}, o_{pair[1]})'
        bad += f' && !o_{self.comm.name}->remote_group' if self.comm else ''
        return [(bad, f'check_same_buffer("{p.name}", "{other.name}", {"true" if "inplace" in other.args else "false"})')]

    def overlap_lines(self):
        """Buffers that hold several blocks, or one of a length of its own: may this rank's blocks lie where they do? Looked at behind all
        other checks, for it needs counts, displacements and types that are good."""
        sides = self.function.of_kind('cbuf') + self.function.of_kind('buf')
        in_place = next((p for p in sides if 'inplace' in p.args), None)
        if len(sides) != 2 or not in_place or not self.comm or (sides[0].args[:2] == sides[1].args[:2] and 'each' not in sides[0].args and \
                sides[0].args[1:2]):
            return []
        send, recv = sides
        terms = list(dict.fromkeys(['!o_%s->remote_group' % self.comm.name] + self.conditions(send) + self.conditions(recv) +
                                   [f'{in_place.name} != MPI_IN_PLACE']))
        lines = [f'if ({" && ".join(terms)} &&', f'    CHECK_UNLIKELY(check_overlap(o_{self.comm.name}, {self.blocks(send, recv)},']
        lines += [f'                                 {self.blocks(recv, send)}))) {{',
                  f'    err = check_same_place("{send.name}", "{recv.name}", "{in_place.name}");', '    goto out;', '}']
        return lines

    def blocks(self, p, other):
        """A struct check_blocks of what stands behind a buffer's name in the list of parameters; of the other one's, where nothing does."""
        own = []
        for q in self.function.parameters[self.function.parameters.index(p) + 1:]:
            if q.kind in ('buf', 'cbuf', 'comm', 'op'):
                break
            own.append(q)
        found = {q.kind: q for q in own}
        if not found:
            return self.blocks(other, p).replace(f'.buf = {other.name}', f'.buf = {p.name}')
        fields = [f'.buf = {p.name}']
        if 'types' in found:
            fields.append(f'.types = {found["types"].name}')
        else:
            fields.append(f'.type = o_{found["type"].name}')
        if 'counts' in found:
            fields.append(f'.counts = {self.vector(found["counts"])}')
        else:
            fields.append(f'.count = {found["count"].name}')
        if 'displs' in found:
            fields.append(f'.displs = {self.vector(found["displs"])}')
        if 'each' in p.args:
            fields.append('.each = true')
        return f'&(struct check_blocks){{{", ".join(fields)}}}'

    def vector(self, p):
        if any(p.name in q.args[1:] for q in self.parameters if q.kind == 'types'):
            return f'v_{p.name}'
        return self.vector_value(p)

    def vector_value(self, p):
        of = {'int': 'int', 'MPI_Aint': 'aint', 'MPI_Count': 'count'}[VECTORS[p.kind][self.large]]
        return f'intvec_of_{of}({p.name})'

    def narrowed(self, p):
        """Whether the small form brings the value back through a variable of its own."""
        return not self.large and p.direction in ('>', '<>') and p.kind in NARROWED

    def local_lines(self):
        lines = []
        for p in self.function.parameters:
            if p.large_only and not self.large:
                continue
            if p.kind == 'counts' and self.vector(p).startswith('v_'):
                lines.append(f'const struct intvec v_{p.name} = {self.vector_value(p)};')
            if self.narrowed(p):
                lines.append(f'{SCALARS[p.kind][2]} v_{p.name} = 0;')
        return lines

    def arguments(self):
        arguments = []
        for p in self.function.parameters:
            missing = p.large_only and not self.large
            if is_object(p):
                arguments.append(f'&o_{p.name}' if p.direction else f'o_{p.name}')
            elif missing:
                arguments.append('0' if p.kind in SCALARS and not p.direction else 'NULL')
            elif p.kind in VECTORS:
                arguments.append(self.vector(p))
            elif p.kind == 'widefn':
                arguments += ['NULL', p.name] if self.large else [p.name, 'NULL']
            elif self.narrowed(p):
                arguments.append(f'&v_{p.name}')
            else:
                arguments.append(p.name)
        if self.function.has('form'):
            arguments.append('true' if self.large else 'false')
        return arguments

    def after_lines(self):
        """(always, on success only): what outputs give to the application."""
        always, success = [], []
        for p in self.parameters:
            if is_object(p) and p.direction:
                value = f'({HANDLES[p.kind][0]})check_handle_of(o_{p.name}, (uintptr_t){NULL_HANDLES[p.kind]})'
                (success if p.direction == '>' else always).append(f'*{p.name} = {value};')
            elif self.narrowed(p):
                success.append(f'*{p.name} = {NARROWED[p.kind].format(v="v_" + p.name)};')
        return always, success

    def raise_expression(self):
        if self.function.has('tool'):
            return 'err'
        if self.function.get('errors') == 'file':
            return 'raise_on_file(NULL, err, function)'
        if self.context and self.context.kind == 'file':
            return f'raise_on_file(o_{self.context.name}, err, function)'
        if self.function.has('errors'):
            return f'check_raise_with(o_{self.function.get("errors")}, err, function)'
        if self.context and self.context.kind == 'comm':
            return f'raise_on_comm(o_{self.context.name}, err, function)'
        if self.context and self.context.kind == 'session':
            return f'check_raise_session(o_{self.context.name}, err, function)'
        if self.context and self.context.kind == 'win':
            return f'raise_on_win(o_{self.context.name}, err, function)'
        if self.context:
            return 'check_raise_default(err, function)'
        return 'raise_on_comm(err_take_blame(), err, function)'

    # Whole functions

    def text(self):
        if self.function.has('convert'):
            body = self.convert_body()
        elif not self.function.has('done'):
            body = self.unsupported_body()
        elif self.function.has('returns'):
            body = self.plain_body()
        else:
            body = self.body()
        alias = (f'extern __typeof__(PMPI_{self.name}) MPI_{self.name} '
                 f'__attribute__((weak, alias("PMPI_{self.name}")));\n')
        return self.prototype('PMPI_', '') + '\n{\n' + ''.join(indented(line) + '\n' for line in body) + '}\n' + alias

    def phase_lines(self):
        free = self.function.has('anytime') or self.function.has('tool')
        return [] if free else ['check_phase(function);']

    def plain_body(self):
        """Functions whose result is no error code."""
        return [f'return {semantics_name(self.function)}({", ".join(self.arguments())});']

    def convert_body(self):
        p = self.parameters[0]
        result = self.function.get('returns')
        if result == 'int':
            return [f'return handle_toint((uintptr_t){p.name});']
        kind = result[:-1]
        return [f'{HANDLES[kind][0]} result;', '', 'lock_enter();',
                f'result = ({HANDLES[kind][0]})handle_fromint({object_kind(kind)}, {p.name}, '
                f'(uintptr_t){NULL_HANDLES[kind]});',
                'lock_leave();', 'return result;']

    def unsupported_body(self):
        if self.function.has('tool'):
            return [f'(void){p.name};' for p in self.parameters] + ['return MPI_T_ERR_NOT_SUPPORTED;']
        lines = [f'static const char function[] = "MPI_{self.name}";']
        context = self.context if self.context and self.context.kind == 'comm' else None
        if context:
            lines.append(f'struct comm *o_{context.name} = {self.lookup(context)};')
        lines += ['int err;', ''] + self.phase_lines() + ['err = check_unsupported(function);']
        lines += [f'(void){p.name};' for p in self.parameters if p is not context]
        if self.function.has('returns'):
            return lines + [f'(void){self.raise_expression()};', 'return 0;']
        return lines + [f'return {self.raise_expression()};']

    def body(self):
        objects = [p for p in self.parameters if is_object(p)]
        lines = [] if self.function.has('tool') else [f'static const char function[] = "MPI_{self.name}";']
        for p in objects:
            lines.append(f'struct {HANDLES[p.kind][1]} *o_{p.name}' + (' = NULL;' if p.direction == '>' else ';'))
        if self.function.has('vci'):
            lines.append('struct vci *vci;')
        lines += self.local_lines() + ['int err;', ''] + self.phase_lines()
        lines += self.enter_lines()
        if self.function.has('waits'):
            lines.append('calls_enter(function);')
        lines += [f'o_{p.name} = {self.lookup(p)};' for p in objects if p.direction != '>']
        checks = self.all_checks()
        ready = self.function.has('tool') and not self.function.has('anytime')
        if ready:
            lines += ['if (CHECK_UNLIKELY(!tools_are_ready())) {', '    err = MPI_T_ERR_NOT_INITIALIZED;', '    goto out;', '}']
        if checks:
            lines.append('if (CHECK_LIKELY(phase_here->checks)) {')
            if any('at_root' in line for line in checks):
                lines += ['    bool at_root;', '']
            lines += ['    ' + line for line in checks] + ['}']
        lines += [f'v_{p.name} = *{p.name};' for p in self.parameters if self.narrowed(p) and p.direction == '<>']
        lines += wrap(f'err = {semantics_name(self.function)}(', self.arguments() or ['']).split('\n')
        always, success = self.after_lines()
        lines += always
        if success:
            lines.append('if (CHECK_LIKELY(err == MPI_SUCCESS))' + (' {' if len(success) > 1 else ''))
            lines += ['    ' + line for line in success] + (['}'] if len(success) > 1 else [])
        if checks or ready:
            lines.append('out:')
        if not self.function.has('nolock'):
            lines.append('vci_leave(vci);' if self.function.has('vci') else 'lock_leave();')
        if not self.function.has('tool'):
            lines += self.failure_lines()
        return lines + ['return err;']

    def enter_lines(self):
        if self.function.has('nolock'):
            return []
        if not self.function.has('vci'):
            return ['lock_enter();']
        for p in self.parameters:
            if p.kind == 'comm':
                return [f'vci = VCI_ENTER(vci_choose_comm((uintptr_t){p.name}));']
            if p.kind == 'request' and p.direction == '<>':
                return [f'vci = VCI_ENTER(vci_choose_request({p.name} ? (uintptr_t)*{p.name} : 0));']
            if p.kind == 'requests':
                return [f'vci = VCI_ENTER(vci_choose_requests((const uintptr_t *){p.name}, {self.array_length(p)}));']
        raise DescriptionError(f'{self.name} has nothing that has a vci')

    def failure_lines(self):
        """The error handler is called; then there is no object, for who goes on and looks at the handle."""
        lines = [f'    err = {self.raise_expression()};']
        for p in self.parameters:
            if is_object(p) and p.direction == '>':
                lines += [f'    if ({p.name})', f'        *{p.name} = {NULL_HANDLES[p.kind]};']
        return [f'if (CHECK_UNLIKELY(err != MPI_SUCCESS)){" {" if len(lines) > 1 else ""}'] + lines + (['}'] if len(lines) > 1 else [])

    def ordered(self):
        """Parameters in the order of their checks: the communicator, in whose words the others are judged; the root,
        which decides what counts; the other objects; single values; arrays and buffers, which need all of those."""
        def rank(p):
            if p is self.context:
                return 0
            if p is self.root:
                return 1
            if is_object(p):
                return 2
            return 3 if p.kind in SCALARS or p.kind in INTS else 4
        return sorted(self.parameters, key=rank)

    def all_checks(self):
        lines = []
        needs_root = self.needs_root()
        for p in self.ordered():
            conditions = [] if p in (self.context, self.root) else self.conditions(p)
            for bad, error in self.check_lines(p):
                if bad:
                    terms = list(dict.fromkeys(conditions + (bad.split(' && ') if '||' not in bad else [f'({bad})'])))
                    test = ' && '.join(terms) if len(terms) > 1 else bad
                    lines += [f'if (CHECK_UNLIKELY({test})) {{', f'    err = {error};', '    goto out;', '}']
                elif conditions:
                    lines += [f'if ({" && ".join(conditions)}) {{', f'    err = {error};',
                              '    if (CHECK_UNLIKELY(err))', '        goto out;', '}']
                else:
                    lines += [f'err = {error};', 'if (CHECK_UNLIKELY(err))', '    goto out;']
            if p is self.root and needs_root:
                lines.append(f'at_root = check_at_root(o_{self.comm.name}, {p.name});')
        return lines + self.overlap_lines()

    def needs_root(self):
        """Whether any check asks at_root."""
        return self.root and any('inplace' in p.args or ('at_root' in self.conditions(p) and self.check_lines(p))
                                 for p in self.parameters)


def write(folder, functions):
    """Writes bindings_<chapter>.c; returns the names of the files."""
    names = []
    for chapter in sorted({function.chapter for function in functions}):
        parts = [TOP.format(chapter=chapter)]
        if any(f.chapter == chapter and f.has('tool') for f in functions):
            parts[0] += TOOLS
        for function in functions:
            if function.chapter != chapter:
                continue
            for large in (False, True) if function.has('large') else (False,):
                parts.append(Binding(function, large).text())
        name = f'bindings_{chapter}.c'
        with open(os.path.join(folder, name), 'w', encoding='ascii') as file:
            file.write('\n'.join(parts))
        names.append(name)
    return names
