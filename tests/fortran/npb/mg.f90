! SPDX-License-Identifier: BSD-3-Clause
! MG of the NAS Parallel Benchmarks (RNR-94-007 section 2.5): Poisson's equation with twenty point charges in a periodic cube,
! by V-cycles of multigrid. The cube is cut in three dimensions, and neighbours exchange the faces of their blocks as sections
! of arrays, on each level. With the module mpi_f08, on the largest power of two of ranks up to 8, since the coarsest grid has 8
! points; the others look on.
module grids
  use mpi_f08
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  ! Weights of the points of a cube of 27 by their distance: itself, faces, edges, corners.
  real(real64), parameter :: OPERATOR(0:3) = [-8 / 3._real64, 0._real64, 1 / 6._real64, 1 / 12._real64]
  real(real64), parameter :: SMOOTHER(0:3) = [-3 / 8._real64, 1 / 32._real64, -1 / 64._real64, 0._real64]
  real(real64), parameter :: RESTRICTION(0:3) = [1 / 2._real64, 1 / 4._real64, 1 / 8._real64, 1 / 16._real64]
  ! One grid: my block of it, and one layer of its neighbours' around it.
  type level
    real(real64), allocatable :: u(:, :, :), r(:, :, :)
  end type
  type(MPI_Comm) :: cube
contains
  pure real(real64) function weighted(x, i, j, k, weights)
    real(real64), intent(in) :: x(0:, 0:, 0:), weights(0:3)
    integer, intent(in) :: i, j, k
    integer :: a, b, c
    weighted = 0
    do c = -1, 1
      do b = -1, 1
        do a = -1, 1
          weighted = weighted + weights(abs(a) + abs(b) + abs(c)) * x(i + a, j + b, k + c)
        end do
      end do
    end do
  end function

  ! The layer around a block. A dimension after the other, each with what the one before has brought, so that edges and corners
  ! come along.
  subroutine exchange(x)
    real(real64), intent(inout) :: x(0:, 0:, 0:)
    integer :: d, below, above, n(3)
    n = shape(x) - 2
    do d = 1, 3
      call MPI_Cart_shift(cube, d - 1, 1, below, above)
      select case (d)
      case (1)
        call both_ways(x(1:1, :, :), x(n(1) + 1:, :, :), x(n(1):n(1), :, :), x(:0, :, :))
      case (2)
        call both_ways(x(:, 1:1, :), x(:, n(2) + 1:, :), x(:, n(2):n(2), :), x(:, :0, :))
      case (3)
        call both_ways(x(:, :, 1:1), x(:, :, n(3) + 1:), x(:, :, n(3):n(3)), x(:, :, :0))
      end select
    end do
  contains
    subroutine both_ways(lowest, from_above, highest, from_below)
      real(real64), intent(in) :: lowest(:, :, :), highest(:, :, :)
      real(real64), intent(inout) :: from_above(:, :, :), from_below(:, :, :)
      integer :: words
      words = size(lowest)
      call MPI_Sendrecv(lowest, words, MPI_DOUBLE_PRECISION, below, 1, from_above, words, MPI_DOUBLE_PRECISION, above, 1, cube, &
                        MPI_STATUS_IGNORE)
      call MPI_Sendrecv(highest, words, MPI_DOUBLE_PRECISION, above, 2, from_below, words, MPI_DOUBLE_PRECISION, below, 2, cube, &
                        MPI_STATUS_IGNORE)
    end subroutine
  end subroutine

  ! r = r - A u
  subroutine subtract_product(u, r)
    real(real64), intent(in) :: u(0:, 0:, 0:)
    real(real64), intent(inout) :: r(0:, 0:, 0:)
    integer :: i, j, k
    do k = 1, ubound(u, 3) - 1
      do j = 1, ubound(u, 2) - 1
        do i = 1, ubound(u, 1) - 1
          r(i, j, k) = r(i, j, k) - weighted(u, i, j, k, OPERATOR)
        end do
      end do
    end do
    call exchange(r)
  end subroutine

  ! u = u + S r
  subroutine smooth(r, u)
    real(real64), intent(in) :: r(0:, 0:, 0:)
    real(real64), intent(inout) :: u(0:, 0:, 0:)
    integer :: i, j, k
    do k = 1, ubound(u, 3) - 1
      do j = 1, ubound(u, 2) - 1
        do i = 1, ubound(u, 1) - 1
          u(i, j, k) = u(i, j, k) + weighted(r, i, j, k, SMOOTHER)
        end do
      end do
    end do
    call exchange(u)
  end subroutine

  ! Point i of the coarse grid is point 2 i of the fine one.
  subroutine restrict(fine, coarse)
    real(real64), intent(in) :: fine(0:, 0:, 0:)
    real(real64), intent(inout) :: coarse(0:, 0:, 0:)
    integer :: i, j, k
    do k = 1, ubound(coarse, 3) - 1
      do j = 1, ubound(coarse, 2) - 1
        do i = 1, ubound(coarse, 1) - 1
          coarse(i, j, k) = weighted(fine, 2 * i, 2 * j, 2 * k, RESTRICTION)
        end do
      end do
    end do
    call exchange(coarse)
  end subroutine

  ! Adds to each point of the fine grid the mean of the points of the coarse one around it: 1, 2, 4 or 8.
  subroutine add_interpolated(coarse, fine)
    real(real64), intent(in) :: coarse(0:, 0:, 0:)
    real(real64), intent(inout) :: fine(0:, 0:, 0:)
    integer :: i, j, k
    do k = 1, ubound(fine, 3) - 1
      do j = 1, ubound(fine, 2) - 1
        do i = 1, ubound(fine, 1) - 1
          associate (around => coarse(i / 2:(i + 1) / 2, j / 2:(j + 1) / 2, k / 2:(k + 1) / 2))
            fine(i, j, k) = fine(i, j, k) + sum(around) / size(around)
          end associate
        end do
      end do
    end do
    call exchange(fine)
  end subroutine
end module

program mg
  use mpi_f08
  use grids
  use random_numbers
  use benchmark
  use, intrinsic :: iso_fortran_env, only: int64, real64
  implicit none
  integer, parameter :: N_CYCLES = 4
  integer :: rank, n_ranks, part, edge, depth, dims(3), place(3), cycles
  real(real64) :: published
  real(real64), allocatable :: v(:, :, :)
  type(level), allocatable :: levels(:)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, n_ranks)
  if (class_of_problem('SW') == 'S') then
    depth = 5
    published = 0.5307707005734e-4_real64
  else
    depth = 7
    published = 0.6467329375339e-5_real64
  end if
  edge = 2**depth
  call cut()
  if (cube /= MPI_COMM_NULL) then
    call make_charges()
    levels(depth)%u = 0
    levels(depth)%r = v
    do cycles = 1, N_CYCLES
      call go_down_and_up()
      levels(depth)%r = v
      call subtract_product(levels(depth)%u, levels(depth)%r)
    end do
    call verify('residual', norm(levels(depth)%r), published, 1e-8_real64)
    call MPI_Comm_free(cube)
  end if
  call MPI_Finalize()
  if (rank == 0) print *, 'no errors'
contains
  subroutine cut()
    type(MPI_Comm) :: some
    integer :: i, n(3)
    part = 1
    do while (2 * part <= min(n_ranks, 8))
      part = 2 * part
    end do
    cube = MPI_COMM_NULL
    call MPI_Comm_split(MPI_COMM_WORLD, merge(0, MPI_UNDEFINED, rank < part), rank, some)
    if (some == MPI_COMM_NULL) return
    dims = 0
    call MPI_Dims_create(part, 3, dims)
    call MPI_Cart_create(some, 3, dims, [.true., .true., .true.], .false., cube)
    call MPI_Comm_free(some)
    call MPI_Cart_coords(cube, rank, 3, place)
    allocate (levels(depth))
    do i = 1, depth
      n = 2**i / dims
      allocate (levels(i)%u(0:n(1) + 1, 0:n(2) + 1, 0:n(3) + 1), levels(i)%r(0:n(1) + 1, 0:n(2) + 1, 0:n(3) + 1))
    end do
    allocate (v, mold=levels(depth)%u)
  end subroutine

  ! A charge of 1 where the ten largest of as many random numbers as points are, of -1 where the ten smallest are.
  subroutine make_charges()
    type(MPI_Op) :: operation
    real(real64) :: numbers(edge / dims(1), edge / dims(2), edge / dims(3)), best(2), mine(2)
    integer(int64) :: seed, row
    integer :: i, j, k, n(3), at(3), turn
    n = shape(numbers)
    do k = 1, n(3)
      do j = 1, n(2)
        row = (place(3) * n(3) + k - 1) * int(edge, int64) + place(2) * n(2) + j - 1
        seed = after(314159265_int64, row * edge + place(1) * n(1))
        do i = 1, n(1)
          numbers(i, j, k) = next(seed)
        end do
      end do
    end do
    v = 0
    do turn = 1, 20
      at = merge(maxloc(numbers), minloc(numbers), turn <= 10)
      mine = [numbers(at(1), at(2), at(3)), real(rank, real64)]
      operation = MPI_MINLOC
      if (turn <= 10) operation = MPI_MAXLOC
      call MPI_Allreduce(mine, best, 1, MPI_2DOUBLE_PRECISION, operation, cube)
      if (nint(best(2)) /= rank) cycle
      v(at(1), at(2), at(3)) = merge(1, -1, turn <= 10)
      numbers(at(1), at(2), at(3)) = 0.5_real64 ! neither large nor small
    end do
    call exchange(v)
  end subroutine

  subroutine go_down_and_up()
    integer :: i
    do i = depth, 2, -1
      call restrict(levels(i)%r, levels(i - 1)%r)
    end do
    levels(1)%u = 0
    call smooth(levels(1)%r, levels(1)%u)
    do i = 2, depth
      if (i < depth) levels(i)%u = 0
      call add_interpolated(levels(i - 1)%u, levels(i)%u)
      if (i == depth) levels(i)%r = v
      call subtract_product(levels(i)%u, levels(i)%r)
      call smooth(levels(i)%r, levels(i)%u)
    end do
  end subroutine

  real(real64) function norm(x)
    real(real64), intent(in) :: x(0:, 0:, 0:)
    integer :: n(3)
    n = shape(x) - 2
    call MPI_Allreduce(sum(x(1:n(1), 1:n(2), 1:n(3))**2), norm, 1, MPI_DOUBLE_PRECISION, MPI_SUM, cube)
    norm = sqrt(norm / real(edge, real64)**3)
  end function
end program
