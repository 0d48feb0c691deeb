! SPDX-License-Identifier: BSD-3-Clause
! What .TRUE. and .FALSE. are to this compiler, as constants for C (support.h).
module motet_fortran_logicals
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
  integer(c_int), bind(C, name="motet_fortran_true"), protected :: true_value = transfer(.true., 0_c_int)
  integer(c_int), bind(C, name="motet_fortran_false"), protected :: false_value = transfer(.false., 0_c_int)
end module
