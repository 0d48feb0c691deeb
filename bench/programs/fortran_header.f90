! SPDX-License-Identifier: BSD-3-Clause
! What fortran.f90 does with mpif.h; apart, since a compiler compares calls of one file.
subroutine trips_of_header(buffer, n, rank)
  implicit none
  include 'mpif.h'
  integer(8) :: buffer
  integer :: n, rank, i, ierror
  external :: MPI_Send, MPI_Recv
  do i = 1, n
    if (rank == 0) then
      call MPI_Send(buffer, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD, ierror)
      call MPI_Recv(buffer, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
    else
      call MPI_Recv(buffer, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
      call MPI_Send(buffer, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD, ierror)
    end if
  end do
end subroutine
