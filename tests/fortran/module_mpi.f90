! SPDX-License-Identifier: BSD-3-Clause
! The module mpi.
program module_mpi
  use mpi
  implicit none
  integer :: rank, n, ierr, st(MPI_STATUS_SIZE), x(4)
  real(8) :: d(3)
  character(len=20) :: s
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, n, ierr)
  d = rank; s = 'hello'
  call MPI_Bcast(d, 3, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr)
  call MPI_Bcast(s, 20, MPI_CHARACTER, 0, MPI_COMM_WORLD, ierr)
  call MPI_Reduce(rank, x(1), 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
  if (rank == 0 .and. x(1) /= n * (n - 1) / 2) print *, 'BAD reduce', x(1)
  if (any(d /= 0) .or. s /= 'hello') print *, 'BAD bcast'
  call MPI_Comm_set_name(MPI_COMM_WORLD, 'world   ', ierr)
  call test_old_attribute()
  call test_same_handler()
  call MPI_Finalize(ierr)
  if (rank == 0) print *, 'no errors'
contains
  ! Set with a default integer, read with an address.
  subroutine test_old_attribute()
    integer :: keyval, value
    integer(kind=MPI_ADDRESS_KIND) :: wide
    logical :: flag
    call MPI_Keyval_create(MPI_NULL_COPY_FN, MPI_NULL_DELETE_FN, keyval, 0, ierr)
    call MPI_Attr_put(MPI_COMM_SELF, keyval, -5, ierr)
    call MPI_Attr_get(MPI_COMM_SELF, keyval, value, flag, ierr)
    if (.not. flag .or. value /= -5) print *, 'BAD old attribute', flag, value
    call MPI_Comm_get_attr(MPI_COMM_SELF, keyval, wide, flag, ierr)
    if (.not. flag .or. wide /= -5) print *, 'BAD wide attribute', flag, wide
    call MPI_Attr_delete(MPI_COMM_SELF, keyval, ierr)
    call MPI_Keyval_free(keyval, ierr)
  end subroutine

  ! One function for communicators and for windows.
  subroutine test_same_handler()
    external :: on_error_of_any
    integer :: of_comm, of_win, comm, win, memory(4), told(2)
    common /errors/ told
    call MPI_Comm_dup(MPI_COMM_SELF, comm, ierr)
    call MPI_Win_create(memory, 16_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, comm, win, ierr)
    call MPI_Comm_create_errhandler(on_error_of_any, of_comm, ierr)
    call MPI_Win_create_errhandler(on_error_of_any, of_win, ierr)
    call MPI_Comm_set_errhandler(comm, of_comm, ierr)
    call MPI_Win_set_errhandler(win, of_win, ierr)
    call MPI_Comm_call_errhandler(comm, MPI_ERR_TAG, ierr)
    if (told(1) /= comm .or. told(2) /= MPI_ERR_TAG) print *, 'BAD error of a communicator', told
    call MPI_Win_call_errhandler(win, MPI_ERR_DISP, ierr)
    if (told(1) /= win .or. told(2) /= MPI_ERR_DISP) print *, 'BAD error of a window', told
    call MPI_Win_free(win, ierr)
    call MPI_Comm_free(comm, ierr)
    call MPI_Errhandler_free(of_comm, ierr)
    call MPI_Errhandler_free(of_win, ierr)
  end subroutine
end program

subroutine on_error_of_any(handle, error_code)
  implicit none
  integer :: handle, error_code, told(2)
  common /errors/ told
  told = [handle, error_code]
end subroutine
