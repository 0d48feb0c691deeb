! SPDX-License-Identifier: BSD-3-Clause
! IS of the NAS Parallel Benchmarks (RNR-94-007 section 2.5.4): integer keys are ranked ten times. The range of the keys is cut
! so that each rank gets about as many; every key goes to the rank of its part (alltoall, alltoallv), where keys are counted.
! With mpif.h.
program is
  use random_numbers
  use benchmark
  use, intrinsic :: iso_fortran_env, only: int64, real64
  implicit none
  include 'mpif.h'
  integer, parameter :: N_TURNS = 10, N_TESTS = 5
  integer :: rank, n_ranks, ierror, n_keys, n_values, n_bins, turn, tested(N_TESTS), published(N_TESTS)
  integer, allocatable :: keys(:) ! by their place in all, from 0
  integer, allocatable :: mine(:) ! keys of my part of the range, unsorted
  integer :: first, last          ! my part of all keys
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, n_ranks, ierror)
  if (class_of_problem('SW') == 'S') then
    n_keys = 2**16
    n_values = 2**11
    tested = [48427, 17148, 23627, 62548, 4431]
    published = [0, 18, 346, 64917, 65463]
  else
    n_keys = 2**20
    n_values = 2**16
    tested = [357773, 934767, 875723, 898999, 404505]
    published = [1249, 11698, 1039987, 1043896, 1048018]
  end if
  n_bins = n_values / 4
  call make_keys()
  do turn = 1, N_TURNS
    call change_keys()
    call distribute()
    call count_and_verify()
  end do
  call verify_order()
  call MPI_Finalize(ierror)
  if (rank == 0) print *, 'no errors'
contains
  subroutine make_keys()
    integer(int64) :: seed
    integer :: i, part
    first = int(int(n_keys, int64) * rank / n_ranks)
    last = int(int(n_keys, int64) * (rank + 1) / n_ranks) - 1
    allocate (keys(first:last))
    seed = after(314159265_int64, 4_int64 * first)
    do i = first, last
      keys(i) = int(n_values / 4 * sum([(next(seed), part = 1, 4)]))
    end do
  end subroutine

  ! Two keys are others in each turn.
  subroutine change_keys()
    if (first <= turn .and. turn <= last) keys(turn) = turn
    if (first <= turn + N_TURNS .and. turn + N_TURNS <= last) keys(turn + N_TURNS) = n_values - turn
  end subroutine

  subroutine distribute()
    integer :: in_bin(0:n_bins - 1), in_all(0:n_bins - 1), owner(0:n_bins - 1), bin, i, to, before
    integer, dimension(0:n_ranks - 1) :: n_out, n_in, out_at, in_at, fill
    integer, allocatable :: sorted(:)
    in_bin = 0
    do i = first, last
      bin = keys(i) / (n_values / n_bins)
      in_bin(bin) = in_bin(bin) + 1
    end do
    call MPI_Allreduce(in_bin, in_all, n_bins, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    before = 0
    n_out = 0
    do bin = 0, n_bins - 1
      owner(bin) = int(int(before, int64) * n_ranks / n_keys)
      before = before + in_all(bin)
      n_out(owner(bin)) = n_out(owner(bin)) + in_bin(bin)
    end do
    call MPI_Alltoall(n_out, 1, MPI_INTEGER, n_in, 1, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    out_at = [(sum(n_out(:i - 1)), i = 0, n_ranks - 1)]
    in_at = [(sum(n_in(:i - 1)), i = 0, n_ranks - 1)]
    allocate (sorted(0:last - first))
    fill = out_at
    do i = first, last
      to = owner(keys(i) / (n_values / n_bins))
      sorted(fill(to)) = keys(i)
      fill(to) = fill(to) + 1
    end do
    if (allocated(mine)) deallocate (mine)
    allocate (mine(sum(n_in)))
    call MPI_Alltoallv(sorted, n_out, out_at, MPI_INTEGER, mine, n_in, in_at, MPI_INTEGER, MPI_COMM_WORLD, ierror)
  end subroutine

  ! The rank of a key is the number of smaller ones.
  subroutine count_and_verify()
    integer :: counts(0:n_values - 1), smaller(N_TESTS), all_smaller(N_TESTS), keys_tested(N_TESTS), all_tested(N_TESTS), i
    keys_tested = 0
    do i = 1, N_TESTS
      if (first <= tested(i) .and. tested(i) <= last) keys_tested(i) = keys(tested(i))
    end do
    call MPI_Allreduce(keys_tested, all_tested, N_TESTS, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    counts = 0
    do i = 1, size(mine)
      counts(mine(i)) = counts(mine(i)) + 1
    end do
    smaller = [(sum(counts(:all_tested(i) - 1)), i = 1, N_TESTS)]
    call MPI_Reduce(smaller, all_smaller, N_TESTS, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierror)
    do i = 1, N_TESTS
      if (rank /= 0 .or. all_smaller(i) == published(i) + drift(i)) cycle
      print *, 'BAD rank', all_smaller(i), 'of key', i, 'in turn', turn
    end do
  end subroutine

  ! by how much the ranks of the tested keys move with the keys that change (RNR-94-007, table 2.8)
  integer function drift(i)
    integer, intent(in) :: i
    if (n_keys == 2**16) then
      drift = merge(turn, -turn, i <= 3)
    else
      drift = merge(turn - 2, -turn, i <= 2)
    end if
  end function

  ! Parts follow one another, and no key was lost.
  subroutine verify_order()
    integer, dimension(1) :: highest, highest_before, n_all
    highest = maxval([mine, -1])
    highest_before = -1
    call MPI_Exscan(highest, highest_before, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierror)
    if (rank > 0 .and. highest_before(1) >= minval([mine, n_values])) print *, 'BAD order', highest_before
    call MPI_Allreduce([size(mine)], n_all, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    if (n_all(1) /= n_keys) print *, 'BAD number of keys', n_all
  end subroutine
end program
