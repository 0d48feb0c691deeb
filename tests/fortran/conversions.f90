! SPDX-License-Identifier: BSD-3-Clause
! A data representation that converts in one direction, the cancel function of a generalized request, and neighbours of which
! each side has another number. A library that knows no representation of a program's own (not Motet) is asked no further about
! it.
module conversion_functions
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_ptr
  implicit none
  integer :: n_cancelled = 0, n_converted = 0
  logical :: was_complete = .true.
contains
  subroutine negate(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(kind=MPI_OFFSET_KIND) :: position
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer, pointer :: from(:), to(:)
    if (datatype /= MPI_INTEGER .or. extra_state /= 12345678901_MPI_ADDRESS_KIND) print *, 'BAD conversion', extra_state
    call c_f_pointer(userbuf, from, [position + count])
    call c_f_pointer(filebuf, to, [count])
    to = -from(position + 1:position + count)
    n_converted = n_converted + count
    ierror = MPI_SUCCESS
  end subroutine

  subroutine four_bytes(datatype, extent, extra_state, ierror)
    type(MPI_Datatype) :: datatype
    integer(kind=MPI_ADDRESS_KIND) :: extent, extra_state
    integer :: ierror
    extent = 4
    ierror = MPI_SUCCESS
  end subroutine

  subroutine on_query(extra_state, status, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status) :: status
    integer :: ierror
    call MPI_Status_set_cancelled(status, n_cancelled > 0)
    call MPI_Status_set_elements(status, MPI_BYTE, 0)
    ierror = MPI_SUCCESS
  end subroutine

  subroutine on_free(extra_state, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    ierror = MPI_SUCCESS
  end subroutine

  subroutine on_cancel(extra_state, complete, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    was_complete = complete
    n_cancelled = n_cancelled + 1
    ierror = MPI_SUCCESS
  end subroutine
end module

program conversions
  use conversion_functions
  implicit none
  integer :: rank, n
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, n)
  call test_cancel()
  call test_neighbours()
  call test_representation()
  call MPI_Finalize()
  if (rank == 0) print *, 'no errors'
contains
  subroutine test_cancel()
    type(MPI_Request) :: request
    integer(kind=MPI_ADDRESS_KIND) :: state
    call MPI_Grequest_start(on_query, on_free, on_cancel, state, request)
    call MPI_Cancel(request)
    if (n_cancelled /= 1 .or. was_complete) print *, 'BAD cancel of what goes on', n_cancelled, was_complete
    call MPI_Grequest_complete(request)
    call MPI_Cancel(request)
    if (n_cancelled /= 2 .or. .not. was_complete) print *, 'BAD cancel of what is complete', n_cancelled, was_complete
    call MPI_Wait(request, MPI_STATUS_IGNORE)
  end subroutine

  ! Everybody sends to rank 0, which sends to nobody else; types differ from source to source.
  subroutine test_neighbours()
    type(MPI_Comm) :: star
    type(MPI_Datatype) :: types(n)
    integer :: i, got(2, 0:n - 1), counts(n), zeros(n)
    integer(kind=MPI_ADDRESS_KIND) :: places(n)
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, merge(n, 0, rank == 0), [(i, i = 0, n - 1)], MPI_UNWEIGHTED, 1, [0], &
                                        MPI_UNWEIGHTED, MPI_INFO_NULL, .false., star)
    types = [(MPI_INTEGER, i = 1, n)]
    if (n > 1) types(2) = MPI_2INTEGER
    counts = [(merge(1, 2, i == 2), i = 1, n)]
    places = [(8_MPI_ADDRESS_KIND * (i - 1), i = 1, n)]
    got = 0
    call MPI_Neighbor_alltoallw([rank, -rank], [2], [0_MPI_ADDRESS_KIND], [MPI_INTEGER], got, counts, places, types, star)
    if (rank == 0 .and. any(got /= reshape([(i, -i, i = 0, n - 1)], [2, n]))) print *, 'BAD neighbours', got
    call MPI_Comm_free(star)
  end subroutine

  subroutine test_representation()
    character(MPI_MAX_LIBRARY_VERSION_STRING) :: library
    character(200) :: folder, name
    integer :: error, length, clock, got(5)
    type(MPI_File) :: file
    call MPI_Get_library_version(library, length)
    call MPI_Register_datarep('negative', MPI_CONVERSION_FN_NULL, negate, four_bytes, 12345678901_MPI_ADDRESS_KIND, error)
    if (error /= MPI_SUCCESS) then
      if (index(library, 'Motet') > 0) print *, 'BAD representation', error
      return
    end if
    folder = '/tmp'
    call get_environment_variable('TMPDIR', folder, status=error)
    if (error /= 0) folder = '/tmp'
    call system_clock(clock)
    write (name, '(a, a, i0, a, i0)') trim(folder), '/negative-', rank, '-', clock
    call MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR + MPI_MODE_CREATE + MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, file)
    call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'negative', MPI_INFO_NULL)
    call MPI_File_write(file, [1, 2, 3, 4, 5], 5, MPI_INTEGER, MPI_STATUS_IGNORE)
    got = 0
    call MPI_File_read_at(file, 0_MPI_OFFSET_KIND, got, 5, MPI_INTEGER, MPI_STATUS_IGNORE)
    if (any(got /= [-1, -2, -3, -4, -5]) .or. n_converted /= 5) print *, 'BAD converted', got, n_converted
    call MPI_File_close(file)
  end subroutine
end program
