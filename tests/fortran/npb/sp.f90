! SPDX-License-Identifier: BSD-3-Clause
! SP of the NAS Parallel Benchmarks (RNR-94-007 section 3.3.2): as BT, but the blocks are made diagonal by the eigenvectors of
! the flow, so that there are five independent systems of five diagonals along each line, the first three of them with equal
! coefficients. A whole block's lines are handed on at once, in messages prepared as persistent requests. With the module
! mpi_f08.
module characteristics
  use flow
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  real(real64), parameter :: ROOT = sqrt(0.5_real64)
contains
  ! From the conserved quantities to the characteristic ones in x.
  pure function to_characteristics(u, r) result(to)
    real(real64), intent(in) :: u(5), r(5)
    real(real64) :: to(5), v(3), c, pressure, normal
    v = u(2:4) / u(1)
    c = speed_of_sound(u)
    pressure = (GAS - 1) / c**2 * (sum(v * v) / 2 * r(1) - dot_product(v, r(2:4)) + r(5))
    normal = ROOT / u(1) * (v(1) * r(1) - r(2))
    to = [r(1) - pressure, (r(4) - v(3) * r(1)) / u(1), (v(2) * r(1) - r(3)) / u(1), ROOT / u(1) * c * pressure - normal, &
          ROOT / u(1) * c * pressure + normal]
  end function

  ! From those in x to those in y, and from y to z.
  pure function turned(r, d) result(to)
    real(real64), intent(in) :: r(5)
    integer, intent(in) :: d
    real(real64) :: to(5), half
    half = (r(4) + r(5)) / 2
    if (d == 1) then
      to = [-r(2), r(1), ROOT * (r(4) - r(5)), half - ROOT * r(3), half + ROOT * r(3)]
    else
      to = [ROOT * (r(4) - r(5)), -r(3), r(2), half - ROOT * r(1), half + ROOT * r(1)]
    end if
  end function

  ! From those in z back to the conserved quantities.
  pure function from_characteristics(u, r) result(to)
    real(real64), intent(in) :: u(5), r(5)
    real(real64) :: to(5), v(3), c, sound, density, normal
    v = u(2:4) / u(1)
    c = speed_of_sound(u)
    sound = ROOT * u(1) / c * (r(4) + r(5))
    density = r(3) + sound
    normal = ROOT * u(1) * (r(4) - r(5))
    to = [density, v(1) * density - u(1) * r(2), v(2) * density + u(1) * r(1), v(3) * density + normal, &
          u(1) * (v(2) * r(1) - v(1) * r(2)) + sum(v * v) / 2 * density + c**2 / (GAS - 1) * sound + v(3) * normal]
  end function

  ! The most that viscosity and extra diffusion do at a point in direction d.
  pure real(real64) function strongest_diffusion(u, d)
    real(real64), intent(in) :: u(5)
    integer, intent(in) :: d
    strongest_diffusion = EXTRA_DIFFUSION(d) + VISCOSITY / u(1) * max(4 / 3._real64, GAS * GAS)
  end function

  ! The five coefficients of a point of a line of n. `wave`: how fast the quantity moves, beside the fluid, in multiples of the
  ! speed of sound.
  pure function coefficients(states, i, n, d, wave, dt) result(row)
    real(real64), intent(in) :: states(5, -1:1), dt
    integer, intent(in) :: i, n, d, wave
    real(real64) :: row(-2:2), h, speed(-1:1), diffusion(-1:1)
    integer :: side
    h = n - 1
    do side = -1, 1
      speed(side) = states(1 + d, side) / states(1, side) + wave * speed_of_sound(states(:, side))
      diffusion(side) = strongest_diffusion(states(:, side), d)
    end do
    row = dt * FOURTH_DAMPING * [1, -4, merge(5, 6, i == 1 .or. i == n - 2), -4, 1]
    if (i <= 2) row(-2) = 0
    if (i == 1) row(-1) = 0
    if (i >= n - 3) row(2) = 0
    if (i == n - 2) row(1) = 0
    row(-1) = row(-1) - dt * h / 2 * speed(-1) - dt * h * h * diffusion(-1)
    row(0) = row(0) + 1 + 2 * dt * h * h * diffusion(0)
    row(1) = row(1) + dt * h / 2 * speed(1) - dt * h * h * diffusion(1)
  end function
end module

program sp
  use mpi_f08
  use flow
  use characteristics
  use blocks
  use benchmark
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  ! Of a point, eliminated: x = value - ahead(1) * next x - ahead(2) * the one after; for the fluid's own speed and the two
  ! waves.
  type eliminated
    sequence
    real(real64) :: ahead(2, 3), value(5)
  end type
  integer, parameter :: WAVES(3) = [0, 1, -1], WAVE_OF(5) = [1, 1, 1, 2, 3], WORDS = 11
  ! What goes from block to block in each direction: two points of each line.
  type messages
    type(eliminated), allocatable :: in(:, :, :), out(:, :, :)
    real(real64), allocatable :: solved_in(:, :, :, :), solved_out(:, :, :, :)
    type(MPI_Request) :: requests(4)
  end type
  type(messages), target, asynchronous :: along(3)
  real(real64) :: dt
  integer :: rank, step, n_steps, d
  logical :: member, large
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  large = class_of_problem('SW') == 'W'
  dt = merge(0.0015_real64, 0.015_real64, large)
  n_steps = merge(400, 100, large)
  call blocks_start(merge(36, 12, large), member)
  if (member) then
    do d = 1, 3
      call prepare_messages(along(d), d)
    end do
    do step = 1, n_steps
      call find_rates()
      call transform_all(0)
      do d = 1, 3
        call solve(along(d), d)
        call transform_all(d)
      end do
      u = u + rate
    end do
    call find_rates()
    call verify_all()
    do d = 1, 3
      call free_messages(along(d))
    end do
    call blocks_end()
  end if
  call MPI_Finalize()
  if (rank == 0) print *, 'no errors'
contains
  subroutine prepare_messages(m, d)
    type(messages), intent(inout), asynchronous :: m
    integer, intent(in) :: d
    type(MPI_Comm) :: comm
    integer :: n_lines
    comm%MPI_VAL = comm_number
    associate (a0 => inner(1, OTHERS(1, d)), a1 => inner(2, OTHERS(1, d)), &
               b0 => inner(1, OTHERS(2, d)), b1 => inner(2, OTHERS(2, d)))
      allocate (m%in(2, a0:a1, b0:b1), m%out(2, a0:a1, b0:b1), m%solved_in(5, 2, a0:a1, b0:b1), m%solved_out(5, 2, a0:a1, b0:b1))
      n_lines = (a1 - a0 + 1) * (b1 - b0 + 1)
    end associate
    m%in = eliminated(0, 0) ! what the first and the last block find outside
    m%solved_in = 0
    call MPI_Recv_init(m%in, 2 * WORDS * n_lines, MPI_DOUBLE_PRECISION, before(d), d, comm, m%requests(1))
    call MPI_Send_init(m%out, 2 * WORDS * n_lines, MPI_DOUBLE_PRECISION, behind(d), d, comm, m%requests(2))
    call MPI_Recv_init(m%solved_in, 10 * n_lines, MPI_DOUBLE_PRECISION, behind(d), d, comm, m%requests(3))
    call MPI_Send_init(m%solved_out, 10 * n_lines, MPI_DOUBLE_PRECISION, before(d), d, comm, m%requests(4))
  end subroutine

  subroutine free_messages(m)
    type(messages), intent(inout), asynchronous :: m
    integer :: i
    do i = 1, 4
      call MPI_Request_free(m%requests(i))
    end do
    deallocate (m%in, m%out, m%solved_in, m%solved_out)
  end subroutine

  subroutine run_request(request)
    type(MPI_Request), intent(inout) :: request
    call MPI_Start(request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
  end subroutine

  ! All points inside: to the characteristic quantities (0), on after direction 1 or 2, or back after direction 3.
  subroutine transform_all(after)
    integer, intent(in) :: after
    integer :: i, j, k
    do k = inner(1, 3), inner(2, 3)
      do j = inner(1, 2), inner(2, 2)
        do i = 1, n - 2
          select case (after)
          case (0)
            rate(:, i, j, k) = to_characteristics(u(:, i, j, k), dt * rate(:, i, j, k))
          case (1, 2)
            rate(:, i, j, k) = turned(rate(:, i, j, k), after)
          case (3)
            rate(:, i, j, k) = from_characteristics(u(:, i, j, k), rate(:, i, j, k))
          end select
        end do
      end do
    end do
  end subroutine

  ! All lines in direction d: forth and back through the blocks.
  subroutine solve(m, d)
    type(messages), intent(inout), asynchronous :: m
    integer, intent(in) :: d
    type(eliminated), allocatable :: points(:, :, :)
    real(real64), pointer :: values(:, :)
    integer :: a, b, i
    associate (low => inner(1, d), high => inner(2, d), a0 => inner(1, OTHERS(1, d)), a1 => inner(2, OTHERS(1, d)), &
               b0 => inner(1, OTHERS(2, d)), b1 => inner(2, OTHERS(2, d)))
      allocate (points(low - 2:high, a0:a1, b0:b1))
      call run_request(m%requests(1))
      points(low - 2:low - 1, :, :) = m%in
      do b = b0, b1
        do a = a0, a1
          call eliminate(line(u, d, a, b), line(rate, d, a, b), d, low, high, points(:, a, b))
        end do
      end do
      m%out = points(high - 1:high, :, :)
      call run_request(m%requests(2))
      call run_request(m%requests(3))
      do b = b0, b1
        do a = a0, a1
          values => line(rate, d, a, b)
          values(:, high + 1:high + 2) = m%solved_in(:, :, a, b)
          do i = high, low, -1
            associate (p => points(i, a, b))
              values(:, i) = p%value - p%ahead(1, WAVE_OF) * values(:, i + 1) - p%ahead(2, WAVE_OF) * values(:, i + 2)
            end associate
          end do
          m%solved_out(:, :, a, b) = values(:, low:low + 1)
        end do
      end do
      call run_request(m%requests(4))
    end associate
  end subroutine

  ! Takes the two points before out of each point's equation.
  subroutine eliminate(states, values, d, low, high, points)
    real(real64), pointer, intent(in) :: states(:, :), values(:, :)
    integer, intent(in) :: d, low, high
    type(eliminated), intent(inout) :: points(low - 2:high)
    real(real64) :: row(-2:2)
    integer :: i, w
    do i = low, high
      do w = 1, 3
        row = coefficients(states(:, i - 1:i + 1), i, n, d, WAVES(w), dt)
        row(-1:0) = row(-1:0) - row(-2) * points(i - 2)%ahead(:, w)
        row(0:1) = row(0:1) - row(-1) * points(i - 1)%ahead(:, w)
        points(i)%ahead(:, w) = row(1:2) / row(0)
        where (WAVE_OF == w) points(i)%value = &
          (values(:, i) - row(-2) * points(i - 2)%value - row(-1) * points(i - 1)%value) / row(0)
      end do
    end do
  end subroutine

  subroutine verify_all()
    if (large) then
      call verify_norms([0.1893253733584e-2_real64, 0.1717075447775e-3_real64, 0.2778153350936e-3_real64, &
                         0.2887475409984e-3_real64, 0.3143611161242e-2_real64], &
                        [0.7542088599534e-4_real64, 0.6512852253086e-5_real64, 0.1049092285688e-4_real64, &
                         0.1128838671535e-4_real64, 0.1212845639773e-3_real64])
    else
      call verify_norms([2.7470315451339479e-2_real64, 1.0360746705285417e-2_real64, 1.6235745065095532e-2_real64, &
                         1.5840557224455615e-2_real64, 3.4849040609362460e-2_real64], &
                        [2.7289258557377227e-5_real64, 1.0364446640837285e-5_real64, 1.6154798287166471e-5_real64, &
                         1.5750704994480102e-5_real64, 3.4177666183390531e-5_real64])
    end if
  end subroutine
end program
