! SPDX-License-Identifier: BSD-3-Clause
! Must not compile.
program short_address
  use mpi_f08
  implicit none
  integer :: x
  call MPI_Get_address(x, x)
end program
