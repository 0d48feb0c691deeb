! SPDX-License-Identifier: BSD-3-Clause
! Every kind of function that Fortran hands to the library: operations with large counts, attribute functions of communicators, types and
! windows, error handlers of windows, files and sessions. Runs on any library of the standard ABI.
module functions
  use mpi_f08
  implicit none
  integer :: n_copies = 0, n_deletes = 0, n_errors = 0, last_error = MPI_SUCCESS
contains
  subroutine multiply(invec, inoutvec, len, datatype)
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    type(c_ptr), value :: invec, inoutvec
    integer(kind=MPI_COUNT_KIND) :: len
    type(MPI_Datatype) :: datatype
    double precision, pointer :: a(:), b(:)
    call c_f_pointer(invec, a, [len])
    call c_f_pointer(inoutvec, b, [len])
    if (datatype /= MPI_DOUBLE_PRECISION) print *, 'BAD type'
    b = a * b
  end subroutine

  subroutine copied(extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    integer :: ierror
    if (extra_state /= 10000000001_8) print *, 'BAD extra state', extra_state
    n_copies = n_copies + 1
    attribute_val_out = attribute_val_in + 1
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine
  subroutine deleted(attribute_val, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: attribute_val
    integer :: ierror
    if (attribute_val < 20000000000_8) print *, 'BAD attribute', attribute_val
    n_deletes = n_deletes + 1
    ierror = MPI_SUCCESS
  end subroutine

  subroutine copy_of_comm(oldcomm, comm_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Comm) :: oldcomm
    integer :: comm_keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    if (oldcomm /= MPI_COMM_SELF) print *, 'BAD communicator'
    call copied(extra_state, attribute_val_in, attribute_val_out, flag, ierror)
  end subroutine
  subroutine delete_of_comm(comm, comm_keyval, attribute_val, extra_state, ierror)
    type(MPI_Comm) :: comm
    integer :: comm_keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: attribute_val, extra_state
    call deleted(attribute_val, ierror)
  end subroutine
  subroutine copy_of_type(oldtype, type_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Datatype) :: oldtype
    integer :: type_keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    call copied(extra_state, attribute_val_in, attribute_val_out, flag, ierror)
  end subroutine
  subroutine delete_of_type(datatype, type_keyval, attribute_val, extra_state, ierror)
    type(MPI_Datatype) :: datatype
    integer :: type_keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: attribute_val, extra_state
    call deleted(attribute_val, ierror)
  end subroutine
  subroutine copy_of_win(oldwin, win_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Win) :: oldwin
    integer :: win_keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    call copied(extra_state, attribute_val_in, attribute_val_out, flag, ierror)
  end subroutine
  subroutine delete_of_win(win, win_keyval, attribute_val, extra_state, ierror)
    type(MPI_Win) :: win
    integer :: win_keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: attribute_val, extra_state
    call deleted(attribute_val, ierror)
  end subroutine

  subroutine error_of_win(win, error_code)
    type(MPI_Win) :: win
    integer :: error_code
    n_errors = n_errors + 1
    last_error = error_code
  end subroutine
  subroutine error_of_file(file, error_code)
    type(MPI_File) :: file
    integer :: error_code
    if (file /= MPI_FILE_NULL) print *, 'BAD file'
    n_errors = n_errors + 1
    last_error = error_code
  end subroutine
  subroutine error_of_session(session, error_code)
    type(MPI_Session) :: session
    integer :: error_code
    n_errors = n_errors + 1
    last_error = error_code
  end subroutine
end module

program callbacks
  use functions
  implicit none
  integer :: rank, n, keyval
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, n)
  call test_operation()
  call test_attributes()
  call test_error_handlers()
  call MPI_Finalize()
  if (rank == 0) print *, 'no errors'
contains
  subroutine test_operation()
    type(MPI_Op) :: op
    double precision :: x(5), y(5)
    integer(kind=MPI_COUNT_KIND) :: count = 5
    logical :: commutes
    call MPI_Op_create_c(multiply, .false., op)
    call MPI_Op_commutative(op, commutes)
    if (commutes) print *, 'BAD commutes'
    x = 2
    call MPI_Allreduce(x, y, count, MPI_DOUBLE_PRECISION, op, MPI_COMM_WORLD)
    if (any(y /= 2d0**n)) print *, 'BAD product', y(1)
    call MPI_Reduce_local(x, y, count, MPI_DOUBLE_PRECISION, op)
    if (any(y /= 2d0**(n + 1))) print *, 'BAD local product', y(1)
    call MPI_Op_free(op)
    if (op /= MPI_OP_NULL) print *, 'BAD freed operation'
  end subroutine

  subroutine test_attributes()
    integer(kind=MPI_ADDRESS_KIND), parameter :: state = 10000000001_8, value = 20000000000_8
    integer(kind=MPI_ADDRESS_KIND) :: got
    type(MPI_Comm) :: comm
    type(MPI_Datatype) :: type, copy
    type(MPI_Win) :: win
    integer :: memory(4)
    logical :: flag
    call MPI_Comm_create_keyval(copy_of_comm, delete_of_comm, keyval, state)
    call MPI_Comm_set_attr(MPI_COMM_SELF, keyval, value)
    call MPI_Comm_dup(MPI_COMM_SELF, comm)
    call MPI_Comm_get_attr(comm, keyval, got, flag)
    if (.not. flag .or. got /= value + 1) print *, 'BAD attribute of a communicator', flag, got
    call MPI_Comm_free(comm)
    call MPI_Comm_delete_attr(MPI_COMM_SELF, keyval)
    call MPI_Comm_get_attr(MPI_COMM_SELF, keyval, got, flag)
    if (flag) print *, 'BAD attribute that is gone'
    call MPI_Comm_free_keyval(keyval)
    if (keyval /= MPI_KEYVAL_INVALID) print *, 'BAD freed key'

    call MPI_Type_create_keyval(copy_of_type, delete_of_type, keyval, state)
    call MPI_Type_contiguous(3, MPI_INTEGER, type)
    call MPI_Type_set_attr(type, keyval, value)
    call MPI_Type_dup(type, copy)
    call MPI_Type_get_attr(copy, keyval, got, flag)
    if (.not. flag .or. got /= value + 1) print *, 'BAD attribute of a type', flag, got
    call MPI_Type_free(copy)
    call MPI_Type_free(type)
    call MPI_Type_free_keyval(keyval)

    call MPI_Win_create(memory, 16_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call MPI_Win_create_keyval(copy_of_win, delete_of_win, keyval, state)
    call MPI_Win_set_attr(win, keyval, value)
    call MPI_Win_get_attr(win, keyval, got, flag)
    if (.not. flag .or. got /= value) print *, 'BAD attribute of a window', flag, got
    call MPI_Win_get_attr(win, MPI_WIN_SIZE, got, flag)
    if (.not. flag .or. got /= 16) print *, 'BAD size of a window', flag, got
    call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, got, flag)
    if (.not. flag .or. got /= 4) print *, 'BAD unit of a window', flag, got
    call MPI_Win_get_attr(win, MPI_WIN_BASE, got, flag)
    if (.not. flag .or. got /= loc(memory)) print *, 'BAD base of a window', flag, got
    call MPI_Win_free(win)
    call MPI_Win_free_keyval(keyval)
    if (n_copies /= 2 .or. n_deletes /= 5) print *, 'BAD calls', n_copies, n_deletes
  end subroutine

  subroutine test_error_handlers()
    type(MPI_Errhandler) :: handler, now
    type(MPI_Session) :: session
    type(MPI_Win) :: win
    integer :: memory(4)
    call MPI_Win_create(memory, 16_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call MPI_Win_create_errhandler(error_of_win, handler)
    call MPI_Win_set_errhandler(win, handler)
    call MPI_Win_get_errhandler(win, now)
    if (now /= handler) print *, 'BAD handler'
    call MPI_Win_call_errhandler(win, MPI_ERR_RMA_SYNC)
    if (n_errors /= 1 .or. last_error /= MPI_ERR_RMA_SYNC) print *, 'BAD window error', n_errors, last_error
    call MPI_Errhandler_free(handler)
    call MPI_Errhandler_free(now)
    call MPI_Win_free(win)

    call MPI_File_create_errhandler(error_of_file, handler)
    call MPI_File_set_errhandler(MPI_FILE_NULL, handler)
    call MPI_File_call_errhandler(MPI_FILE_NULL, MPI_ERR_NO_SPACE)
    if (n_errors /= 2 .or. last_error /= MPI_ERR_NO_SPACE) print *, 'BAD file error', n_errors, last_error
    call MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN)
    call MPI_Errhandler_free(handler)

    call MPI_Session_create_errhandler(error_of_session, handler)
    call MPI_Session_init(MPI_INFO_NULL, handler, session)
    call MPI_Session_call_errhandler(session, MPI_ERR_OTHER)
    if (n_errors /= 3 .or. last_error /= MPI_ERR_OTHER) print *, 'BAD session error', n_errors, last_error
    call MPI_Session_finalize(session)
    call MPI_Errhandler_free(handler)
  end subroutine
end program
