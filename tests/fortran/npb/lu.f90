! SPDX-License-Identifier: BSD-3-Clause
! LU of the NAS Parallel Benchmarks (RNR-94-007 section 3.3.1): steps by symmetric successive over-relaxation. Each of the two
! sweeps needs at a point what it has found at three neighbours, so it runs through the cube as a wave: plane by plane in x, and
! the ranks behind in y and z take up a plane when those before them hand it on, in many short messages. With the module mpi.
program lu
  use mpi
  use flow
  use blocks
  use benchmark
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  real(real64), parameter :: RELAXATION = 1.2_real64
  real(real64) :: dt
  integer :: rank, step, n_steps, ierror, i
  logical :: member, large
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  large = class_of_problem('SW') == 'W'
  dt = merge(1.5e-3_real64, 0.5_real64, large)
  n_steps = merge(300, 50, large)
  call blocks_start(merge(33, 12, large), member)
  if (member) then
    call find_rates()
    do step = 1, n_steps
      rate = dt * rate
      do i = 1, n - 2
        call sweep_plane(i, -1, before, behind, inner(1, :), inner(2, :))
      end do
      do i = n - 2, 1, -1
        call sweep_plane(i, 1, behind, before, inner(2, :), inner(1, :))
      end do
      associate (y0 => inner(1, 2), y1 => inner(2, 2), z0 => inner(1, 3), z1 => inner(2, 3))
        u(:, 1:n - 2, y0:y1, z0:z1) = u(:, 1:n - 2, y0:y1, z0:z1) + &
                                      rate(:, 1:n - 2, y0:y1, z0:z1) / (RELAXATION * (2 - RELAXATION))
      end associate
      call find_rates()
    end do
    call verify_all()
    call blocks_end()
  end if
  call MPI_Finalize(ierror)
  if (rank == 0) print *, 'no errors'
contains
  ! One plane of the sweep through the lower triangle (side -1: neighbours before a point come first) or the upper one. From and
  ! to: ranks; the points go from `start` to `finish`.
  subroutine sweep_plane(i, side, from, to, start, finish)
    integer, intent(in) :: i, side, from(3), to(3), start(3), finish(3)
    integer :: j, k
    call receive(rate(:, i, inner(1, 2):inner(2, 2), start(3) + side), from(3))
    call receive(rate(:, i, start(2) + side, inner(1, 3):inner(2, 3)), from(2))
    do k = start(3), finish(3), -side
      do j = start(2), finish(2), -side
        call relax_point([i, j, k], side)
      end do
    end do
    call hand_on(rate(:, i, inner(1, 2):inner(2, 2), finish(3)), to(3))
    call hand_on(rate(:, i, finish(2), inner(1, 3):inner(2, 3)), to(2))
  end subroutine

  subroutine receive(values, from)
    real(real64), intent(inout) :: values(:, :)
    integer, intent(in) :: from
    real(real64) :: buffer(size(values))
    if (from == MPI_PROC_NULL) return
    call MPI_Recv(buffer, size(buffer), MPI_DOUBLE_PRECISION, from, 1, comm_number, MPI_STATUS_IGNORE, ierror)
    values = reshape(buffer, shape(values))
  end subroutine

  subroutine hand_on(values, to)
    real(real64), intent(in) :: values(:, :)
    integer, intent(in) :: to
    call MPI_Send(values, size(values), MPI_DOUBLE_PRECISION, to, 1, comm_number, ierror)
  end subroutine

  ! In the first sweep what the neighbours have goes to the right side of the point's system, in the second it corrects the
  ! first's result.
  subroutine relax_point(at, side)
    integer, intent(in) :: at(3), side
    integer :: d, next(3)
    real(real64) :: system(5, 1), h
    h = n - 1
    system = 0
    do d = 1, 3
      next = at
      next(d) = next(d) + side
      system(:, 1) = system(:, 1) + RELAXATION * matmul(side_block(u(:, next(1), next(2), next(3)), d, side, dt, h), &
                                                        rate(:, next(1), next(2), next(3)))
    end do
    associate (value => rate(:, at(1), at(2), at(3)))
      if (side < 0) system(:, 1) = value - system(:, 1)
      call divide(own_block(u(:, at(1), at(2), at(3)), 1, 3, dt, h), system)
      if (side < 0) then
        value = system(:, 1)
      else
        value = value - system(:, 1)
      end if
    end associate
  end subroutine

  subroutine verify_all()
    integer :: low(3), high(3)
    low = [1, 1, 2]
    high = [n - 2, n - 3, n - 2]
    if (large) then
      call verify_norms([0.1236511638192e+2_real64, 0.1317228477799e+1_real64, 0.2550120713095e+1_real64, &
                         0.2326187750252e+1_real64, 0.2826799444189e+2_real64], &
                        [0.4867877144216_real64, 0.5064652880982e-1_real64, 0.9281818101960e-1_real64, &
                         0.8570126542733e-1_real64, 0.1084277417792e+1_real64])
      call verify('integral', pressure_on_faces(low, high), 0.1161399311023e+2_real64, 1e-8_real64)
    else
      call verify_norms([1.6196343210976702e-2_real64, 2.1976745164821318e-3_real64, 1.5179927653399185e-3_real64, &
                         1.5029584435994323e-3_real64, 3.4264073155896461e-2_real64], &
                        [6.4223319957960924e-4_real64, 8.4144342047347926e-5_real64, 5.8588269616485186e-5_real64, &
                         5.8474222595157350e-5_real64, 1.3103347914111294e-3_real64])
      call verify('integral', pressure_on_faces(low, high), 7.8418928865937083_real64, 1e-8_real64)
    end if
  end subroutine
end program
