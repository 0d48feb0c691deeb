! SPDX-License-Identifier: BSD-3-Clause
! Must not compile.
program integer_for_a_handle
  use mpi_f08
  implicit none
  integer :: x
  call MPI_Comm_rank(0, x)
end program
