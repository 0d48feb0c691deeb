/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/object/errcode.h"

#include "client/abi/semantics.h"
#include "client/client.h"
#include "client/object/err.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMED(name, text) [name] = {#name, text}

static const struct {
    const char *name, *text;
} predefined[] = {
    NAMED(MPI_SUCCESS, "no error"),
    NAMED(MPI_ERR_BUFFER, "invalid buffer pointer"),
    NAMED(MPI_ERR_COUNT, "invalid count argument"),
    NAMED(MPI_ERR_TYPE, "invalid datatype argument"),
    NAMED(MPI_ERR_TAG, "invalid tag argument"),
    NAMED(MPI_ERR_COMM, "invalid communicator"),
    NAMED(MPI_ERR_RANK, "invalid rank"),
    NAMED(MPI_ERR_REQUEST, "invalid request"),
    NAMED(MPI_ERR_ROOT, "invalid root"),
    NAMED(MPI_ERR_GROUP, "invalid group"),
    NAMED(MPI_ERR_OP, "invalid operation"),
    NAMED(MPI_ERR_TOPOLOGY, "invalid topology"),
    NAMED(MPI_ERR_DIMS, "invalid dimension argument"),
    NAMED(MPI_ERR_ARG, "invalid argument"),
    NAMED(MPI_ERR_UNKNOWN, "unknown error"),
    NAMED(MPI_ERR_TRUNCATE, "message truncated on receive"),
    NAMED(MPI_ERR_OTHER, "other error"),
    NAMED(MPI_ERR_INTERN, "internal error"),
    NAMED(MPI_ERR_PENDING, "pending request"),
    NAMED(MPI_ERR_IN_STATUS, "error code is in the status"),
    NAMED(MPI_ERR_ACCESS, "permission denied"),
    NAMED(MPI_ERR_AMODE, "invalid file access mode"),
    NAMED(MPI_ERR_ASSERT, "invalid assert argument"),
    NAMED(MPI_ERR_BAD_FILE, "invalid file name"),
    NAMED(MPI_ERR_BASE, "invalid base address"),
    NAMED(MPI_ERR_CONVERSION, "error in a data conversion function"),
    NAMED(MPI_ERR_DISP, "invalid displacement"),
    NAMED(MPI_ERR_DUP_DATAREP, "data representation is already defined"),
    NAMED(MPI_ERR_FILE_EXISTS, "file exists"),
    NAMED(MPI_ERR_FILE_IN_USE, "file is in use"),
    NAMED(MPI_ERR_FILE, "invalid file handle"),
    NAMED(MPI_ERR_INFO_KEY, "invalid info key"),
    NAMED(MPI_ERR_INFO_NOKEY, "info key is not defined"),
    NAMED(MPI_ERR_INFO_VALUE, "invalid info value"),
    NAMED(MPI_ERR_INFO, "invalid info object"),
    NAMED(MPI_ERR_IO, "input or output error"),
    NAMED(MPI_ERR_KEYVAL, "invalid attribute key"),
    NAMED(MPI_ERR_LOCKTYPE, "invalid lock type"),
    NAMED(MPI_ERR_NAME, "service name is not published"),
    NAMED(MPI_ERR_NO_MEM, "out of memory"),
    NAMED(MPI_ERR_NOT_SAME, "collective argument differs between processes"),
    NAMED(MPI_ERR_NO_SPACE, "not enough space"),
    NAMED(MPI_ERR_NO_SUCH_FILE, "no such file"),
    NAMED(MPI_ERR_PORT, "invalid port name"),
    NAMED(MPI_ERR_QUOTA, "quota exceeded"),
    NAMED(MPI_ERR_READ_ONLY, "read-only file or file system"),
    NAMED(MPI_ERR_RMA_ATTACH, "memory cannot be attached"),
    NAMED(MPI_ERR_RMA_CONFLICT, "conflicting accesses to a window"),
    NAMED(MPI_ERR_RMA_RANGE, "target memory is not part of the window"),
    NAMED(MPI_ERR_RMA_SHARED, "memory cannot be shared"),
    NAMED(MPI_ERR_RMA_SYNC, "wrong synchronization of a window"),
    NAMED(MPI_ERR_SERVICE, "invalid service name"),
    NAMED(MPI_ERR_SIZE, "invalid size"),
    NAMED(MPI_ERR_SPAWN, "processes could not be spawned"),
    NAMED(MPI_ERR_UNSUPPORTED_DATAREP, "unsupported data representation"),
    NAMED(MPI_ERR_UNSUPPORTED_OPERATION, "unsupported operation"),
    NAMED(MPI_ERR_WIN, "invalid window"),
    NAMED(MPI_ERR_RMA_FLAVOR, "wrong flavor of window"),
    NAMED(MPI_ERR_PROC_ABORTED, "a peer process has aborted"),
    NAMED(MPI_ERR_VALUE_TOO_LARGE, "value is too large to store"),
    NAMED(MPI_ERR_SESSION, "invalid session"),
    NAMED(MPI_ERR_ERRHANDLER, "invalid error handler"),
    NAMED(MPI_ERR_ABI, "mismatch of the binary interface"),
    NAMED(MPI_T_ERR_CANNOT_INIT, "tool interface cannot be initialized"),
    NAMED(MPI_T_ERR_NOT_ACCESSIBLE, "tool interface is not accessible"),
    NAMED(MPI_T_ERR_NOT_INITIALIZED, "tool interface is not initialized"),
    NAMED(MPI_T_ERR_NOT_SUPPORTED, "not supported by the tool interface"),
    NAMED(MPI_T_ERR_MEMORY, "tool interface is out of memory"),
    NAMED(MPI_T_ERR_INVALID, "invalid use of the tool interface"),
    NAMED(MPI_T_ERR_INVALID_INDEX, "invalid index"),
    NAMED(MPI_T_ERR_INVALID_ITEM, "invalid item index"),
    NAMED(MPI_T_ERR_INVALID_SESSION, "invalid tool session"),
    NAMED(MPI_T_ERR_INVALID_HANDLE, "invalid tool handle"),
    NAMED(MPI_T_ERR_INVALID_NAME, "invalid name"),
    NAMED(MPI_T_ERR_OUT_OF_HANDLES, "no more tool handles"),
    NAMED(MPI_T_ERR_OUT_OF_SESSIONS, "no more tool sessions"),
    NAMED(MPI_T_ERR_CVAR_SET_NOT_NOW, "control variable cannot be set at this time"),
    NAMED(MPI_T_ERR_CVAR_SET_NEVER, "control variable cannot be set"),
    NAMED(MPI_T_ERR_PVAR_NO_WRITE, "performance variable cannot be written"),
    NAMED(MPI_T_ERR_PVAR_NO_STARTSTOP, "performance variable cannot be started or stopped"),
    NAMED(MPI_T_ERR_PVAR_NO_ATOMIC, "performance variable cannot be read and reset at once"),
};
#define N_PREDEFINED ((int)(sizeof predefined / sizeof predefined[0]))

/* What the application added, in the order of numbers. */
struct user_code {
    int mpi_class; /* itself for a class; 0: removed */
    int n_codes;   /* of a class: codes that belong to it */
    char *text;    /* NULL: none set */
};

static struct errcode_state errcode_first;
struct errcode_state *errcode_here = &errcode_first;

static void errcode_part_init(void)
{
    errcode_here->last_used = MPI_ERR_LASTCODE;
}

static void errcode_part_deinit(void)
{
    free(errcode_here->users);
}
CLIENT_PART(errcode_here, errcode_first, .init = errcode_part_init, .deinit = errcode_part_deinit);

static struct user_code *user_at(int code)
{
    long i = (long)code - MPI_ERR_LASTCODE - 1;
    return i >= 0 && i < errcode_here->n_users && errcode_here->users[i].mpi_class
               ? &errcode_here->users[i]
               : NULL;
}

static bool is_predefined(int code)
{
    return (code >= 0 && code < N_PREDEFINED && predefined[code].name) || code == MPI_ERR_LASTCODE;
}

int errcode_class(int code)
{
    const struct user_code *u = user_at(code);
    if (u)
        return u->mpi_class;
    return is_predefined(code) ? code : MPI_ERR_UNKNOWN;
}

const char *errcode_text(int code)
{
    const struct user_code *u = user_at(code);
    if (u)
        return u->text ? u->text : "";
    if (code == MPI_ERR_LASTCODE)
        return "last predefined error code";
    return is_predefined(code) ? predefined[code].text : NULL;
}

const char *errcode_name(int mpi_class)
{
    if (mpi_class == MPI_ERR_LASTCODE)
        return "MPI_ERR_LASTCODE";
    return is_predefined(mpi_class) ? predefined[mpi_class].name : "user-defined error class";
}

/* Takes the next number. */
static int errcode_add(int mpi_class, int *ret_code)
{
    if (errcode_here->n_users == errcode_here->max_users) {
        int max = errcode_here->max_users ? 2 * errcode_here->max_users : 8;
        struct user_code *grown = realloc(errcode_here->users, (size_t)max * sizeof *grown);
        if (!grown)
            return err_set(MPI_ERR_NO_MEM, "no memory for an error code");
        errcode_here->users = grown;
        errcode_here->max_users = max;
    }
    int code = MPI_ERR_LASTCODE + 1 + errcode_here->n_users;
    errcode_here->users[errcode_here->n_users++] =
        (struct user_code){.mpi_class = mpi_class ? mpi_class : code};
    errcode_here->last_used = code;
    *ret_code = code;
    return MPI_SUCCESS;
}

/* Number of the last code in use again, after a removal. */
static void lower_last_used(void)
{
    while (errcode_here->n_users > 0 && !errcode_here->users[errcode_here->n_users - 1].mpi_class)
        errcode_here->n_users--;
    errcode_here->last_used = MPI_ERR_LASTCODE + errcode_here->n_users;
}

/* The user class or code that an operation is about. */
static int check_user(int code, struct user_code **ret_user)
{
    *ret_user = user_at(code);
    if (*ret_user)
        return MPI_SUCCESS;
    if (is_predefined(code))
        return err_set(MPI_ERR_ARG, "%d (%s) is predefined", code, errcode_name(code));
    return err_set(MPI_ERR_ARG, "%d is no error class or code", code);
}

int mpi_add_error_class(int *errorclass)
{
    return errcode_add(0, errorclass);
}

int mpi_add_error_code(int errorclass, int *errorcode)
{
    struct user_code *u = user_at(errorclass);
    if (!is_predefined(errorclass) && !(u && u->mpi_class == errorclass))
        return err_set(MPI_ERR_ARG, "%d is no error class", errorclass);
    int err = errcode_add(errorclass, errorcode);
    u = user_at(errorclass);
    if (!err && u)
        u->n_codes++;
    return err;
}

int mpi_add_error_string(int errorcode, const char *string)
{
    struct user_code *u;
    int err = check_user(errorcode, &u);
    if (err)
        return err;
    size_t n = strlen(string);
    if (n >= MPI_MAX_ERROR_STRING)
        return err_set(MPI_ERR_ARG, "the text has %zu characters, at most %d are allowed", n,
                       MPI_MAX_ERROR_STRING - 1);
    char *text = strdup(string);
    if (!text)
        return err_set(MPI_ERR_NO_MEM, "no memory for an error text");
    free(u->text);
    u->text = text;
    return MPI_SUCCESS;
}

static void remove_user(struct user_code *u)
{
    *u = (struct user_code){0};
    lower_last_used();
}

int mpi_remove_error_class(int errorclass)
{
    struct user_code *u;
    int err = check_user(errorclass, &u);
    if (err)
        return err;
    if (u->mpi_class != errorclass)
        return err_set(MPI_ERR_ARG, "%d is an error code, not a class", errorclass);
    if (u->n_codes > 0)
        return err_set(MPI_ERR_ARG, "error class %d still has %d codes", errorclass, u->n_codes);
    if (u->text)
        return err_set(MPI_ERR_ARG, "error class %d still has a text", errorclass);
    remove_user(u);
    return MPI_SUCCESS;
}

int mpi_remove_error_code(int errorcode)
{
    struct user_code *u;
    int err = check_user(errorcode, &u);
    if (err)
        return err;
    if (u->mpi_class == errorcode)
        return err_set(MPI_ERR_ARG, "%d is an error class, not a code", errorcode);
    if (u->text)
        return err_set(MPI_ERR_ARG, "error code %d still has a text", errorcode);
    struct user_code *its_class = user_at(u->mpi_class);
    if (its_class)
        its_class->n_codes--;
    remove_user(u);
    return MPI_SUCCESS;
}

int mpi_remove_error_string(int errorcode)
{
    struct user_code *u;
    int err = check_user(errorcode, &u);
    if (err)
        return err;
    if (!u->text)
        return err_set(MPI_ERR_ARG, "error code %d has no text", errorcode);
    free(u->text);
    u->text = NULL;
    return MPI_SUCCESS;
}

int mpi_error_class(int errorcode, int *errorclass)
{
    if (!is_predefined(errorcode) && !user_at(errorcode))
        return err_set(MPI_ERR_ARG, "%d is no error code", errorcode);
    *errorclass = errcode_class(errorcode);
    return MPI_SUCCESS;
}

int mpi_error_string(int errorcode, char *string, int *resultlen)
{
    const char *text = errcode_text(errorcode);
    if (!text)
        return err_set(MPI_ERR_ARG, "%d is no error code", errorcode);
    if (user_at(errorcode)) {
        *resultlen = snprintf(string, MPI_MAX_ERROR_STRING, "%s", text);
        return MPI_SUCCESS;
    }
    char last[MPI_MAX_ERROR_STRING];
    bool known = err_kept(errorcode, last, sizeof last);
    int n = snprintf(string, MPI_MAX_ERROR_STRING, "%s: %s%s%s%s", errcode_name(errorcode), text,
                     known ? " (last: " : "", known ? last : "", known ? ")" : "");
    *resultlen = n < MPI_MAX_ERROR_STRING ? n : MPI_MAX_ERROR_STRING - 1;
    return MPI_SUCCESS;
}
