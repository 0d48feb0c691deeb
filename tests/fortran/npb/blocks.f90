! SPDX-License-Identifier: BSD-3-Clause
! The cube of a simulated application, cut in y and z: each rank has a block that is whole in x, with two layers of its
! neighbours' around it. With the module mpi_f08; what the ranks exchange are sections of the arrays.
module blocks
  use mpi_f08
  use flow
  use benchmark
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  private
  public blocks_end, blocks_start, before, behind, comm_number, find_rates, first, inner, last, line, n, &
    OTHERS, pressure_on_faces, rate, u, verify_norms
  integer :: n                                                  ! points on an edge
  integer :: first(3), last(3)                                  ! my block's points, from 0
  integer :: inner(2, 3)                                        ! the same without the surface of the cube
  integer :: before(3), behind(3)                               ! neighbours' ranks
  integer :: comm_number                                        ! of the communicator of all blocks, for other bindings
  real(real64), pointer :: u(:, :, :, :), rate(:, :, :, :)      ! the state, and how it changes
  real(real64), pointer :: forces(:, :, :, :)
  type(MPI_Comm) :: comm
  integer, parameter :: OTHERS(2, 3) = reshape([2, 3, 1, 3, 1, 2], [2, 3])
contains
  ! Cuts the cube for as many ranks as leave two points to each in both directions; `member` tells those that have a block. The
  ! state is what the exact solution on the surface makes of the inside by interpolation.
  subroutine blocks_start(edge, member)
    integer, intent(in) :: edge
    logical, intent(out) :: member
    type(MPI_Comm) :: some
    integer :: rank, part, dims(2), place(2)
    n = edge
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, part)
    do
      dims = 0
      call MPI_Dims_create(part, 2, dims)
      if (all(2 * dims <= n)) exit
      part = part - 1
    end do
    member = rank < part
    call MPI_Comm_split(MPI_COMM_WORLD, merge(0, MPI_UNDEFINED, member), rank, some)
    if (.not. member) return
    call MPI_Cart_create(some, 2, dims, [.false., .false.], .false., comm)
    call MPI_Comm_free(some)
    call MPI_Cart_coords(comm, rank, 2, place)
    comm_number = comm%MPI_VAL
    first = [0, place * n / dims]
    last = [n, (place + 1) * n / dims] - 1
    inner(1, :) = max(first, 1)
    inner(2, :) = min(last, n - 2)
    before(1) = MPI_PROC_NULL
    behind(1) = MPI_PROC_NULL
    call MPI_Cart_shift(comm, 0, 1, before(2), behind(2))
    call MPI_Cart_shift(comm, 1, 1, before(3), behind(3))
    call make_fields()
  end subroutine

  subroutine blocks_end()
    deallocate (u, rate, forces)
    call MPI_Comm_free(comm)
  end subroutine

  subroutine make_fields()
    integer :: i, j, k
    call make_field(u)
    call make_field(rate)
    call make_field(forces)
    do k = first(3) - 2, last(3) + 2
      do j = first(2) - 2, last(2) + 2
        do i = -2, n + 1
          u(:, i, j, k) = exact(position([i, j, k]))
        end do
      end do
    end do
    call add_to_rates()
    forces = -rate
    do k = first(3), last(3)
      do j = first(2), last(2)
        do i = 0, n - 1
          u(:, i, j, k) = interpolated(position([i, j, k]))
        end do
      end do
    end do
  end subroutine

  subroutine make_field(field)
    real(real64), pointer, intent(out) :: field(:, :, :, :)
    allocate (field(5, first(1) - 2:last(1) + 2, first(2) - 2:last(2) + 2, first(3) - 2:last(3) + 2))
    field = 0
  end subroutine

  pure function position(at)
    integer, intent(in) :: at(3)
    real(real64) :: position(3)
    position = real(at, real64) / (n - 1)
  end function

  ! between the opposite faces, in all directions at once; on the surface that is the exact solution
  pure function interpolated(at) result(state)
    real(real64), intent(in) :: at(3)
    real(real64) :: state(5), ends(3), between(5, 3)
    integer :: d
    do d = 1, 3
      ends = at
      ends(d) = 0
      between(:, d) = (1 - at(d)) * exact(ends)
      ends(d) = 1
      between(:, d) = between(:, d) + at(d) * exact(ends)
    end do
    state = sum(between, 2) - between(:, 1) * between(:, 2) - between(:, 1) * between(:, 3) - between(:, 2) * between(:, 3) + &
            product(between, 2)
    if (any(at <= 0 .or. at >= 1)) state = exact(at)
  end function

  ! The points of a field along direction d, the place in the other two being a and b.
  function line(field, d, a, b)
    real(real64), pointer, intent(in) :: field(:, :, :, :)
    integer, intent(in) :: d, a, b
    real(real64), pointer :: line(:, :)
    select case (d)
    case (1)
      line(1:, lbound(field, 2):) => field(:, :, a, b)
    case (2)
      line(1:, lbound(field, 3):) => field(:, a, :, b)
    case default
      line(1:, lbound(field, 4):) => field(:, a, b, :)
    end select
  end function

  ! Two layers of the state from each neighbour.
  subroutine exchange()
    type(MPI_Request) :: requests(8)
    integer :: words(2:3)
    words = 10 * n * [last(3) - first(3) + 1, last(2) - first(2) + 1]
    associate (w => words, y0 => first(2), y1 => last(2), z0 => first(3), z1 => last(3), x1 => n - 1)
      call MPI_Irecv(u(:, 0:x1, y0 - 2:y0 - 1, z0:z1), w(2), MPI_DOUBLE_PRECISION, before(2), 1, comm, requests(1))
      call MPI_Irecv(u(:, 0:x1, y1 + 1:y1 + 2, z0:z1), w(2), MPI_DOUBLE_PRECISION, behind(2), 2, comm, requests(2))
      call MPI_Irecv(u(:, 0:x1, y0:y1, z0 - 2:z0 - 1), w(3), MPI_DOUBLE_PRECISION, before(3), 3, comm, requests(3))
      call MPI_Irecv(u(:, 0:x1, y0:y1, z1 + 1:z1 + 2), w(3), MPI_DOUBLE_PRECISION, behind(3), 4, comm, requests(4))
      call MPI_Isend(u(:, 0:x1, y1 - 1:y1, z0:z1), w(2), MPI_DOUBLE_PRECISION, behind(2), 1, comm, requests(5))
      call MPI_Isend(u(:, 0:x1, y0:y0 + 1, z0:z1), w(2), MPI_DOUBLE_PRECISION, before(2), 2, comm, requests(6))
      call MPI_Isend(u(:, 0:x1, y0:y1, z1 - 1:z1), w(3), MPI_DOUBLE_PRECISION, behind(3), 3, comm, requests(7))
      call MPI_Isend(u(:, 0:x1, y0:y1, z0:z0 + 1), w(3), MPI_DOUBLE_PRECISION, before(3), 4, comm, requests(8))
    end associate
    call MPI_Waitall(8, requests, MPI_STATUSES_IGNORE)
    if (.not. MPI_ASYNC_PROTECTS_NONBLOCKING) call MPI_F_sync_reg(u)
  end subroutine

  ! The rates of change inside the cube, from the state of all blocks.
  subroutine find_rates()
    call exchange()
    rate = forces
    call add_to_rates()
  end subroutine

  subroutine add_to_rates()
    integer :: d, a, b
    real(real64), pointer :: states(:, :), changes(:, :)
    do d = 1, 3
      associate (low => inner(1, d), high => inner(2, d))
        do b = inner(1, OTHERS(2, d)), inner(2, OTHERS(2, d))
          do a = inner(1, OTHERS(1, d)), inner(2, OTHERS(1, d))
            states => line(u, d, a, b)
            changes => line(rate, d, a, b)
            call add_changes(states(:, low - 2:high + 2), d, n, low, high, changes(:, low:high))
          end do
        end do
      end associate
    end do
  end subroutine

  ! The mean change and the mean error of the state against published values.
  subroutine verify_norms(rates_published, errors_published)
    real(real64), intent(in) :: rates_published(5), errors_published(5)
    real(real64) :: sums(5, 2), all_sums(5, 2)
    integer :: i, j, k
    sums = 0
    do k = first(3), last(3)
      do j = first(2), last(2)
        do i = 0, n - 1
          sums(:, 1) = sums(:, 1) + rate(:, i, j, k)**2
          sums(:, 2) = sums(:, 2) + (u(:, i, j, k) - exact(position([i, j, k])))**2
        end do
      end do
    end do
    call MPI_Allreduce(sums, all_sums, 10, MPI_DOUBLE_PRECISION, MPI_SUM, comm)
    all_sums = sqrt(all_sums / real(n - 2, real64)**3)
    call verify('change', all_sums(:, 1), rates_published, 1e-8_real64)
    call verify('error', all_sums(:, 2), errors_published, 1e-8_real64)
  end subroutine

  ! The integral of the pressure over the faces of a box inside the cube, by the trapezoidal rule: points low(d) to high(d).
  real(real64) function pressure_on_faces(low, high)
    integer, intent(in) :: low(3), high(3)
    real(real64) :: mine, weight
    integer :: at(3), i, j, k, d, e
    mine = 0
    do k = max(first(3), low(3)), min(last(3), high(3))
      do j = max(first(2), low(2)), min(last(2), high(2))
        do i = low(1), high(1)
          at = [i, j, k]
          do d = 1, 3
            if (at(d) /= low(d) .and. at(d) /= high(d)) cycle
            weight = 1
            do e = 1, 2
              if (at(OTHERS(e, d)) /= low(OTHERS(e, d)) .and. at(OTHERS(e, d)) /= high(OTHERS(e, d))) weight = 2 * weight
            end do
            mine = mine + weight * (GAS - 1) * (u(5, i, j, k) - sum(u(2:4, i, j, k)**2) / (2 * u(1, i, j, k)))
          end do
        end do
      end do
    end do
    call MPI_Allreduce(mine, pressure_on_faces, 1, MPI_DOUBLE_PRECISION, MPI_SUM, comm)
    pressure_on_faces = pressure_on_faces / 4 / real(n - 1, real64)**2
  end function
end module
