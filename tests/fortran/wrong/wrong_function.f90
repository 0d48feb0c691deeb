! SPDX-License-Identifier: BSD-3-Clause
! Must not compile.
program wrong_function
  use mpi_f08
  implicit none
  integer :: x
  call MPI_Op_create(nothing, .true., MPI_OP_NULL)
contains
  subroutine nothing(a)
    integer :: a
    a = 0
  end subroutine
end program
