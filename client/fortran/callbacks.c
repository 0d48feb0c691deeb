/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Procedures that take Fortran functions: operations, error handlers, generalized requests, data
 * representations (attributes have attributes.c). A Fortran function gets its arguments by address,
 * handles as INTEGER or as the types of mpi_f08, which are the same here (MPI-5.0 section 19.3.5).
 */
#include "client/fortran/closure.h"
#include "client/fortran/support.h"

typedef void callback_fn(void);

/* Other names of a definition p<name>: of the standard's interface, of mpi_f08 and its twin. */
#define CALLBACK_NAMES(name)                                                                       \
    FORTRAN_ALIAS(mpi_##name##_, pmpi_##name##_)                                                   \
    FORTRAN_ALIAS(mpi_##name##_f08_, pmpi_##name##_)                                               \
    FORTRAN_ALIAS(pmpi_##name##_f08_, pmpi_##name##_)

/* ---- operations ---- */

typedef void callback_op(void *in, void *inout, void *n, MPI_Fint *type);

/* (invec, inoutvec, len, datatype); len is an INTEGER or, in the large-count form, of count kind.
 */
static void callback_on_op(callback_fn *fortran, void *const *const *args)
{
    MPI_Fint type = type_out(*(MPI_Datatype *)*args[3]);
    ((callback_op *)fortran)(*args[0], *args[1], *args[2], &type);
}

FORTRAN_API void pmpi_op_create_(callback_fn *user_fn, const MPI_Fint *commute, MPI_Fint *op,
                                 MPI_Fint *ierror);
void pmpi_op_create_(callback_fn *user_fn, const MPI_Fint *commute, MPI_Fint *op, MPI_Fint *ierror)
{
    MPI_Op c_op = MPI_OP_NULL;
    void *code = closure_of(user_fn, callback_on_op, 4);
    int err = code ? MPI_Op_create((MPI_User_function *)code, fortran_is_true(*commute), &c_op)
                   : MPI_ERR_NO_MEM;
    if (err == MPI_SUCCESS)
        *op = op_out(c_op);
    fortran_error(ierror, err);
}
CALLBACK_NAMES(op_create)

FORTRAN_API void pmpi_op_create_c_(callback_fn *user_fn, const MPI_Fint *commute, MPI_Fint *op,
                                   MPI_Fint *ierror);
void pmpi_op_create_c_(callback_fn *user_fn, const MPI_Fint *commute, MPI_Fint *op,
                       MPI_Fint *ierror)
{
    MPI_Op c_op = MPI_OP_NULL;
    void *code = closure_of(user_fn, callback_on_op, 4);
    int err = code ? MPI_Op_create_c((MPI_User_function_c *)code, fortran_is_true(*commute), &c_op)
                   : MPI_ERR_NO_MEM;
    if (err == MPI_SUCCESS)
        *op = op_out(c_op);
    fortran_error(ierror, err);
}
CALLBACK_NAMES(op_create_c)

/* ---- error handlers ---- */

typedef void callback_error(MPI_Fint *object, int *code);

/* (object, error_code, ...): what follows is the implementation's, and Fortran gets none of it. */
#define CALLBACK_ERRHANDLER(name, type, word, Name)                                                \
    static void callback_on_##word##_error(callback_fn *fortran, void *const *const *args)         \
    {                                                                                              \
        MPI_Fint object = word##_out(*(type *)*args[0]);                                           \
        ((callback_error *)fortran)(&object, *args[1]);                                            \
    }                                                                                              \
    FORTRAN_API void pmpi_##name##_(callback_fn *fn, MPI_Fint *errhandler, MPI_Fint *ierror);      \
    void pmpi_##name##_(callback_fn *fn, MPI_Fint *errhandler, MPI_Fint *ierror)                   \
    {                                                                                              \
        MPI_Errhandler handler = MPI_ERRHANDLER_NULL;                                              \
        void *code = closure_of(fn, callback_on_##word##_error, 2);                                \
        int err = code ? MPI_##Name##_create_errhandler((MPI_##Name##_errhandler_function *)code,  \
                                                        &handler)                                  \
                       : MPI_ERR_NO_MEM;                                                           \
        if (err == MPI_SUCCESS)                                                                    \
            *errhandler = errhandler_out(handler);                                                 \
        fortran_error(ierror, err);                                                                \
    }                                                                                              \
    CALLBACK_NAMES(name)

CALLBACK_ERRHANDLER(comm_create_errhandler, MPI_Comm, comm, Comm)
CALLBACK_ERRHANDLER(file_create_errhandler, MPI_File, file, File)
CALLBACK_ERRHANDLER(session_create_errhandler, MPI_Session, session, Session)
CALLBACK_ERRHANDLER(win_create_errhandler, MPI_Win, win, Win)

/* ---- generalized requests ---- */

typedef void callback_query(MPI_Aint *extra_state, MPI_Status *status, MPI_Fint *ierror);
typedef void callback_free(MPI_Aint *extra_state, MPI_Fint *ierror);
typedef void callback_cancel(MPI_Aint *extra_state, MPI_Fint *complete, MPI_Fint *ierror);

/* The extra state is the caller's variable itself, which its functions may change, as it is in C
 * and in other libraries. */
struct callback_request {
    callback_fn *query, *free, *cancel;
    MPI_Aint *extra_state;
};

static int callback_on_query(void *context, MPI_Status *status)
{
    struct callback_request *r = context;
    MPI_Fint err = MPI_SUCCESS;
    ((callback_query *)r->query)(r->extra_state, status, &err);
    return err;
}

static int callback_on_free(void *context)
{
    struct callback_request *r = context;
    MPI_Fint err = MPI_SUCCESS;
    ((callback_free *)r->free)(r->extra_state, &err);
    free(r);
    return err;
}

static int callback_on_cancel(void *context, int complete)
{
    struct callback_request *r = context;
    MPI_Fint err = MPI_SUCCESS, flag = fortran_logical(complete);
    ((callback_cancel *)r->cancel)(r->extra_state, &flag, &err);
    return err;
}

FORTRAN_API void pmpi_grequest_start_(callback_fn *query_fn, callback_fn *free_fn,
                                      callback_fn *cancel_fn, MPI_Aint *extra_state,
                                      MPI_Fint *request, MPI_Fint *ierror);
void pmpi_grequest_start_(callback_fn *query_fn, callback_fn *free_fn, callback_fn *cancel_fn,
                          MPI_Aint *extra_state, MPI_Fint *request, MPI_Fint *ierror)
{
    MPI_Request c_request = MPI_REQUEST_NULL;
    struct callback_request *r = malloc(sizeof *r);
    int err = MPI_ERR_NO_MEM;
    if (r) {
        *r = (struct callback_request){query_fn, free_fn, cancel_fn, extra_state};
        err = MPI_Grequest_start(callback_on_query, callback_on_free, callback_on_cancel, r,
                                 &c_request);
    }
    if (err == MPI_SUCCESS)
        *request = request_out(c_request);
    else
        free(r);
    fortran_error(ierror, err);
}
CALLBACK_NAMES(grequest_start)

/* ---- data representations ---- */

typedef void callback_extent(MPI_Fint *type, MPI_Aint *extent, MPI_Aint *extra, MPI_Fint *ierror);
typedef void callback_convert(void *userbuf, MPI_Fint *type, void *count, void *filebuf,
                              MPI_Offset *position, MPI_Aint *extra, MPI_Fint *ierror);

struct callback_datarep {
    callback_fn *read, *write, *extent;
    MPI_Aint extra_state;
};

static int callback_on_extent(MPI_Datatype type, MPI_Aint *extent, void *context)
{
    struct callback_datarep *d = context;
    MPI_Fint err = MPI_SUCCESS, f_type = type_out(type);
    ((callback_extent *)d->extent)(&f_type, extent, &d->extra_state, &err);
    return err;
}

static int callback_convert_now(callback_fn *fn, struct callback_datarep *d, void *userbuf,
                                MPI_Datatype type, void *count, void *filebuf, MPI_Offset position)
{
    MPI_Fint err = MPI_SUCCESS, f_type = type_out(type);
    ((callback_convert *)fn)(userbuf, &f_type, count, filebuf, &position, &d->extra_state, &err);
    return err;
}

#define CALLBACK_CONVERT(suffix, count_type)                                                       \
    static int callback_on_read##suffix(void *userbuf, MPI_Datatype type, count_type count,        \
                                        void *filebuf, MPI_Offset position, void *context)         \
    {                                                                                              \
        struct callback_datarep *d = context;                                                      \
        return callback_convert_now(d->read, d, userbuf, type, &count, filebuf, position);         \
    }                                                                                              \
    static int callback_on_write##suffix(void *userbuf, MPI_Datatype type, count_type count,       \
                                         void *filebuf, MPI_Offset position, void *context)        \
    {                                                                                              \
        struct callback_datarep *d = context;                                                      \
        return callback_convert_now(d->write, d, userbuf, type, &count, filebuf, position);        \
    }
CALLBACK_CONVERT(, int)
CALLBACK_CONVERT(_c, MPI_Count)

/* Stands for no conversion; never called. */
FORTRAN_API void mpi_conversion_fn_null_(void);
void mpi_conversion_fn_null_(void)
{
}
FORTRAN_API void mpi_conversion_fn_null_c_(void);
void mpi_conversion_fn_null_c_(void)
{
}

/* What the library keeps until its end keeps these too: there is no call that takes a data
 * representation away (MPI-5.0 section 14.5.3). */
static struct callback_datarep *callback_datarep_new(callback_fn *read, callback_fn *write,
                                                     callback_fn *extent, MPI_Aint extra_state)
{
    struct callback_datarep *d = malloc(sizeof *d);
    if (d)
        *d = (struct callback_datarep){read, write, extent, extra_state};
    return d;
}

#define CALLBACK_REGISTER(name, suffix, null)                                                      \
    FORTRAN_API void pmpi_##name##_(                                                               \
        const char *datarep, callback_fn *read_fn, callback_fn *write_fn, callback_fn *extent_fn,  \
        const MPI_Aint *extra_state, MPI_Fint *ierror, size_t datarep_len);                        \
    void pmpi_##name##_(const char *datarep, callback_fn *read_fn, callback_fn *write_fn,          \
                        callback_fn *extent_fn, const MPI_Aint *extra_state, MPI_Fint *ierror,     \
                        size_t datarep_len)                                                        \
    {                                                                                              \
        int err = MPI_ERR_NO_MEM;                                                                  \
        char *c_datarep = fortran_string(datarep, datarep_len);                                    \
        struct callback_datarep *d =                                                               \
            callback_datarep_new(read_fn, write_fn, extent_fn, *extra_state);                      \
        if (c_datarep && d)                                                                        \
            err = MPI_Register_datarep##suffix(                                                    \
                c_datarep, read_fn == null ? NULL : callback_on_read##suffix,                      \
                write_fn == null ? NULL : callback_on_write##suffix, callback_on_extent, d);       \
        if (err != MPI_SUCCESS)                                                                    \
            free(d);                                                                               \
        free(c_datarep);                                                                           \
        fortran_error(ierror, err);                                                                \
    }                                                                                              \
    CALLBACK_NAMES(name)
CALLBACK_REGISTER(register_datarep, , mpi_conversion_fn_null_)
CALLBACK_REGISTER(register_datarep_c, _c, mpi_conversion_fn_null_c_)
