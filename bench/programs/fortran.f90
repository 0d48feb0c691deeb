! SPDX-License-Identifier: BSD-3-Clause
! Messages of 8 bytes between two ranks, sent by C, by mpif.h, by the module mpi and by mpi_f08, in turns within one run, so that all four
! see the same moments of the machine. The C half is fortran_c.c, that of mpif.h fortran_header.f90.
module older
  use mpi
  implicit none
contains
  subroutine trips_of_mpi(buffer, n, rank)
    integer(8) :: buffer
    integer, intent(in) :: n, rank
    integer :: i, ierror
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
end module

module modern
  use mpi_f08
  implicit none
contains
  subroutine trips_of_mpi_f08(buffer, n, rank)
    integer(8) :: buffer
    integer, intent(in) :: n, rank
    integer :: i
    do i = 1, n
      if (rank == 0) then
        call MPI_Send(buffer, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD)
        call MPI_Recv(buffer, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      else
        call MPI_Recv(buffer, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
        call MPI_Send(buffer, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD)
      end if
    end do
  end subroutine
end module

program fortran
  use mpi_f08
  use older, only: trips_of_mpi
  use modern, only: trips_of_mpi_f08
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
  interface
    subroutine pin_to(rank) bind(C)
      import :: c_int
      integer(c_int), value :: rank
    end subroutine
    subroutine trips_of_c(buffer, n, rank) bind(C)
      import :: c_int
      integer(8) :: buffer
      integer(c_int), value :: n, rank
    end subroutine
  end interface
  integer, parameter :: TURNS = 201, TRIPS = 2000
  character(len=*), parameter :: names(4) = [character(len=16) :: 'latency_c', 'latency_mpif.h', 'latency_mpi', 'latency_mpi_f08']
  double precision :: microseconds(TURNS, 4), begun
  integer :: rank, turn, form, place
  integer(8) :: buffer = 0
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call pin_to(rank)
  do turn = 0, TURNS
    do form = 1, 4
      ! Another order each time: nobody is always behind the same neighbour.
      place = 1 + mod(form + turn, 4)
      begun = MPI_Wtime()
      select case (place)
      case (1)
        call trips_of_c(buffer, TRIPS, rank)
      case (2)
        call trips_of_header(buffer, TRIPS, rank)
      case (3)
        call trips_of_mpi(buffer, TRIPS, rank)
      case (4)
        call trips_of_mpi_f08(buffer, TRIPS, rank)
      end select
      ! The first turn warms up.
      if (turn > 0) microseconds(turn, place) = (MPI_Wtime() - begun) * 1d6 / TRIPS / 2
    end do
  end do
  if (rank == 0) then
    do form = 1, 4
      print '(a, a, a, f0.4, a)', 'RESULT ', trim(names(form)), ' 8 ', median(microseconds(:, form)), ' us'
    end do
  end if
  call MPI_Finalize()
contains
  pure double precision function median(values)
    double precision, intent(in) :: values(:)
    integer :: i, below
    median = values(1)
    do i = 1, size(values)
      below = count(values < values(i))
      if (below <= size(values) / 2 .and. below + count(values == values(i)) > size(values) / 2) median = values(i)
    end do
  end function
end program
