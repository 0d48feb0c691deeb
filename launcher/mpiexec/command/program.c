/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/mpiexec/command/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define PROGRAM_LIBRARY "libmpi_abi.so.1"
/* More dynamic entries than any program has. */
#define PROGRAM_MAX_ENTRIES 65536u

struct program_image {
    const uint8_t *data;
    size_t n;
};

/* n bytes at an offset of the file. False: they are not all in it. */
static bool program_at(const struct program_image *image, uint64_t offset, void *to, size_t n)
{
    if (offset > image->n || n > image->n - offset)
        return false;
    memcpy(to, image->data + offset, n);
    return true;
}

static bool program_header(const struct program_image *image, const Elf64_Ehdr *file, unsigned i,
                           Elf64_Phdr *ret)
{
    uint64_t offset;

    return file->e_phentsize == sizeof *ret &&
           !__builtin_add_overflow(file->e_phoff, (uint64_t)i * sizeof *ret, &offset) &&
           program_at(image, offset, ret, sizeof *ret);
}

/* Where in the file an address of the process comes from. False: nowhere. */
static bool program_offset(const struct program_image *image, const Elf64_Ehdr *file,
                           uint64_t address, uint64_t *ret)
{
    Elf64_Phdr p;

    for (unsigned i = 0; i < file->e_phnum && program_header(image, file, i, &p); i++) {
        if (p.p_type != PT_LOAD || address < p.p_vaddr || address - p.p_vaddr >= p.p_filesz)
            continue;
        return !__builtin_add_overflow(p.p_offset, address - p.p_vaddr, ret);
    }
    return false;
}

/* The string at an offset of the table; NULL: it does not end in the file. */
static const char *program_string(const struct program_image *image, uint64_t table, uint64_t at)
{
    uint64_t offset;

    if (__builtin_add_overflow(table, at, &offset) || offset >= image->n ||
        !memchr(image->data + offset, 0, image->n - offset))
        return NULL;
    return (const char *)image->data + offset;
}

static void program_add_folders(struct words *to, const char *text)
{
    for (; *text; text += strcspn(text, ":"), text += *text == ':')
        if (*text != ':')
            words_add_n(to, text, strcspn(text, ":"));
}

/* The dynamic section's entry of an index. False: the section ends here. */
static bool program_entry(const struct program_image *image, const Elf64_Phdr *dynamic, size_t i,
                          Elf64_Dyn *ret)
{
    uint64_t offset;

    return i < PROGRAM_MAX_ENTRIES && (i + 1) * sizeof *ret <= dynamic->p_filesz &&
           !__builtin_add_overflow(dynamic->p_offset, i * sizeof *ret, &offset) &&
           program_at(image, offset, ret, sizeof *ret) && ret->d_tag != DT_NULL;
}

static int program_read_dynamic(const struct program_image *image, const Elf64_Ehdr *file,
                                const Elf64_Phdr *dynamic, struct program_links *links)
{
    uint64_t address = 0, strings;
    const char *runpath = NULL, *rpath = NULL;
    Elf64_Dyn entry;

    for (size_t i = 0; program_entry(image, dynamic, i, &entry); i++)
        if (entry.d_tag == DT_STRTAB)
            address = entry.d_un.d_ptr;
    if (!program_offset(image, file, address, &strings))
        return -ENOEXEC;
    for (size_t i = 0; program_entry(image, dynamic, i, &entry); i++) {
        if (entry.d_tag != DT_NEEDED && entry.d_tag != DT_RUNPATH && entry.d_tag != DT_RPATH)
            continue;
        const char *text = program_string(image, strings, entry.d_un.d_val);
        if (!text)
            return -ENOEXEC;
        if (entry.d_tag == DT_NEEDED)
            words_add(&links->needed, text);
        else if (entry.d_tag == DT_RUNPATH)
            runpath = text;
        else
            rpath = text;
    }
    links->is_rpath = !runpath && rpath;
    if (runpath || rpath)
        program_add_folders(&links->runpath, runpath ? runpath : rpath);
    return links->needed.failed || links->runpath.failed ? -ENOMEM : 0;
}

int program_read(const uint8_t *data, size_t n, struct program_links *ret_links)
{
    const struct program_image image = {data, n};
    const uint8_t byte_order =
        __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
    Elf64_Ehdr file;
    Elf64_Phdr p;

    *ret_links = (struct program_links){0};
    if (!program_at(&image, 0, &file, sizeof file) || memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 ||
        file.e_ident[EI_CLASS] != ELFCLASS64 || file.e_ident[EI_DATA] != byte_order)
        return -ENOEXEC;
    for (unsigned i = 0; i < file.e_phnum && program_header(&image, &file, i, &p); i++)
        if (p.p_type == PT_DYNAMIC)
            return program_read_dynamic(&image, &file, &p, ret_links);
    return -ENOEXEC;
}

void program_links_free(struct program_links *links)
{
    words_free(&links->needed);
    words_free(&links->runpath);
}

/* ---- on the files of this node ---- */

/* Where a program's file is. False: not found here; the ranks' nodes may have it. */
static bool program_find(const char *name, const char *path, char *ret_file)
{
    if (strchr(name, '/'))
        return realpath(name, ret_file) != NULL;
    if (!path)
        path = getenv("PATH");
    for (; path && *path; path += strcspn(path, ":"), path += *path == ':') {
        char file[PATH_MAX];
        int n = (int)strcspn(path, ":");
        if (snprintf(file, sizeof file, "%.*s/%s", n > 0 ? n : 1, n > 0 ? path : ".", name) <
                (int)sizeof file &&
            access(file, X_OK) == 0)
            return realpath(file, ret_file) != NULL;
    }
    return false;
}

/* A folder of a run path with $ORIGIN replaced by the program's. */
static void program_expand(const char *folder, const char *origin, char *to, size_t room)
{
    static const char *const words[] = {"$ORIGIN", "${ORIGIN}"};

    for (int i = 0; i < 2; i++) {
        const char *at = strstr(folder, words[i]);
        if (at) {
            snprintf(to, room, "%.*s%s%s", (int)(at - folder), folder, origin,
                     at + strlen(words[i]));
            return;
        }
    }
    snprintf(to, room, "%s", folder);
}

/* The first of the folders that has the library. */
static bool program_find_library(const struct words *folders, const char *origin, char *ret_file,
                                 struct stat *ret_stat)
{
    for (size_t i = 0; i < folders->n; i++) {
        char folder[PATH_MAX];
        program_expand(folders->at[i], origin, folder, sizeof folder);
        if (snprintf(ret_file, PATH_MAX, "%s/" PROGRAM_LIBRARY, folder) < PATH_MAX &&
            stat(ret_file, ret_stat) == 0)
            return true;
    }
    return false;
}

static void program_check_library(const struct program_links *links, const char *program,
                                  const char *library_path, const char *library, char *why,
                                  size_t room)
{
    struct words given = {0};
    char file[PATH_MAX], origin[PATH_MAX];
    struct stat found, own;
    bool by_file = false;

    snprintf(origin, sizeof origin, "%s", program);
    const char *folder = dirname(origin);
    if (library_path)
        program_add_folders(&given, library_path);
    bool any = links->is_rpath && program_find_library(&links->runpath, folder, file, &found);
    by_file = any;
    any = any || program_find_library(&given, folder, file, &found);
    if (!any && !links->is_rpath)
        any = by_file = program_find_library(&links->runpath, folder, file, &found);
    words_free(&given);
    if (!any || stat(library, &own) < 0 ||
        (own.st_dev == found.st_dev && own.st_ino == found.st_ino))
        return;
    char ours[PATH_MAX];
    snprintf(ours, sizeof ours, "%s", library);
    snprintf(why, room,
             "%.400s loads %.400s, another library than Motet's, because of %s; %s %.400s", program,
             file, by_file ? "the run path inside it" : "LD_LIBRARY_PATH",
             !by_file          ? "take it out, or put before it"
             : links->is_rpath ? "change it (patchelf --set-rpath) to"
                               : "set LD_LIBRARY_PATH to",
             dirname(ours));
}

static void program_check_links(const struct program_links *links, const char *program,
                                const char *library_path, const char *library, char *why,
                                size_t room)
{
    static const struct {
        const char *name, *of;
    } others[] = {{"libmpi.so.40", "Open MPI"},
                  {"libmpi.so.12", "MPICH or Intel MPI"},
                  {"libmpich.so.12", "MPICH"},
                  {"libmpi_mpifh.so.40", "Open MPI"}};

    for (size_t i = 0; i < links->needed.n; i++) {
        if (strcmp(links->needed.at[i], PROGRAM_LIBRARY) == 0) {
            program_check_library(links, program, library_path, library, why, room);
            return;
        }
    }
    for (size_t i = 0; i < links->needed.n; i++) {
        for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
            if (strcmp(links->needed.at[i], others[k].name) != 0)
                continue;
            snprintf(why, room,
                     "%.400s is linked with %s (%s), not with a library of the MPI ABI, so its "
                     "ranks will not find one another; compile it with Motet's mpicc",
                     program, others[k].name, others[k].of);
            return;
        }
    }
}

void program_check(const char *name, const char *path, const char *library_path,
                   const char *library, char *why, size_t room)
{
    struct program_links links = {0};
    char file[PATH_MAX];
    struct stat st;

    why[0] = '\0';
    if (!program_find(name, path, file))
        return;
    FD_AUTO fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        return;
    uint8_t *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return;
    if (program_read(data, (size_t)st.st_size, &links) == 0)
        program_check_links(&links, file, library_path, library, why, room);
    program_links_free(&links);
    munmap(data, (size_t)st.st_size);
}
