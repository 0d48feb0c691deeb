! SPDX-License-Identifier: BSD-3-Clause
! The equations of the three simulated applications of the NAS Parallel Benchmarks (RNR-94-007 section 3): a compressible fluid
! in a cube, by its density, momentum in three directions and energy, with forces under which a chosen polynomial is the steady
! solution. Here is what belongs to a point or to a line of points; direction 1, 2 or 3 is x, y or z.
module flow
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  private
  public add_changes, divide, exact, EXTRA_DIFFUSION, FOURTH_DAMPING, GAS, own_block, side_block, speed_of_sound, VISCOSITY
  real(real64), parameter :: GAS = 1.4_real64 ! ratio of specific heats
  real(real64), parameter :: VISCOSITY = 0.1_real64, CONDUCTION = GAS * GAS * VISCOSITY
  real(real64), parameter :: EXTRA_DIFFUSION(3) = [0.75_real64, 0.75_real64, 1._real64]
  real(real64), parameter :: FOURTH_DAMPING = 0.25_real64
  ! Coefficients of the exact solution: for each of the five the constant, then x, y, z, then their squares, cubes and fourth
  ! powers.
  real(real64), parameter :: POLYNOMIAL(5, 13) = reshape([real(real64) :: &
    2, 1, 2, 2, 5, &
    0, 0, 2, 2, 4, 0, 0, 0, 0, 3, 4, 0, 0, 0, 2, &
    5, 1, 0, 0, 0.1_real64, 3, 2, 2, 2, 0.4_real64, 0.5_real64, 3, 3, 3, 0.3_real64, &
    0.02_real64, 0.01_real64, 0.04_real64, 0.03_real64, 0.05_real64, 0.01_real64, 0.03_real64, 0.03_real64, 0.05_real64, &
    0.04_real64, 0.03_real64, 0.02_real64, 0.05_real64, 0.04_real64, 0.03_real64, &
    0.5_real64, 0.4_real64, 0.3_real64, 0.2_real64, 0.1_real64, 0.4_real64, 0.3_real64, 0.5_real64, 0.1_real64, 0.3_real64, &
    0.3_real64, 0.5_real64, 0.4_real64, 0.3_real64, 0.2_real64], [5, 13])
contains
  ! The steady solution at a point of the unit cube.
  pure function exact(at) result(u)
    real(real64), intent(in) :: at(3)
    real(real64) :: u(5)
    integer :: d, power
    u = POLYNOMIAL(:, 1)
    do power = 1, 4
      do d = 1, 3
        u = u + POLYNOMIAL(:, 3 * power - 2 + d) * at(d)**power
      end do
    end do
  end function

  ! What flows through a point in direction d, by convection and by viscosity.
  pure subroutine find_fluxes(u, d, convection, diffusion)
    real(real64), intent(in) :: u(5)
    integer, intent(in) :: d
    real(real64), intent(out) :: convection(5), diffusion(5)
    real(real64) :: v(3), energy, pressure
    v = u(2:4) / u(1)
    energy = sum(v * v) / 2
    pressure = (GAS - 1) * (u(5) - u(1) * energy)
    convection = u * v(d)
    convection(1 + d) = convection(1 + d) + pressure
    convection(5) = convection(5) + pressure * v(d)
    diffusion = VISCOSITY * [0._real64, v, (1 - GAS * GAS) * energy + v(d)**2 / 6 + GAS * GAS * u(5) / u(1)]
    diffusion(1 + d) = diffusion(1 + d) * 4 / 3
  end subroutine

  ! Adds to `rate` the change of a line's points `low` to `high`, all inside, by what flows along the line. The line has `n`
  ! points, 0 to n - 1, and u holds two more of them on each side.
  pure subroutine add_changes(u, d, n, low, high, rate)
    integer, intent(in) :: d, n, low, high
    real(real64), intent(in) :: u(5, low - 2:high + 2)
    real(real64), intent(inout) :: rate(5, low:high)
    real(real64) :: convection(5, low - 1:high + 1), diffusion(5, low - 1:high + 1), h
    integer :: i
    h = n - 1
    do i = low - 1, high + 1
      call find_fluxes(u(:, i), d, convection(:, i), diffusion(:, i))
    end do
    diffusion = diffusion + EXTRA_DIFFUSION(d) * u(:, low - 1:high + 1)
    do i = low, high
      rate(:, i) = rate(:, i) - h / 2 * (convection(:, i + 1) - convection(:, i - 1)) + &
                   h * h * (diffusion(:, i + 1) - 2 * diffusion(:, i) + diffusion(:, i - 1)) - &
                   FOURTH_DAMPING * fourth_difference(u(:, i - 2:i + 2), i, n)
    end do
  end subroutine

  ! of five points around point i; near an end of the line less of them count
  pure function fourth_difference(u, i, n) result(difference)
    real(real64), intent(in) :: u(5, -2:2)
    integer, intent(in) :: i, n
    real(real64) :: difference(5)
    difference = merge(5, 6, i == 1 .or. i == n - 2) * u(:, 0)
    if (i > 1) difference = difference - 4 * u(:, -1)
    if (i > 2) difference = difference + u(:, -2)
    if (i < n - 2) difference = difference - 4 * u(:, 1)
    if (i < n - 3) difference = difference + u(:, 2)
  end function

  pure function identity() result(matrix)
    real(real64) :: matrix(5, 5)
    integer :: i
    matrix = 0
    do i = 1, 5
      matrix(i, i) = 1
    end do
  end function

  ! How the convection in direction d depends on u.
  pure function convection_matrix(u, d) result(matrix)
    real(real64), intent(in) :: u(5)
    integer, intent(in) :: d
    real(real64) :: matrix(5, 5), v(3), energy
    integer :: a
    v = u(2:4) / u(1)
    energy = sum(v * v) / 2
    matrix = 0
    do a = 1, 3
      matrix(1 + a, 1) = -v(a) * v(d)
      matrix(1 + a, 1 + a) = v(d)
    end do
    matrix(2:4, 1 + d) = matrix(2:4, 1 + d) + v
    matrix(1, 1 + d) = 1
    matrix(1 + d, :) = matrix(1 + d, :) + (GAS - 1) * [energy, -v, 1._real64]
    matrix(5, 1) = (2 * (GAS - 1) * energy - GAS * u(5) / u(1)) * v(d)
    matrix(5, 2:4) = -(GAS - 1) * v * v(d)
    matrix(5, 1 + d) = matrix(5, 1 + d) + GAS * u(5) / u(1) - (GAS - 1) * energy
    matrix(5, 5) = GAS * v(d)
  end function

  ! How the viscous flow in direction d depends on u; the extra diffusion included.
  pure function diffusion_matrix(u, d) result(matrix)
    real(real64), intent(in) :: u(5)
    integer, intent(in) :: d
    real(real64) :: matrix(5, 5), v(3), weight(3)
    integer :: a
    v = u(2:4) / u(1)
    weight = VISCOSITY
    weight(d) = VISCOSITY * 4 / 3
    matrix = EXTRA_DIFFUSION(d) * identity()
    do a = 1, 3
      matrix(1 + a, 1) = -weight(a) * v(a) / u(1)
      matrix(1 + a, 1 + a) = matrix(1 + a, 1 + a) + weight(a) / u(1)
    end do
    matrix(5, 1) = -(sum((weight - CONDUCTION) * v * v) + CONDUCTION * u(5) / u(1)) / u(1)
    matrix(5, 2:4) = (weight - CONDUCTION) * v / u(1)
    matrix(5, 5) = matrix(5, 5) + CONDUCTION / u(1)
  end function

  ! How an implicit step of length dt couples a point to its neighbour in direction d with the state u, the next one (side 1) or
  ! the one before (side -1), h being the points per unit.
  pure function side_block(u, d, side, dt, h) result(matrix)
    real(real64), intent(in) :: u(5), dt, h
    integer, intent(in) :: d, side
    real(real64) :: matrix(5, 5)
    matrix = side * dt * h / 2 * convection_matrix(u, d) - dt * h * h * diffusion_matrix(u, d)
  end function

  ! A point's own block for the directions d to e.
  pure function own_block(u, d, e, dt, h) result(matrix)
    real(real64), intent(in) :: u(5), dt, h
    integer, intent(in) :: d, e
    real(real64) :: matrix(5, 5)
    integer :: i
    matrix = identity()
    do i = d, e
      matrix = matrix + 2 * dt * h * h * diffusion_matrix(u, i)
    end do
  end function

  ! right = matrix**(-1) right, by Gauss without a choice of pivots: diagonals are large here
  pure subroutine divide(matrix, right)
    real(real64), intent(in) :: matrix(5, 5)
    real(real64), intent(inout) :: right(:, :)
    real(real64) :: left(5, 5), factor
    integer :: i, j
    left = matrix
    do i = 1, 5
      factor = 1 / left(i, i)
      left(i, i:) = left(i, i:) * factor
      right(i, :) = right(i, :) * factor
      do j = 1, 5
        if (j == i) cycle
        factor = left(j, i)
        left(j, i:) = left(j, i:) - factor * left(i, i:)
        right(j, :) = right(j, :) - factor * right(i, :)
      end do
    end do
  end subroutine

  pure real(real64) function speed_of_sound(u)
    real(real64), intent(in) :: u(5)
    speed_of_sound = sqrt(GAS * (GAS - 1) / u(1) * (u(5) - sum(u(2:4)**2) / (2 * u(1))))
  end function
end module
