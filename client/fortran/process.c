/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Procedures with another shape in Fortran: initialization without a command line, spawning with
 * arrays of strings (MPI-5.0 section 11.8), profiling control, strings whose length the caller
 * gives, functions that return a value.
 */
#include <string.h>

#include "client/fortran/support.h"

#define PROCESS_NAMES(name)                                                                        \
    FORTRAN_ALIAS(mpi_##name##_, pmpi_##name##_)                                                   \
    FORTRAN_ALIAS(mpi_##name##_f08_, pmpi_##name##_)                                               \
    FORTRAN_ALIAS(pmpi_##name##_f08_, pmpi_##name##_)

/* ---- initialization ---- */

/* Tells the library what this compiler's LOGICALs are, unless somebody has (MPI-5.0 section 20.4).
 * What comes back is of no interest: a library that does not want to know it works as well. */
static void process_tell_logicals(void)
{
    MPI_Fint true_value = motet_fortran_true, false_value = motet_fortran_false, t, f;
    int is_set = 0;
    if (MPI_Abi_get_fortran_booleans((int)sizeof(MPI_Fint), &t, &f, &is_set) == MPI_SUCCESS &&
        !is_set)
        MPI_Abi_set_fortran_booleans((int)sizeof(MPI_Fint), &true_value, &false_value);
}

FORTRAN_API void pmpi_init_(MPI_Fint *ierror);
void pmpi_init_(MPI_Fint *ierror)
{
    int err = MPI_Init(NULL, NULL);
    if (err == MPI_SUCCESS)
        process_tell_logicals();
    fortran_error(ierror, err);
}
PROCESS_NAMES(init)

FORTRAN_API void pmpi_init_thread_(const MPI_Fint *required, MPI_Fint *provided, MPI_Fint *ierror);
void pmpi_init_thread_(const MPI_Fint *required, MPI_Fint *provided, MPI_Fint *ierror)
{
    int err = MPI_Init_thread(NULL, NULL, *required, provided);
    if (err == MPI_SUCCESS)
        process_tell_logicals();
    fortran_error(ierror, err);
}
PROCESS_NAMES(init_thread)

/* What a Fortran program asks for is known to whom it asks: also before initialization, and where
 * only sessions were opened. */
FORTRAN_API void pmpi_abi_get_fortran_booleans_(const MPI_Fint *logical_size, void *logical_true,
                                                void *logical_false, MPI_Fint *is_set,
                                                MPI_Fint *ierror);
void pmpi_abi_get_fortran_booleans_(const MPI_Fint *logical_size, void *logical_true,
                                    void *logical_false, MPI_Fint *is_set, MPI_Fint *ierror)
{
    int c_is_set = 0;
    process_tell_logicals();
    int err = MPI_Abi_get_fortran_booleans(*logical_size, logical_true, logical_false, &c_is_set);
    *is_set = fortran_logical(c_is_set);
    fortran_error(ierror, err);
}
PROCESS_NAMES(abi_get_fortran_booleans)

FORTRAN_API void pmpi_info_create_env_(MPI_Fint *info, MPI_Fint *ierror);
void pmpi_info_create_env_(MPI_Fint *info, MPI_Fint *ierror)
{
    MPI_Info c_info = MPI_INFO_NULL;
    int err = MPI_Info_create_env(0, NULL, &c_info);
    if (err == MPI_SUCCESS)
        *info = info_out(c_info);
    fortran_error(ierror, err);
}
PROCESS_NAMES(info_create_env)

FORTRAN_API void pmpi_pcontrol_(const MPI_Fint *level);
void pmpi_pcontrol_(const MPI_Fint *level)
{
    MPI_Pcontrol(*level);
}
PROCESS_NAMES(pcontrol)

/* ---- spawning ---- */

/* An array of strings `stride` elements apart, ended by a blank one, as C's argv. NULL: no memory.
 */
static char **process_argv_new(const char *strings, size_t length, size_t stride)
{
    size_t n = 0;
    for (;; n++) {
        const char *text = strings + n * stride * length;
        size_t at = 0;
        while (at < length && text[at] == ' ')
            at++;
        if (at == length)
            break;
    }
    char **argv = calloc(n + 1, sizeof *argv);
    for (size_t i = 0; argv && i < n; i++)
        argv[i] = fortran_string(strings + i * stride * length, length);
    return argv;
}

static void process_argv_free(char **argv)
{
    for (char **at = argv; at && *at; at++)
        free(*at);
    free(argv);
}

static int *process_errcodes(MPI_Fint *codes)
{
    return codes == mpi_fortran_errcodes_ignore_ ? MPI_ERRCODES_IGNORE : codes;
}

FORTRAN_API void pmpi_comm_spawn_(const char *command, const char *argv, const MPI_Fint *maxprocs,
                                  const MPI_Fint *info, const MPI_Fint *root, const MPI_Fint *comm,
                                  MPI_Fint *intercomm, MPI_Fint *errcodes, MPI_Fint *ierror,
                                  size_t command_len, size_t argv_len);
void pmpi_comm_spawn_(const char *command, const char *argv, const MPI_Fint *maxprocs,
                      const MPI_Fint *info, const MPI_Fint *root, const MPI_Fint *comm,
                      MPI_Fint *intercomm, MPI_Fint *errcodes, MPI_Fint *ierror, size_t command_len,
                      size_t argv_len)
{
    MPI_Comm c_comm = MPI_COMM_NULL;
    char *c_command = fortran_string(command, command_len);
    char **c_argv = MPI_ARGV_NULL;
    if (argv != mpi_fortran_argv_null_)
        c_argv = process_argv_new(argv, argv_len, 1);
    int err = MPI_Comm_spawn(c_command, c_argv, *maxprocs, info_in(*info), *root, comm_in(*comm),
                             &c_comm, process_errcodes(errcodes));
    if (err == MPI_SUCCESS)
        *intercomm = comm_out(c_comm);
    process_argv_free(c_argv);
    free(c_command);
    fortran_error(ierror, err);
}
PROCESS_NAMES(comm_spawn)

/* array_of_argv(i, j): argument j of command i, so those of one command are `count` apart. Arrays
 * count at the root alone. */
static char ***process_argvs_new(const char *argvs, size_t length, int count)
{
    char ***c_argvs = calloc((size_t)count + 1, sizeof *c_argvs);
    for (int i = 0; c_argvs && i < count; i++)
        c_argvs[i] = process_argv_new(argvs + (size_t)i * length, length, (size_t)count);
    return c_argvs;
}

FORTRAN_API void pmpi_comm_spawn_multiple_(const MPI_Fint *count, const char *commands,
                                           const char *argvs, const MPI_Fint *maxprocs,
                                           const MPI_Fint *infos, const MPI_Fint *root,
                                           const MPI_Fint *comm, MPI_Fint *intercomm,
                                           MPI_Fint *errcodes, MPI_Fint *ierror, size_t command_len,
                                           size_t argv_len);
void pmpi_comm_spawn_multiple_(const MPI_Fint *count, const char *commands, const char *argvs,
                               const MPI_Fint *maxprocs, const MPI_Fint *infos,
                               const MPI_Fint *root, const MPI_Fint *comm, MPI_Fint *intercomm,
                               MPI_Fint *errcodes, MPI_Fint *ierror, size_t command_len,
                               size_t argv_len)
{
    int rank = MPI_PROC_NULL;
    MPI_Comm_rank(comm_in(*comm), &rank);
    int n = rank == *root && *count > 0 ? *count : 0;
    MPI_Comm c_comm = MPI_COMM_NULL;
    char **c_commands = calloc((size_t)n + 1, sizeof *c_commands);
    MPI_Info *c_infos = calloc((size_t)n + 1, sizeof *c_infos);
    char ***c_argvs = MPI_ARGVS_NULL;
    for (int i = 0; c_commands && c_infos && i < n; i++) {
        c_commands[i] = fortran_string(commands + (size_t)i * command_len, command_len);
        c_infos[i] = info_in(infos[i]);
    }
    if (n > 0 && argvs != mpi_fortran_argvs_null_)
        c_argvs = process_argvs_new(argvs, argv_len, n);
    int err = MPI_Comm_spawn_multiple(*count, c_commands, c_argvs, maxprocs, c_infos, *root,
                                      comm_in(*comm), &c_comm, process_errcodes(errcodes));
    if (err == MPI_SUCCESS)
        *intercomm = comm_out(c_comm);
    for (int i = 0; c_argvs && i < n; i++)
        process_argv_free(c_argvs[i]);
    free(c_argvs);
    process_argv_free(c_commands);
    free(c_infos);
    fortran_error(ierror, err);
}
PROCESS_NAMES(comm_spawn_multiple)

/* ---- strings of the caller's length ---- */

FORTRAN_API void pmpi_info_get_(const MPI_Fint *info, const char *key, const MPI_Fint *valuelen,
                                char *value, MPI_Fint *flag, MPI_Fint *ierror, size_t key_len,
                                size_t value_len);
void pmpi_info_get_(const MPI_Fint *info, const char *key, const MPI_Fint *valuelen, char *value,
                    MPI_Fint *flag, MPI_Fint *ierror, size_t key_len, size_t value_len)
{
    int found = 0;
    char text[MPI_MAX_INFO_VAL + 1] = "";
    char *c_key = fortran_trimmed(key, key_len);
    int room = *valuelen < MPI_MAX_INFO_VAL ? *valuelen : MPI_MAX_INFO_VAL;
    int err = MPI_Info_get(info_in(*info), c_key, room, text, &found);
    if (err == MPI_SUCCESS && found)
        fortran_fill(value, value_len, text);
    *flag = fortran_logical(found);
    free(c_key);
    fortran_error(ierror, err);
}
FORTRAN_ALIAS(mpi_info_get_, pmpi_info_get_)

/* In C the length counts the terminating null character, in Fortran it does not (MPI-5.0 section
 * 10.3). */
FORTRAN_API void pmpi_info_get_string_(const MPI_Fint *info, const char *key, MPI_Fint *buflen,
                                       char *value, MPI_Fint *flag, MPI_Fint *ierror,
                                       size_t key_len, size_t value_len);
void pmpi_info_get_string_(const MPI_Fint *info, const char *key, MPI_Fint *buflen, char *value,
                           MPI_Fint *flag, MPI_Fint *ierror, size_t key_len, size_t value_len)
{
    int found = 0, room = *buflen > 0 ? *buflen + 1 : *buflen;
    char *c_key = fortran_trimmed(key, key_len), *text = calloc(1, (size_t)(room > 0 ? room : 1));
    int err =
        text ? MPI_Info_get_string(info_in(*info), c_key, &room, text, &found) : MPI_ERR_NO_MEM;
    if (err == MPI_SUCCESS && found) {
        if (*buflen > 0)
            fortran_fill(value, value_len, text);
        *buflen = room - 1;
    }
    *flag = fortran_logical(found);
    free(c_key);
    free(text);
    fortran_error(ierror, err);
}
PROCESS_NAMES(info_get_string)

FORTRAN_API void pmpi_session_get_nth_pset_(const MPI_Fint *session, const MPI_Fint *info,
                                            const MPI_Fint *n, MPI_Fint *pset_len, char *pset_name,
                                            MPI_Fint *ierror, size_t pset_name_len);
void pmpi_session_get_nth_pset_(const MPI_Fint *session, const MPI_Fint *info, const MPI_Fint *n,
                                MPI_Fint *pset_len, char *pset_name, MPI_Fint *ierror,
                                size_t pset_name_len)
{
    int room = *pset_len > 0 ? *pset_len + 1 : *pset_len;
    char *text = calloc(1, (size_t)(room > 0 ? room : 1));
    int err = text ? MPI_Session_get_nth_pset(session_in(*session), info_in(*info), *n, &room, text)
                   : MPI_ERR_NO_MEM;
    if (err == MPI_SUCCESS) {
        if (*pset_len > 0)
            fortran_fill(pset_name, pset_name_len, text);
        *pset_len = room - 1;
    }
    free(text);
    fortran_error(ierror, err);
}
PROCESS_NAMES(session_get_nth_pset)

/* ---- functions that return a value ---- */

#define PROCESS_FUNCTION(type, name, declaration, call)                                            \
    FORTRAN_API type pmpi_##name##_ declaration;                                                   \
    type pmpi_##name##_ declaration                                                                \
    {                                                                                              \
        return call;                                                                               \
    }                                                                                              \
    PROCESS_NAMES(name)
PROCESS_FUNCTION(double, wtime, (void), MPI_Wtime())
PROCESS_FUNCTION(double, wtick, (void), MPI_Wtick())
PROCESS_FUNCTION(MPI_Aint, aint_add, (const MPI_Aint *base, const MPI_Aint *disp),
                 MPI_Aint_add(*base, *disp))
PROCESS_FUNCTION(MPI_Aint, aint_diff, (const MPI_Aint *addr1, const MPI_Aint *addr2),
                 MPI_Aint_diff(*addr1, *addr2))

/* MPI_SIZEOF: the descriptor says it (MPI-5.0 section 16.1). */
FORTRAN_API void pmpi_sizeof_f08ts_(const CFI_cdesc_t *x, MPI_Fint *size, MPI_Fint *ierror);
void pmpi_sizeof_f08ts_(const CFI_cdesc_t *x, MPI_Fint *size, MPI_Fint *ierror)
{
    *size = (MPI_Fint)x->elem_len;
    fortran_error(ierror, MPI_SUCCESS);
}
FORTRAN_ALIAS(mpi_sizeof_f08ts_, pmpi_sizeof_f08ts_)

/* MPI_F_SYNC_REG: the compiler does not know that nothing happens to the buffer here, which is what
 * the call is for (MPI-5.0 section 19.1.16). */
FORTRAN_API void pmpi_f_sync_reg_(const void *buf);
void pmpi_f_sync_reg_(const void *buf)
{
    (void)buf;
}
FORTRAN_ALIAS(mpi_f_sync_reg_, pmpi_f_sync_reg_)
FORTRAN_API void pmpi_f_sync_reg_f08ts_(const CFI_cdesc_t *buf);
void pmpi_f_sync_reg_f08ts_(const CFI_cdesc_t *buf)
{
    (void)buf;
}
FORTRAN_ALIAS(mpi_f_sync_reg_f08ts_, pmpi_f_sync_reg_f08ts_)
