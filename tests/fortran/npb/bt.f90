! SPDX-License-Identifier: BSD-3-Clause
! BT of the NAS Parallel Benchmarks (RNR-94-007 section 3.3.3): implicit steps in x, y and z one after the other; along each
! line a system of blocks of 5 by 5 with three diagonals. The elimination runs from block to block of the ranks, plane by plane,
! so that the ranks of a row work at different planes. With the module mpi_f08.
program bt
  use mpi_f08
  use flow
  use blocks
  use benchmark
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  real(real64) :: dt
  integer :: rank, step, n_steps
  logical :: member, large
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  large = class_of_problem('SW') == 'W'
  dt = merge(0.0008_real64, 0.01_real64, large)
  n_steps = merge(200, 60, large)
  call blocks_start(merge(24, 12, large), member)
  if (member) then
    do step = 1, n_steps
      call find_rates()
      rate = dt * rate
      call solve(1)
      call solve(2)
      call solve(3)
      u = u + rate
    end do
    call find_rates()
    if (large) then
      call verify_norms([0.1125590409344e+3_real64, 0.1180007595731e+2_real64, 0.2710329767846e+2_real64, &
                         0.2469174937669e+2_real64, 0.2638427874317e+3_real64], &
                        [0.4419655736008e+1_real64, 0.4638531260002_real64, 0.1011551749967e+1_real64, 0.9235878729944_real64, &
                         0.1018045837718e+2_real64])
    else
      call verify_norms([1.7034283709541311e-1_real64, 1.2975252070034097e-2_real64, 3.2527926989486055e-2_real64, &
                         2.6436421275166801e-2_real64, 1.9211784131744430e-1_real64], &
                        [4.9976913345811579e-4_real64, 4.5195666782961927e-5_real64, 7.3973765172921357e-5_real64, &
                         7.3821238632439731e-5_real64, 8.9269630987491446e-4_real64])
    end if
    call blocks_end()
  end if
  call MPI_Finalize()
  if (rank == 0) print *, 'no errors'
contains
  ! All lines in direction d: forth and back through the blocks.
  subroutine solve(d)
    integer, intent(in) :: d
    ! In column 6 of what is handed on stands the right side.
    real(real64), allocatable :: upper(:, :, :, :, :), eliminated(:, :, :), solved(:, :)
    type(MPI_Comm) :: comm
    real(real64), pointer :: values(:, :)
    integer :: a, b, words
    comm%MPI_VAL = comm_number
    associate (low => inner(1, d), high => inner(2, d), a0 => inner(1, OTHERS(1, d)), a1 => inner(2, OTHERS(1, d)), &
               b0 => inner(1, OTHERS(2, d)), b1 => inner(2, OTHERS(2, d)))
      words = 5 * (a1 - a0 + 1)
      allocate (upper(5, 5, low - 1:high, a0:a1, b0:b1), eliminated(5, 6, a0:a1), solved(5, a0:a1))
      do b = b0, b1
        eliminated = 0
        call MPI_Recv(eliminated, 6 * words, MPI_DOUBLE_PRECISION, before(d), b, comm, MPI_STATUS_IGNORE)
        do a = a0, a1
          values => line(rate, d, a, b)
          upper(:, :, low - 1, a, b) = eliminated(:, :5, a)
          values(:, low - 1) = eliminated(:, 6, a)
          call eliminate(line(u, d, a, b), d, low, high, upper(:, :, :, a, b), values)
          eliminated(:, :5, a) = upper(:, :, high, a, b)
          eliminated(:, 6, a) = values(:, high)
        end do
        call MPI_Send(eliminated, 6 * words, MPI_DOUBLE_PRECISION, behind(d), b, comm)
      end do
      do b = b0, b1
        solved = 0
        call MPI_Recv(solved, words, MPI_DOUBLE_PRECISION, behind(d), b, comm, MPI_STATUS_IGNORE)
        do a = a0, a1
          values => line(rate, d, a, b)
          values(:, high + 1) = solved(:, a)
          call substitute_back(low, high, upper(:, :, :, a, b), values)
          solved(:, a) = values(:, low)
        end do
        call MPI_Send(solved, words, MPI_DOUBLE_PRECISION, before(d), b, comm)
      end do
    end associate
  end subroutine

  ! Point by point: what the point before contributes is taken out, and the rest divided by the point's own block.
  subroutine eliminate(states, d, low, high, upper, values)
    real(real64), pointer, intent(in) :: states(:, :), values(:, :)
    integer, intent(in) :: d, low, high
    real(real64), intent(inout) :: upper(5, 5, low - 1:high)
    real(real64) :: own(5, 5), lower(5, 5), h, system(5, 6)
    integer :: i
    h = n - 1
    do i = low, high
      lower = side_block(states(:, i - 1), d, -1, dt, h)
      own = own_block(states(:, i), d, d, dt, h) - matmul(lower, upper(:, :, i - 1))
      system(:, :5) = side_block(states(:, i + 1), d, 1, dt, h)
      system(:, 6) = values(:, i) - matmul(lower, values(:, i - 1))
      call divide(own, system)
      upper(:, :, i) = system(:, :5)
      values(:, i) = system(:, 6)
    end do
  end subroutine

  subroutine substitute_back(low, high, upper, values)
    integer, intent(in) :: low, high
    real(real64), intent(in) :: upper(5, 5, low - 1:high)
    real(real64), pointer, intent(in) :: values(:, :)
    integer :: i
    do i = high, low, -1
      values(:, i) = values(:, i) - matmul(upper(:, :, i), values(:, i + 1))
    end do
  end subroutine
end program
