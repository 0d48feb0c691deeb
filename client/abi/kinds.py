# SPDX-License-Identifier: BSD-3-Clause
"""The kinds of parameters: their C types in mpi.h (both forms) and in the semantics functions.

    comm group type anytype op info errhandler request message win file session
                 handles; semantics get the object (`struct comm *`); `type` must be committed, `anytype` need not;
                 out: `struct comm **ret_x`; in-out: `struct comm **x`
    types(n[,counts]) anytypes(n) requests(n) infos(n)
                 arrays of handles, given raw; n names the count, or the communicator with one element for each peer
                 (local: each member of the local group); types whose count is 0 need not be valid
    count        int / MPI_Count, not negative; icount: any sign; bigcount: MPI_Count in both forms
    aint size    MPI_Aint in both forms, size: not negative; aintc sizec: MPI_Aint / MPI_Count
    offset       MPI_Offset; dispunit: int / MPI_Aint, positive
    int nonneg logical keyval
                 int with or without a check; outputs are given raw
    dest source root target rank(x) tag rtag
                 ranks and tags with their ranges: dest may be MPI_PROC_NULL, source and rtag may be wild, target is a
                 rank of the window (checked by RMA itself), rank(x) one of x and nothing else
    counts(n[,local]) displs cdispls adispls wdispls
                 arrays given as `struct intvec`: int or MPI_Count; int or MPI_Aint; int or MPI_Count;
                 MPI_Aint or MPI_Count; MPI_Aint in both forms; displacements with (n): no null pointer unless n is 0
    ints aints bigcounts weights ranges         arrays given raw; with (n): no null pointer unless n is 0
    string       const char * or, out, char *
    cbuf(count,type[,inplace][,each]) buf(...)  message buffers (each: with a block for each rank); cptr ptr: other addresses (ptr>: no null pointer)
    status statuses                             MPI_Status * and arrays
    fn(T)        pointer to a function of type T, null if ? allows it; widefn(T): T in one form and T_c in the other, semantics get both
    raw(T)       any C type, given raw
"""

HANDLES = {
    'comm': ('MPI_Comm', 'comm'), 'group': ('MPI_Group', 'group'), 'type': ('MPI_Datatype', 'datatype'),
    'anytype': ('MPI_Datatype', 'datatype'), 'op': ('MPI_Op', 'op'), 'info': ('MPI_Info', 'info'),
    'errhandler': ('MPI_Errhandler', 'errhandler'), 'request': ('MPI_Request', 'request'),
    'message': ('MPI_Message', 'message'), 'win': ('MPI_Win', 'win'), 'file': ('MPI_File', 'file'),
    'session': ('MPI_Session', 'session'),
}
HANDLE_ARRAYS = {'types': 'type', 'anytypes': 'anytype', 'requests': 'request', 'infos': 'info'}

# kind: (type in the small form, in the large form, in semantics)
SCALARS = {
    'count': ('int', 'MPI_Count', 'MPI_Count'), 'icount': ('int', 'MPI_Count', 'MPI_Count'),
    'bigcount': ('MPI_Count', 'MPI_Count', 'MPI_Count'),
    'aint': ('MPI_Aint', 'MPI_Aint', 'MPI_Aint'), 'size': ('MPI_Aint', 'MPI_Aint', 'MPI_Aint'),
    'aintc': ('MPI_Aint', 'MPI_Count', 'MPI_Count'), 'sizec': ('MPI_Aint', 'MPI_Count', 'MPI_Count'),
    'offset': ('MPI_Offset', 'MPI_Offset', 'MPI_Offset'), 'dispunit': ('int', 'MPI_Aint', 'MPI_Aint'),
}
INTS = {'int', 'nonneg', 'logical', 'keyval', 'dest', 'source', 'root', 'target', 'rank', 'tag', 'rtag'}
VECTORS = {'counts': ('int', 'MPI_Count'), 'displs': ('int', 'MPI_Aint'), 'cdispls': ('int', 'MPI_Count'),
           'adispls': ('MPI_Aint', 'MPI_Count'), 'wdispls': ('MPI_Aint', 'MPI_Aint')}
ARRAYS = {'ints': 'int', 'aints': 'MPI_Aint', 'bigcounts': 'MPI_Count'}
LISTS = {'displs', 'cdispls', 'adispls', 'wdispls', 'ints', 'aints', 'bigcounts', 'weights', 'ranges'}
POINTERS = {'cbuf': 'const void *', 'buf': 'void *', 'cptr': 'const void *', 'ptr': 'void *'}


def join(ctype, name):
    return ctype + name if ctype.endswith('*') else f'{ctype} {name}'


def api_declaration(p, large):
    """The parameter as it stands in mpi.h."""
    k, out, name = p.kind, p.direction in ('>', '<>'), p.name
    if k in HANDLES:
        return join(HANDLES[k][0] + (' *' if out else ''), name)
    if k in HANDLE_ARRAYS:
        return f'{"" if out else "const "}{HANDLES[HANDLE_ARRAYS[k]][0]} {name}[]'
    if k in SCALARS:
        return join(SCALARS[k][large] + (' *' if out else ''), name)
    if k in INTS:
        return join('int' + (' *' if out else ''), name)
    if k in VECTORS:
        return f'const {VECTORS[k][large]} {name}[]'
    if k in ARRAYS:
        return f'{"" if out else "const "}{ARRAYS[k]} {name}[]'
    if k == 'weights':
        return ('int *' if out else 'const int *') + name
    if k == 'ranges':
        return f'int {name}[][3]'
    if k == 'string':
        return ('char *' if out else 'const char *') + name
    if k in POINTERS:
        return POINTERS[k] + name
    if k == 'status':
        return ('MPI_Status *' if out else 'const MPI_Status *') + name
    if k == 'statuses':
        return 'MPI_Status *' + name
    if k == 'fn':
        return f'{p.args[0]} *{name}'
    if k == 'widefn':
        return f'{p.args[0]}{"_c" if large else ""} *{name}'
    if k == 'raw':
        return join(p.args[0] + (' *' if out else ''), name)
    raise KeyError(f'no kind {k}')


def semantics_declarations(p):
    """The parameter as it stands in the prototype of the semantics function: a list, since a kind may need two."""
    k, out, name = p.kind, p.direction in ('>', '<>'), p.name
    if k in HANDLES:
        if p.direction == '#':
            return [join(HANDLES[k][0], name)]
        struct = f'struct {HANDLES[k][1]} *'
        return [struct + ('*ret_' if p.direction == '>' else '*' if out else '') + name]
    if k in SCALARS:
        if out:
            return [f'{SCALARS[k][2]} *{"ret_" if p.direction == ">" else ""}{name}']
        return [f'{SCALARS[k][2]} {name}']
    if k in VECTORS:
        return [f'struct intvec {name}']
    if k == 'widefn':
        return [f'{p.args[0]} *{name}', f'{p.args[0]}_c *{name}_c']
    return [api_declaration(p, False)]
