! SPDX-License-Identifier: BSD-3-Clause
! CG of the NAS Parallel Benchmarks (RNR-94-007 section 2.4): the smallest eigenvalue of a large sparse matrix by inverse
! iteration, each step by 25 steps of the conjugate gradient. The matrix is cut in blocks by rows and columns; a product is
! summed across the ranks of a row and comes home by an exchange with the rank on the other side of the diagonal. With the
! module mpi, on the largest power of two of ranks, 64 at most; the others look on.
program cg
  use mpi
  use random_numbers
  use benchmark
  use, intrinsic :: iso_fortran_env, only: int64, real64
  implicit none
  real(real64), parameter :: CONDITION = 0.1_real64
  integer, parameter :: N_STEPS = 15
  integer :: comm, row_comm, rank, n_ranks, part, ierror, n, n_nonzero, n_rows, n_columns, my_row, my_column, high, wide
  real(real64) :: shift, published
  integer, allocatable :: row_at(:), column(:) ! of the elements of row i of my block: row_at(i) to row_at(i + 1) - 1
  real(real64), allocatable :: element(:)
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, n_ranks, ierror)
  call choose_class()
  call cut()
  if (comm /= MPI_COMM_NULL) then
    call make_matrix()
    call iterate()
    call MPI_Comm_free(row_comm, ierror)
    call MPI_Comm_free(comm, ierror)
  end if
  call MPI_Finalize(ierror)
  if (rank == 0) print *, 'no errors'
contains
  subroutine choose_class()
    if (class_of_problem('SW') == 'S') then
      n = 1400
      n_nonzero = 7
      shift = 10
      published = 8.5971775078648_real64
    else
      n = 7000
      n_nonzero = 8
      shift = 12
      published = 10.362595087124_real64
    end if
  end subroutine

  ! Blocks are square, or twice as high as wide.
  subroutine cut()
    part = 1
    do while (2 * part <= min(n_ranks, 64))
      part = 2 * part
    end do
    n_rows = 1
    do while (4 * n_rows * n_rows <= part)
      n_rows = 2 * n_rows
    end do
    n_columns = part / n_rows
    high = n / n_rows
    wide = n / n_columns
    call MPI_Comm_split(MPI_COMM_WORLD, merge(0, MPI_UNDEFINED, rank < part), rank, comm, ierror)
    if (comm == MPI_COMM_NULL) return
    my_row = rank / n_columns
    my_column = mod(rank, n_columns)
    call MPI_Comm_split(comm, my_row, my_column, row_comm, ierror)
  end subroutine

  ! The matrix is a sum of outer products of sparse random vectors, with weights that fall off geometrically, and the shift on
  ! its diagonal. Everyone draws all of it and keeps its block. An element may come in several pieces.
  subroutine make_matrix()
    integer :: i, a, b, n_kept, most, places(n_nonzero + 1), n_places, r, c
    integer, allocatable :: rows(:), columns(:)
    real(real64), allocatable :: values(:)
    real(real64) :: numbers(n_nonzero + 1), weight, value
    integer(int64) :: seed
    most = n * (n_nonzero + 1)**2
    allocate (rows(most), columns(most), values(most))
    seed = after(314159265_int64, 1_int64)
    weight = 1
    n_kept = 0
    do i = 1, n
      call draw_vector(seed, i, places, numbers, n_places)
      do a = 1, n_places
        do b = 1, n_places
          value = weight * numbers(a) * numbers(b)
          if (places(a) == i .and. places(b) == i) value = value + CONDITION - shift
          r = places(b) - my_row * high
          c = places(a) - my_column * wide
          if (r < 1 .or. r > high .or. c < 1 .or. c > wide) cycle
          n_kept = n_kept + 1
          rows(n_kept) = r
          columns(n_kept) = c
          values(n_kept) = value
        end do
      end do
      weight = weight * CONDITION**(1 / real(n, real64))
    end do
    call sort_by_rows(rows(:n_kept), columns(:n_kept), values(:n_kept))
  end subroutine

  ! Some places with random numbers, and a half at place i.
  subroutine draw_vector(seed, i, places, numbers, n_places)
    integer(int64), intent(inout) :: seed
    integer, intent(in) :: i
    integer, intent(out) :: places(:), n_places
    real(real64), intent(out) :: numbers(:)
    real(real64) :: number
    integer :: range, place
    range = 1
    do while (range < n)
      range = 2 * range
    end do
    n_places = 0
    do while (n_places < n_nonzero)
      number = next(seed)
      place = int(range * next(seed)) + 1
      if (place > n) cycle
      if (any(places(:n_places) == place)) cycle
      n_places = n_places + 1
      places(n_places) = place
      numbers(n_places) = number
    end do
    place = findloc(places(:n_places), i, 1)
    if (place == 0) then
      n_places = n_places + 1
      place = n_places
    end if
    places(place) = i
    numbers(place) = 0.5_real64
  end subroutine

  subroutine sort_by_rows(rows, columns, values)
    integer, intent(in) :: rows(:), columns(:)
    real(real64), intent(in) :: values(:)
    integer :: i, fill(high)
    allocate (row_at(high + 1), column(size(rows)), element(size(rows)))
    row_at = 0
    do i = 1, size(rows)
      row_at(rows(i) + 1) = row_at(rows(i) + 1) + 1
    end do
    row_at(1) = 1
    do i = 1, high
      row_at(i + 1) = row_at(i) + row_at(i + 1)
    end do
    fill = row_at(:high)
    do i = 1, size(rows)
      column(fill(rows(i))) = columns(i)
      element(fill(rows(i))) = values(i)
      fill(rows(i)) = fill(rows(i)) + 1
    end do
  end subroutine

  ! Of the matrix with a vector, which each column of ranks has in pieces as wide as its blocks.
  function product_with(x) result(y)
    real(real64), intent(in) :: x(wide)
    real(real64) :: y(wide), mine(high), sums(high)
    integer :: i, partner, at
    do i = 1, high
      mine(i) = dot_product(element(row_at(i):row_at(i + 1) - 1), x(column(row_at(i):row_at(i + 1) - 1)))
    end do
    call MPI_Allreduce(mine, sums, high, MPI_DOUBLE_PRECISION, MPI_SUM, row_comm, ierror)
    ! My columns are among the rows of the row of ranks my_column / ratio; of them I ask the one that asks me.
    associate (ratio => n_columns / n_rows)
      partner = (my_column / ratio) * n_columns + my_row * ratio + mod(my_column, ratio)
      at = mod(my_column, ratio) * wide
    end associate
    call MPI_Sendrecv(sums(at + 1), wide, MPI_DOUBLE_PRECISION, partner, 1, y, wide, MPI_DOUBLE_PRECISION, partner, 1, comm, &
                      MPI_STATUS_IGNORE, ierror)
  end function

  real(real64) function dot(x, y)
    real(real64), intent(in) :: x(:), y(:)
    call MPI_Allreduce(dot_product(x, y), dot, 1, MPI_DOUBLE_PRECISION, MPI_SUM, row_comm, ierror)
  end function

  subroutine iterate()
    real(real64) :: x(wide), z(wide), estimate
    integer :: step
    x = 1
    do step = 1, N_STEPS
      z = solution_for(x)
      estimate = shift + 1 / dot(x, z)
      x = z / sqrt(dot(z, z))
    end do
    call verify('eigenvalue', estimate, published, 1e-10_real64)
  end subroutine

  ! by conjugate gradients
  function solution_for(x) result(z)
    real(real64), intent(in) :: x(wide)
    real(real64) :: z(wide), r(wide), p(wide), q(wide), rho, rho_before, alpha
    integer :: step
    z = 0
    r = x
    p = r
    rho = dot(r, r)
    do step = 1, 25
      q = product_with(p)
      alpha = rho / dot(p, q)
      z = z + alpha * p
      r = r - alpha * q
      rho_before = rho
      rho = dot(r, r)
      p = r + rho / rho_before * p
    end do
  end function
end program
