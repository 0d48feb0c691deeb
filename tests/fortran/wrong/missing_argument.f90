! SPDX-License-Identifier: BSD-3-Clause
! Must not compile.
program missing_argument
  use mpi_f08
  implicit none
  integer :: x
  call MPI_Send(x, 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
end program
