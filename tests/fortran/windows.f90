! SPDX-License-Identifier: BSD-3-Clause
! One-sided communication from mpi_f08: sections of arrays as origins, memory by a C pointer, large counts, atomics, passive targets, shared
! memory. Runs on any library of the standard ABI.
program windows
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
  implicit none
  integer :: rank, n, next, before
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, n)
  next = mod(rank + 1, n)
  before = mod(rank + n - 1, n)
  call test_fences()
  call test_passive()
  call test_shared()
  call MPI_Finalize()
  if (rank == 0) print *, 'no errors'
contains
  subroutine test_fences()
    type(MPI_Win) :: win
    type(c_ptr) :: base
    integer, pointer :: memory(:)
    integer :: x(6, 6), y(6, 6), i, j
    integer(kind=MPI_COUNT_KIND) :: count = 6
    call MPI_Win_allocate(48_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win)
    call c_f_pointer(base, memory, [12])
    memory = -1
    x = reshape([((100 * rank + 10 * j + i, i = 1, 6), j = 1, 6)], [6, 6])
    call MPI_Win_fence(MPI_MODE_NOPRECEDE, win)
    ! a row of a matrix: every sixth element
    call MPI_Put(x(2, :), 6, MPI_INTEGER, next, 0_MPI_ADDRESS_KIND, 6, MPI_INTEGER, win)
    call MPI_Put(x(:, 3), count, MPI_INTEGER, next, 6_MPI_ADDRESS_KIND, count, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    if (any(memory(1:6) /= [(100 * before + 10 * j + 2, j = 1, 6)])) print *, 'BAD row', memory(1:6)
    if (any(memory(7:12) /= [(100 * before + 30 + i, i = 1, 6)])) print *, 'BAD column', memory(7:12)
    y = 0
    call MPI_Win_fence(0, win)
    call MPI_Get(y(1:6:2, 5), 3, MPI_INTEGER, next, 0_MPI_ADDRESS_KIND, 3, MPI_INTEGER, win)
    call MPI_Accumulate(x(1, 1:2), 2, MPI_INTEGER, next, 10_MPI_ADDRESS_KIND, 2, MPI_INTEGER, MPI_SUM, win)
    call MPI_Win_fence(MPI_MODE_NOSUCCEED, win)
    if (any(y(1:6:2, 5) /= [(100 * rank + 10 * j + 2, j = 1, 3)])) print *, 'BAD get', y(1:6:2, 5)
    if (sum(y) /= sum(y(1:6:2, 5))) print *, 'BAD outside of the section'
    if (memory(11) /= 200 * before + 46 .or. memory(12) /= 200 * before + 57) print *, 'BAD sum', memory(11:12)
    call MPI_Win_free(win)
    if (win /= MPI_WIN_NULL) print *, 'BAD freed window'
  end subroutine

  subroutine test_passive()
    type(MPI_Win) :: win
    integer(kind=8), asynchronous :: counter(2)
    integer(kind=8) :: one = 1, old, before_it, expected = 0
    integer :: i
    type(MPI_Request) :: request
    counter = 0
    call MPI_Win_create(counter, 16_MPI_ADDRESS_KIND, 8, MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call MPI_Win_lock_all(0, win)
    do i = 1, 10
      call MPI_Fetch_and_op(one, old, MPI_INTEGER8, 0, 0_MPI_ADDRESS_KIND, MPI_SUM, win)
    end do
    call MPI_Win_flush(0, win)
    if (old < 9 .or. old >= 10 * n) print *, 'BAD old value', old
    before_it = -1
    call MPI_Compare_and_swap(one, expected, before_it, MPI_INTEGER8, rank, 1_MPI_ADDRESS_KIND, win)
    call MPI_Win_flush_all(win)
    if (before_it /= 0) print *, 'BAD value before', before_it
    call MPI_Rget(old, 1, MPI_INTEGER8, 0, 0_MPI_ADDRESS_KIND, 1, MPI_INTEGER8, win, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Win_unlock_all(win)
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_F_sync_reg(counter)
    if (rank == 0 .and. counter(1) /= 10 * n) print *, 'BAD counter', counter(1)
    call MPI_Win_free(win)
  end subroutine

  subroutine test_shared()
    type(MPI_Comm) :: node
    type(MPI_Win) :: win
    type(c_ptr) :: base
    integer, pointer :: all(:)
    integer(kind=MPI_ADDRESS_KIND) :: bytes
    integer :: unit, i, n_here, me
    call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, node)
    call MPI_Comm_size(node, n_here)
    call MPI_Comm_rank(node, me)
    call MPI_Win_allocate_shared(int(merge(4 * n_here, 0, me == 0), MPI_ADDRESS_KIND), 4, MPI_INFO_NULL, node, base, win)
    call MPI_Win_shared_query(win, 0, bytes, unit, base)
    if (bytes /= 4 * n_here .or. unit /= 4) print *, 'BAD shared window', bytes, unit
    call c_f_pointer(base, all, [n_here])
    call MPI_Win_fence(0, win)
    all(me + 1) = 3 * me
    call MPI_Win_fence(0, win)
    if (any(all /= [(3 * i, i = 0, n_here - 1)])) print *, 'BAD shared memory', all
    call MPI_Win_free(win)
    call MPI_Comm_free(node)
  end subroutine
end program
