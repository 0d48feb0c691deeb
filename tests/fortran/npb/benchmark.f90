! SPDX-License-Identifier: BSD-3-Clause
! What the benchmarks share that needs no MPI: the class of the problem, which is the program's argument (S where there is
! none), and the comparison with published results.
module benchmark
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  private
  public class_of_problem, verify
  interface verify
    module procedure verify_one, verify_all
  end interface
contains
  ! 'S', or another one of `known`
  character function class_of_problem(known)
    character(*), intent(in) :: known
    character(8) :: word
    word = 'S'
    if (command_argument_count() > 0) call get_command_argument(1, word)
    if (len_trim(word) /= 1 .or. index(known, word(1:1)) == 0) error stop 'this class of the problem is not known here'
    class_of_problem = word(1:1)
  end function

  ! A number that is none fails as well.
  subroutine verify_one(what, found, published, tolerance)
    character(*), intent(in) :: what
    real(real64), intent(in) :: found, published, tolerance
    if (.not. abs(found - published) <= tolerance * abs(published)) print *, 'BAD ', what, found, ' instead of ', published
  end subroutine

  subroutine verify_all(what, found, published, tolerance)
    character(*), intent(in) :: what
    real(real64), intent(in) :: found(:), published(:), tolerance
    integer :: i
    do i = 1, size(published)
      call verify_one(what, found(i), published(i), tolerance)
    end do
  end subroutine
end module
