/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints value and type of each constant in names.h, the size of each type in types.h, and the
 * layout of MPI_Status, for the header MPI_HEADER. compare_mpich.py compiles it against two headers
 * and compares. */
#include MPI_HEADER

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TYPE_NAME(x)                                                                               \
    _Generic((x),                                                                                  \
        int: "int",                                                                                \
        MPI_Offset: "MPI_Offset",                                                                  \
        void *: "void *",                                                                          \
        char **: "char **",                                                                        \
        char ***: "char ***",                                                                      \
        int *: "int *",                                                                            \
        MPI_Status *: "MPI_Status *",                                                              \
        MPI_Op: "MPI_Op",                                                                          \
        MPI_Comm: "MPI_Comm",                                                                      \
        MPI_Group: "MPI_Group",                                                                    \
        MPI_Win: "MPI_Win",                                                                        \
        MPI_File: "MPI_File",                                                                      \
        MPI_Session: "MPI_Session",                                                                \
        MPI_Message: "MPI_Message",                                                                \
        MPI_Info: "MPI_Info",                                                                      \
        MPI_Errhandler: "MPI_Errhandler",                                                          \
        MPI_Request: "MPI_Request",                                                                \
        MPI_Datatype: "MPI_Datatype",                                                              \
        MPI_Comm_copy_attr_function *: "MPI_Comm_copy_attr_function *",                            \
        MPI_Comm_delete_attr_function *: "MPI_Comm_delete_attr_function *",                        \
        MPI_Type_copy_attr_function *: "MPI_Type_copy_attr_function *",                            \
        MPI_Type_delete_attr_function *: "MPI_Type_delete_attr_function *",                        \
        MPI_Win_copy_attr_function *: "MPI_Win_copy_attr_function *",                              \
        MPI_Win_delete_attr_function *: "MPI_Win_delete_attr_function *",                          \
        MPI_Datarep_conversion_function *: "MPI_Datarep_conversion_function *",                    \
        MPI_Datarep_conversion_function_c *: "MPI_Datarep_conversion_function_c *",                \
        MPI_T_enum: "MPI_T_enum",                                                                  \
        MPI_T_cvar_handle: "MPI_T_cvar_handle",                                                    \
        MPI_T_pvar_handle: "MPI_T_pvar_handle",                                                    \
        MPI_T_pvar_session: "MPI_T_pvar_session",                                                  \
        default: "another type")

#define CONSTANT(name) printf("%s %lld %s\n", #name, (long long)(intptr_t)(name), TYPE_NAME(name));
#define TYPE(name)     printf("%s %zu %zu\n", #name, sizeof(name), _Alignof(name));
#define MEMBER(name)                                                                               \
    printf("MPI_Status.%s %zu %zu\n", #name, offsetof(MPI_Status, name),                           \
           sizeof(((MPI_Status *)0)->name));

int main(void)
{
#include "names.h"
#include "types.h"
    MEMBER(MPI_SOURCE)
    MEMBER(MPI_TAG)
    MEMBER(MPI_ERROR)
    MEMBER(MPI_internal)
    printf("signed %d %d %d\n", (MPI_Aint)-1 < 0, (MPI_Count)-1 < 0, (MPI_Offset)-1 < 0);
    return 0;
}
