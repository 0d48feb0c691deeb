! SPDX-License-Identifier: BSD-3-Clause
! Must not compile.
program handle_of_another_kind
  use mpi_f08
  implicit none
  integer :: x
  call MPI_Send(x, 1, MPI_COMM_WORLD, 0, 0, MPI_COMM_WORLD)
end program
