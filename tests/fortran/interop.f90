! SPDX-License-Identifier: BSD-3-Clause
! Handles and statuses between the languages, with interop_c.c; what the library knows about this compiler; the types of mpi_f08 in the
! module mpi. Runs on any library of the standard ABI.
module modern_side
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
  interface
    integer(c_int) function c_checks_handles(comm, type, op, group, info, errhandler) bind(C)
      import :: c_int
      integer(c_int), value :: comm, type, op, group, info, errhandler
    end function
    integer(c_int) function c_checks_attribute(comm, keyval, value) bind(C)
      import :: c_int
      integer(c_int), value :: comm, keyval, value
    end function
    integer(c_int) function c_makes_comm() bind(C)
      import :: c_int
    end function
    integer(c_int) function c_checks_status(f, f08) bind(C)
      import :: c_int, MPI_Status
      integer(c_int) :: f(*)
      type(MPI_Status) :: f08
    end function
    integer(c_int) function c_checks_ignored(ignored) bind(C)
      import :: c_int, MPI_Status
      type(MPI_Status) :: ignored
    end function
  end interface
contains
  subroutine test_handles()
    type(MPI_Comm) :: comm
    type(MPI_Datatype) :: type
    type(MPI_Group) :: group
    type(MPI_Info) :: info
    type(MPI_Op) :: op
    integer :: size, whole
    call MPI_Comm_dup(MPI_COMM_WORLD, comm)
    call MPI_Type_contiguous(7, MPI_INTEGER, type)
    call MPI_Comm_group(comm, group)
    call MPI_Info_create(info)
    call MPI_Info_set(info, 'who', 'fortran')
    call MPI_Op_create(nothing, .true., op)
    if (c_checks_handles(comm%MPI_VAL, type%MPI_VAL, op%MPI_VAL, group%MPI_VAL, info%MPI_VAL, MPI_ERRORS_RETURN%MPI_VAL) /= 0) &
      print *, 'BAD handles in C'
    call MPI_Comm_free(comm)
    call MPI_Type_free(type)
    call MPI_Group_free(group)
    call MPI_Info_free(info)
    call MPI_Op_free(op)
    comm%MPI_VAL = c_makes_comm()
    call MPI_Comm_size(comm, size)
    call MPI_Comm_size(MPI_COMM_WORLD, whole)
    if (size /= whole .or. comm == MPI_COMM_WORLD) print *, 'BAD communicator of C', size
    call MPI_Comm_free(comm)
  end subroutine

  ! C finds a pointer to Fortran's integer, in a duplicate as well.
  subroutine test_attribute()
    type(MPI_Comm) :: comm
    integer :: keyval
    call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, 0_MPI_ADDRESS_KIND)
    call MPI_Comm_set_attr(MPI_COMM_SELF, keyval, 4711_MPI_ADDRESS_KIND)
    call MPI_Comm_dup(MPI_COMM_SELF, comm)
    if (c_checks_attribute(MPI_COMM_SELF%MPI_VAL, keyval, 4711) /= 0) print *, 'BAD attribute in C'
    if (c_checks_attribute(comm%MPI_VAL, keyval, 4711) /= 0) print *, 'BAD copied attribute in C'
    call MPI_Comm_free(comm)
    call MPI_Comm_delete_attr(MPI_COMM_SELF, keyval)
    call MPI_Comm_free_keyval(keyval)
  end subroutine

  subroutine nothing(invec, inoutvec, len, datatype)
    use, intrinsic :: iso_c_binding, only: c_ptr
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
  end subroutine

  subroutine test_status()
    type(MPI_Status) :: status, back
    integer :: f(MPI_STATUS_SIZE), x(4), y(4), n, rank
    integer :: error
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    x = 5
    call MPI_Sendrecv(x, 3, MPI_INTEGER, rank, 41, y, 4, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status)
    call MPI_Status_f082f(status, f)
    if (f(MPI_SOURCE) /= rank .or. f(MPI_TAG) /= 41) print *, 'BAD status of integers', f(1:2)
    if (c_checks_status(f, status) /= 0) print *, 'BAD status in C'
    if (c_checks_ignored(MPI_STATUS_IGNORE) /= 0) print *, 'BAD ignored status in C'
    call MPI_Status_f2f08(f, back, error)
    call MPI_Get_count(back, MPI_INTEGER, n)
    if (error /= MPI_SUCCESS .or. n /= 3 .or. back%MPI_SOURCE /= rank) print *, 'BAD status back', n
    call PMPI_Status_f2f08(f, back)
    call MPI_Status_set_tag(back, 9)
    call MPI_Status_get_tag(back, n)
    if (n /= 9) print *, 'BAD tag', n
  end subroutine

  ! MPI_Abi_*: nothing else than what this compiler does.
  subroutine test_compiler()
    logical :: yes, no, is_set
    type(MPI_Info) :: info
    integer :: major, minor, error
    call MPI_Abi_get_fortran_booleans(storage_size(yes) / 8, yes, no, is_set)
    if (is_set) then
      if (transfer(yes, 0) /= transfer(.true., 0) .or. transfer(no, 0) /= transfer(.false., 0)) print *, 'BAD logicals'
      call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
      call MPI_Abi_set_fortran_booleans(storage_size(yes) / 8, .true., .false., error)
      if (error == MPI_SUCCESS) print *, 'BAD: logicals are set twice'
      call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL)
    end if
    call MPI_Abi_get_fortran_info(info)
    if (info /= MPI_INFO_NULL) then
      call check(info, 'mpi_logical_size', storage_size(yes) / 8)
      call check(info, 'mpi_integer_size', storage_size(major) / 8)
      call check(info, 'mpi_real_size', storage_size(1.0) / 8)
      call check(info, 'mpi_double_precision_size', storage_size(1d0) / 8)
      call MPI_Info_free(info)
    end if
    call MPI_Abi_get_version(major, minor)
    if (major /= 1) print *, 'BAD version', major, minor
  end subroutine

  subroutine check(info, key, wanted)
    type(MPI_Info), intent(in) :: info
    character(len=*), intent(in) :: key
    integer, intent(in) :: wanted
    character(len=10) :: value
    integer :: length, number
    logical :: flag
    length = 10
    call MPI_Info_get_string(info, key, length, value, flag)
    if (.not. flag) return
    read (value, *) number
    if (number /= wanted) print *, 'BAD ', key, number
  end subroutine
end module

! The other module has the types and their conversions too, to hand values on to mpi_f08.
module older_side
  use mpi
  implicit none
contains
  subroutine test_older()
    type(MPI_Comm) :: comm
    type(MPI_Status) :: modern
    integer :: status(MPI_STATUS_SIZE), error, copy
    logical :: yes, no, is_set
    comm%MPI_VAL = MPI_COMM_WORLD
    copy = comm%MPI_VAL
    if (copy /= MPI_COMM_WORLD .or. comm /= MPI_Comm(MPI_COMM_WORLD)) print *, 'BAD handle as a type'
    status = [1, 2, 3, 4, 5, 6, 7, 8]
    call MPI_Status_f2f08(status, modern, error)
    if (modern%MPI_TAG /= status(MPI_TAG)) print *, 'BAD tag of a converted status'
    status = 0
    call MPI_Status_f082f(modern, status, error)
    if (any(status /= [1, 2, 3, 4, 5, 6, 7, 8])) print *, 'BAD converted status', status
    call MPI_Abi_get_fortran_booleans(4, yes, no, is_set, error)
    if (error /= MPI_SUCCESS) print *, 'BAD logicals of mpi'
    call MPI_F_sync_reg(status)
  end subroutine
end module

program interop
  use modern_side
  use older_side, only: test_older
  implicit none
  integer :: rank
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call test_handles()
  call test_attribute()
  call test_status()
  call test_compiler()
  call test_older()
  call MPI_Finalize()
  if (rank == 0) print *, 'no errors'
end program
