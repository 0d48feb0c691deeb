! SPDX-License-Identifier: BSD-3-Clause
! Must not compile.
program real_rank
  use mpi
  implicit none
  integer :: x
  call MPI_Comm_rank(MPI_COMM_WORLD, 1.0, x)
end program
