! SPDX-License-Identifier: BSD-3-Clause
! The module mpi_f08: sections of arrays with and without a temporary, large counts, sentinels, user functions, attributes. Runs on any
! library of the standard ABI; the last line of rank 0 is "no errors".
program modern
  use mpi_f08
  implicit none
  integer :: rank, n, i, j, ierr, k, x(10,10), y(10,10), total, v(20), w(20)
  type(MPI_Status) :: st
  type(MPI_Request) :: rq(2)
  type(MPI_Op) :: op
  character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: ver
  integer :: len, kv
  integer(kind=MPI_ADDRESS_KIND) :: extra, val
  logical :: flag
  type(MPI_Comm) :: dup
  double precision :: t0
  integer(kind=MPI_COUNT_KIND) :: big
  integer(kind=MPI_ADDRESS_KIND) :: state = 0
  integer :: n_errors = 0
  type(MPI_Errhandler) :: handler
  type(MPI_Info) :: info
  type(MPI_Datatype) :: vector
  character(len=20) :: name
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, n, ierr)
  call MPI_Get_library_version(ver, len)
  if (len < 1) print *, 'BAD version'
  do j = 1, 10; do i = 1, 10; x(i,j) = rank*1000 + i*10 + j; end do; end do
  y = 0
  ! a strided section without a temporary
  if (rank == 0) call MPI_Send(x(1:10:2, 2:9:3), 15, MPI_INTEGER, 1, 5, MPI_COMM_WORLD)
  if (rank == 1) then
    call MPI_Recv(y(2:10:2, 1:9:4), 15, MPI_INTEGER, 0, 5, MPI_COMM_WORLD, st)
    if (any(y(2:10:2,1:9:4) /= reshape([((i*10+j, i=1,10,2), j=2,9,3)], [5,3]))) print *, 'BAD section'
    if (sum(y) /= sum(y(2:10:2,1:9:4))) print *, 'BAD outside'
    call MPI_Get_count(st, MPI_INTEGER, i); if (i /= 15) print *, 'BAD count', i
    call MPI_Get_count(st, MPI_INTEGER, big); if (big /= 15) print *, 'BAD big count', big
    if (st%MPI_SOURCE /= 0 .or. st%MPI_TAG /= 5) print *, 'BAD status'
  end if
  ! nonblocking sections, waitall
  if (rank == 0) then
    call MPI_Isend(x(3,:), 10, MPI_INTEGER, 1, 6, MPI_COMM_WORLD, rq(1))
    call MPI_Isend(x(:,3), 10, MPI_INTEGER, 1, 7, MPI_COMM_WORLD, rq(2))
    call MPI_Waitall(2, rq, MPI_STATUSES_IGNORE)
  else if (rank == 1) then
    call MPI_Irecv(y(4,:), 10, MPI_INTEGER, 0, 6, MPI_COMM_WORLD, rq(1))
    call MPI_Irecv(v(1:20:2), 10, MPI_INTEGER, 0, 7, MPI_COMM_WORLD, rq(2))
    call MPI_Waitall(2, rq, MPI_STATUSES_IGNORE)
    if (any(y(4,:) /= [(30+j, j=1,10)])) print *, 'BAD row'
    if (any(v(1:20:2) /= [(i*10+3, i=1,10)])) print *, 'BAD strided vector'
  end if
  ! reductions on sections: copied
  v = rank + 1; w = -7
  call MPI_Allreduce(v(1:20:2), w(2:20:2), 10, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (any(w(2:20:2) /= n*(n+1)/2) .or. any(w(1:20:2) /= -7)) print *, 'BAD allreduce', w
  w = -7
  call MPI_Iallreduce(v(1:20:2), w(2:20:2), 10, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, rq(1))
  call MPI_Wait(rq(1), MPI_STATUS_IGNORE)
  if (any(w(2:20:2) /= n*(n+1)/2) .or. any(w(1:20:2) /= -7)) print *, 'BAD iallreduce', w
  total = rank + 1
  call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD)
  if (total /= n) print *, 'BAD in place', total
  call MPI_Op_create(myop, .true., op)
  v = rank + 1
  call MPI_Allreduce(v, w, 20, MPI_INTEGER, op, MPI_COMM_WORLD)
  if (any(w /= n*(n+1)/2)) print *, 'BAD op', w(1)
  call MPI_Op_free(op)
  extra = 42
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, kv, extra)
  val = -12345678901_8
  call MPI_Comm_set_attr(MPI_COMM_WORLD, kv, val)
  call MPI_Comm_dup(MPI_COMM_WORLD, dup)
  val = 0
  call MPI_Comm_get_attr(dup, kv, val, flag)
  if (.not. flag .or. val /= -12345678901_8) print *, 'BAD attr', flag, val
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, val, flag)
  if (.not. flag .or. val < 32767) print *, 'BAD tag ub', val
  if (dup == MPI_COMM_WORLD) print *, 'BAD =='
  call MPI_Comm_free(dup)
  if (dup /= MPI_COMM_NULL) print *, 'BAD null'

  ! a generalized request, an error handler, strings
  call MPI_Grequest_start(on_query, on_free, on_cancel, state, rq(1))
  call MPI_Grequest_complete(rq(1))
  call MPI_Wait(rq(1), st)
  if (st%MPI_TAG /= 77 .or. state /= 1) print *, 'BAD generalized request', st%MPI_TAG, state
  call MPI_Comm_create_errhandler(on_error, handler)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler)
  call MPI_Send(k, 1, MPI_INTEGER, n + 5, 0, MPI_COMM_WORLD, ierr)
  if (n_errors /= 1) print *, 'BAD error handler', ierr, n_errors
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL)
  call MPI_Comm_set_name(MPI_COMM_WORLD, 'a name   ')
  call MPI_Comm_get_name(MPI_COMM_WORLD, name, k)
  if (name /= 'a name' .or. k /= 6) print *, 'BAD name', name, k
  call MPI_Info_create(info)
  call MPI_Info_set(info, ' key ', ' value ')
  k = 20
  call MPI_Info_get_string(info, 'key', k, name, flag)
  if (.not. flag .or. name /= 'value' .or. k /= 5) print *, 'BAD info', flag, name, k
  call MPI_Info_free(info)
  ! a row of a matrix to a type with gaps of its own: by a copy
  call MPI_Type_vector(2, 1, 2, MPI_INTEGER, vector)
  call MPI_Type_commit(vector)
  x(3, :) = [(i, i = 1, 10)]
  y = 0
  call MPI_Sendrecv(x(3, :), 3, vector, rank, 1, y(5, :), 3, vector, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  if (any(y(5, 1:9) /= [1, 0, 3, 4, 0, 6, 7, 0, 9])) print *, 'BAD copy', y(5, :)
  call MPI_Type_free(vector)
  t0 = MPI_Wtime()
  call MPI_Finalize()
  if (t0 <= 0) print *, 'BAD time'
  if (rank == 0) print *, 'no errors'
contains
  subroutine myop(invec, inoutvec, len, datatype)
    use, intrinsic :: iso_c_binding
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:), b(:)
    call c_f_pointer(invec, a, [len]); call c_f_pointer(inoutvec, b, [len])
    if (datatype /= MPI_INTEGER) print *, 'BAD type in op'
    b = a + b
  end subroutine

  subroutine on_query(extra_state, status, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status) :: status
    integer :: ierror
    status%MPI_TAG = 77
    status%MPI_SOURCE = MPI_UNDEFINED
    call MPI_Status_set_cancelled(status, .false.)
    call MPI_Status_set_elements(status, MPI_BYTE, 0)
    ierror = MPI_SUCCESS
    if (extra_state /= 0) print *, 'BAD state of query'
  end subroutine

  subroutine on_free(extra_state, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    extra_state = extra_state + 1
    ierror = MPI_SUCCESS
  end subroutine

  subroutine on_cancel(extra_state, complete, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    print *, 'BAD cancel', extra_state, complete
    ierror = MPI_SUCCESS
  end subroutine

  subroutine on_error(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code
    n_errors = n_errors + 1
    if (comm /= MPI_COMM_WORLD .or. error_code == MPI_SUCCESS) print *, 'BAD error'
  end subroutine
end program
