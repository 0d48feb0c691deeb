! SPDX-License-Identifier: BSD-3-Clause
! FT of the NAS Parallel Benchmarks (RNR-94-007 section 2.6), class S: a partial differential equation by Fourier transforms in
! three dimensions. The slabs of the ranks change places as sections of an array. With the module mpi_f08, on the largest power
! of two of ranks, 64 at most; the others look on.
module transforms
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  real(real64), parameter :: PI = 3.141592653589793238_real64
contains
  ! of one vector whose length is a power of two, in place; direction 1 or -1
  recursive subroutine transform(x, direction)
    complex(real64), intent(inout) :: x(0:)
    integer, intent(in) :: direction
    complex(real64) :: even(0:size(x) / 2 - 1), odd(0:size(x) / 2 - 1)
    integer :: n, k
    n = size(x)
    if (n == 1) return
    even = x(0:n - 1:2)
    odd = x(1:n - 1:2)
    call transform(even, direction)
    call transform(odd, direction)
    do k = 0, n / 2 - 1
      odd(k) = odd(k) * exp(cmplx(0, direction * 2 * PI * k / n, real64))
    end do
    x(0:n / 2 - 1) = even + odd
    x(n / 2:n - 1) = even - odd
  end subroutine
end module

program ft
  use mpi_f08
  use random_numbers
  use transforms
  use benchmark
  use, intrinsic :: iso_fortran_env, only: int64, real64
  implicit none
  type(MPI_Comm) :: comm
  integer :: rank, n, part
  call MPI_Init()
  call MPI_Comm_size(MPI_COMM_WORLD, n)
  part = 1
  do while (2 * part <= min(n, 64))
    part = 2 * part
  end do
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_split(MPI_COMM_WORLD, merge(0, MPI_UNDEFINED, rank < part), rank, comm)
  if (comm /= MPI_COMM_NULL) then
    call fourier()
    call MPI_Comm_free(comm)
  end if
  call MPI_Finalize()
  if (rank == 0) print *, 'no errors'
contains
  ! u(x, y, z) in slabs of z; in between, v(z, y, x) in slabs of x
  subroutine fourier()
    integer, parameter :: L = 64
    complex(real64), parameter :: published(6) = [ &
      (5.546087004964e2_real64, 4.845363331978e2_real64), (5.546385409189e2_real64, 4.865304269511e2_real64), &
      (5.546148406171e2_real64, 4.883910722336e2_real64), (5.545423607415e2_real64, 4.901273169046e2_real64), &
      (5.544255039624e2_real64, 4.917475857993e2_real64), (5.542683411902e2_real64, 4.932597244941e2_real64)]
    complex(real64), allocatable :: u(:, :, :), v(:, :, :), w(:, :, :)
    complex(real64) :: mine, total
    integer :: x, y, z, j, step, planes, k2
    integer(int64) :: seed
    real(real64) :: re, im
    planes = L / part
    allocate (u(L, L, planes), v(L, L, planes), w(L, L, planes))
    seed = after(314159265_int64, 2_int64 * L * L * planes * rank)
    do z = 1, planes
      do y = 1, L
        do x = 1, L
          re = next(seed)
          im = next(seed)
          u(x, y, z) = cmplx(re, im, real64)
        end do
      end do
    end do
    call in_plane(u, 1)
    call transpose_slabs(u, v)
    do x = 1, planes
      do y = 1, L
        call transform(v(:, y, x), 1)
      end do
    end do
    do step = 1, 6
      do x = 1, planes
        do y = 1, L
          do z = 1, L
            k2 = wave(x + planes * rank)**2 + wave(y)**2 + wave(z)**2
            w(z, y, x) = v(z, y, x) * exp(-4e-6_real64 * PI**2 * k2 * step)
          end do
          call transform(w(:, y, x), -1)
        end do
      end do
      call transpose_slabs(w, u)
      call in_plane(u, -1)
      mine = 0
      do j = 1, 1024
        z = mod(5 * j, L)
        if (z / planes == rank) mine = mine + u(mod(j, L) + 1, mod(3 * j, L) + 1, mod(z, planes) + 1)
      end do
      call MPI_Reduce(mine, total, 1, MPI_DOUBLE_COMPLEX, MPI_SUM, 0, comm)
      if (rank /= 0) cycle
      total = total / real(L, real64)**3
      call verify('checksum', [real(total), aimag(total)], [real(published(step)), aimag(published(step))], 1e-12_real64)
    end do
  end subroutine

  integer function wave(i)
    integer, intent(in) :: i
    wave = mod(i - 1 + 32, 64) - 32
  end function

  ! along x and y, which every rank has whole
  subroutine in_plane(u, direction)
    complex(real64), intent(inout) :: u(:, :, :)
    integer, intent(in) :: direction
    integer :: i, z
    do z = 1, size(u, 3)
      do i = 1, size(u, 2)
        call transform(u(:, i, z), direction)
      end do
      do i = 1, size(u, 1)
        call transform(u(i, :, z), direction)
      end do
    end do
  end subroutine

  ! The first and the last dimension change places: each rank gets what it owns from each, one section of the array a message.
  subroutine transpose_slabs(from, to)
    complex(real64), intent(in), asynchronous :: from(:, :, :)
    complex(real64), intent(out) :: to(:, :, :)
    complex(real64), asynchronous :: blocks(size(from, 3), size(from, 2), size(from, 3), 0:part - 1)
    type(MPI_Request) :: requests(2 * part)
    integer :: other, planes, words, i, z
    planes = size(from, 3)
    words = planes * size(from, 2) * planes
    do other = 0, part - 1
      call MPI_Irecv(blocks(:, :, :, other), words, MPI_DOUBLE_COMPLEX, other, 1, comm, requests(2 * other + 1))
      i = other * planes
      call MPI_Isend(from(i + 1:i + planes, :, :), words, MPI_DOUBLE_COMPLEX, other, 1, comm, requests(2 * other + 2))
    end do
    call MPI_Waitall(2 * part, requests, MPI_STATUSES_IGNORE)
    do other = 0, part - 1
      do i = 1, planes
        do z = 1, planes
          to(other * planes + z, :, i) = blocks(i, :, z, other)
        end do
      end do
    end do
  end subroutine
end program
