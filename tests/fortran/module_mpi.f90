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
  call MPI_Finalize(ierr)
  if (rank == 0) print *, 'no errors'
end program
