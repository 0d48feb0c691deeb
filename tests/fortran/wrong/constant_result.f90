! SPDX-License-Identifier: BSD-3-Clause
! Must not compile.
program constant_result
  use mpi_f08
  implicit none
  integer :: x
  call MPI_Comm_rank(MPI_COMM_WORLD, 3)
end program
