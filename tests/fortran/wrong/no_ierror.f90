! SPDX-License-Identifier: BSD-3-Clause
! Must not compile.
program no_ierror
  use mpi
  implicit none
  integer :: x
  call MPI_Barrier(MPI_COMM_WORLD)
end program
