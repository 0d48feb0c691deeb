! SPDX-License-Identifier: BSD-3-Clause
! EP of the NAS Parallel Benchmarks (RNR-94-007 section 2.3): normally distributed pairs from random numbers, counted in square
! rings; nothing to say to one another but the sums. With the module mpi_f08, on a power of two of ranks; the others look on.
program ep
  use mpi_f08
  use random_numbers
  use benchmark
  use, intrinsic :: iso_fortran_env, only: int64, real64
  implicit none
  type(MPI_Comm) :: comm
  integer :: rank, n, part
  call MPI_Init()
  call MPI_Comm_size(MPI_COMM_WORLD, n)
  part = 1
  do while (2 * part <= n)
    part = 2 * part
  end do
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_split(MPI_COMM_WORLD, merge(0, MPI_UNDEFINED, rank < part), rank, comm)
  if (comm /= MPI_COMM_NULL) then
    if (class_of_problem('SW') == 'S') then
      call run(2_int64**24, [-3.247834652034740e3_real64, -6.958407078382297e3_real64], 13176389_int64)
    else
      call run(2_int64**25, [-2.863319731645753e3_real64, -6.320053679109499e3_real64], 26354769_int64)
    end if
    call MPI_Comm_free(comm)
  end if
  call MPI_Finalize()
  if (rank == 0) print *, 'no errors'
contains
  subroutine run(pairs, sums_published, counted_published)
    integer(int64), intent(in) :: pairs, counted_published
    real(real64), intent(in) :: sums_published(2)
    integer(int64) :: seed, i, counts(0:9), all_counts(0:9)
    real(real64) :: x, y, t, factor, sums(2), all_sums(2)
    integer :: ring
    seed = after(271828183_int64, 2 * (pairs / part) * rank)
    counts = 0
    sums = 0
    do i = 1, pairs / part
      x = 2 * next(seed) - 1
      y = 2 * next(seed) - 1
      t = x * x + y * y
      if (t > 1) cycle
      factor = sqrt(-2 * log(t) / t)
      ring = int(max(abs(x * factor), abs(y * factor)))
      counts(ring) = counts(ring) + 1
      sums = sums + [x * factor, y * factor]
    end do
    call MPI_Allreduce(sums, all_sums, 2, MPI_DOUBLE_PRECISION, MPI_SUM, comm)
    call MPI_Allreduce(counts, all_counts, 10, MPI_INTEGER8, MPI_SUM, comm)
    call verify('sums', all_sums, sums_published, 1e-8_real64)
    if (sum(all_counts) /= counted_published) print *, 'BAD counts', all_counts
  end subroutine
end program
