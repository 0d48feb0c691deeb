! SPDX-License-Identifier: BSD-3-Clause
! Sections of arrays where they end in the middle, where the count is too large, and where a request is asked about before it is
! over. Runs on any library of the standard ABI.
program sections
  use mpi_f08
  implicit none
  integer :: rank, a(6, 5), i, j
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
  a = reshape([((10 * i + j, i = 1, 6), j = 1, 5)], [6, 5])
  call test_part()
  call test_too_many()
  call test_early()
  call MPI_Finalize()
  if (rank == 0) print *, 'no errors'
contains
  ! two columns and a third of one, of every other row
  subroutine test_part()
    integer :: got(7), b(6, 5)
    call MPI_Sendrecv(a(1:5:2, :), 7, MPI_INTEGER, 0, 1, got, 7, MPI_INTEGER, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE)
    if (any(got /= [11, 31, 51, 12, 32, 52, 13])) print *, 'BAD part of a section', got
    b = 0
    call MPI_Sendrecv(got, 7, MPI_INTEGER, 0, 1, b(2:6:2, :), 7, MPI_INTEGER, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE)
    if (any(b(2:6:2, 1:2) /= a(1:5:2, 1:2)) .or. b(2, 3) /= 13 .or. count(b /= 0) /= 7) print *, 'BAD part into a section', b
  end subroutine

  subroutine test_too_many()
    type(MPI_Request) :: request
    integer :: error
    call MPI_Isend(a(1:5:2, :), 16, MPI_INTEGER, 0, 1, MPI_COMM_SELF, request, error)
    if (error == MPI_SUCCESS) print *, 'BAD: 16 elements of 15 are sent'
  end subroutine

  ! A type of its own: the section is received by a copy.
  subroutine test_early()
    type(MPI_Datatype) :: pair
    type(MPI_Request) :: request
    integer, asynchronous :: b(8, 2)
    integer :: turn
    logical :: flag
    call MPI_Type_contiguous(2, MPI_INTEGER, pair)
    call MPI_Type_commit(pair)
    b = 0
    call MPI_Irecv(b(1:7:2, 2), 2, pair, 0, 2, MPI_COMM_SELF, request)
    do turn = 1, 3
      call MPI_Test(request, flag, MPI_STATUS_IGNORE)
      if (flag) print *, 'BAD: over before anything came'
    end do
    call MPI_Send([1, 2, 3, 4], 2, pair, 0, 2, MPI_COMM_SELF)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    if (.not. MPI_ASYNC_PROTECTS_NONBLOCKING) call MPI_F_sync_reg(b)
    if (any(b(1:7:2, 2) /= [1, 2, 3, 4]) .or. count(b /= 0) /= 4) print *, 'BAD copy of a request asked about', b
    call MPI_Type_free(pair)
  end subroutine
end program
