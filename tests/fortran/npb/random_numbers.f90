! SPDX-License-Identifier: BSD-3-Clause
! The random numbers of the NAS Parallel Benchmarks (RNR-94-007 section 2.3): seeds modulo 2**46, multiplied by 5**13.
module random_numbers
  use, intrinsic :: iso_fortran_env, only: int64, real64
  implicit none
  private
  public after, next
  integer(int64), parameter :: MULTIPLIER = 1220703125_int64, HALF = 2_int64**23, WHOLE = 2_int64**46
contains
  ! a * b mod 2**46, in halves that no product leaves 64 bits with
  pure integer(int64) function times(a, b)
    integer(int64), intent(in) :: a, b
    times = mod(mod((a / HALF) * mod(b, HALF) + mod(a, HALF) * (b / HALF), HALF) * HALF + mod(a, HALF) * mod(b, HALF), WHOLE)
  end function

  ! the seed after n numbers
  pure integer(int64) function after(seed, n)
    integer(int64), intent(in) :: seed, n
    integer(int64) :: power, rest
    after = seed
    power = MULTIPLIER
    rest = n
    do while (rest > 0)
      if (mod(rest, 2_int64) == 1) after = times(power, after)
      power = times(power, power)
      rest = rest / 2
    end do
  end function

  ! between 0 and 1
  real(real64) function next(seed)
    integer(int64), intent(inout) :: seed
    seed = times(MULTIPLIER, seed)
    next = real(seed, real64) / real(WHOLE, real64)
  end function
end module
