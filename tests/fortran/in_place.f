C     SPDX-License-Identifier: BSD-3-Clause
C     Arguments that do not count (MPI-5.0 section 6): any number may
C     stand there, also one that is no handle of this library.
      program in_place
      implicit none
      include 'mpif.h'
      integer MANY
      parameter (MANY=64)
      integer rank, n, ierr, i, junk, x(MANY), y(MANY)
      integer counts(MANY), displs(MANY), types(MANY), junks(MANY)
      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, n, ierr)
      junk = 1234567
      do i = 1, MANY
        junks(i) = junk + i
        counts(i) = 1
        displs(i) = 4 * (i - 1)
        types(i) = MPI_INTEGER
        x(i) = 100 * rank + i
      end do
      call MPI_ALLTOALLW(MPI_IN_PLACE, junks, junks, junks, x, counts,
     &   displs, types, MPI_COMM_WORLD, ierr)
      do i = 1, n
        if (x(i) .ne. 100 * (i - 1) + rank + 1) print *, 'BAD', i, x(i)
      end do
      x(1) = rank
      if (rank .eq. 0) then
        call MPI_GATHER(x(1), 1, MPI_INTEGER, y(1), 1,
     &     MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
        do i = 1, n
          if (y(i) .ne. i - 1) print *, 'BAD gather', i, y(i)
        end do
        call MPI_SCATTER(y(1), 1, MPI_INTEGER, MPI_IN_PLACE, junk, junk,
     &     0, MPI_COMM_WORLD, ierr)
        call MPI_GATHER(MPI_IN_PLACE, junk, junk, y(1), 1,
     &     MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
      else
        call MPI_GATHER(x(1), 1, MPI_INTEGER, y(1), junk, junk,
     &     0, MPI_COMM_WORLD, ierr)
        call MPI_SCATTER(y(1), junk, junk, x(1), 1, MPI_INTEGER, 0,
     &     MPI_COMM_WORLD, ierr)
        if (x(1) .ne. rank) print *, 'BAD scatter', x(1)
        call MPI_GATHER(x(1), 1, MPI_INTEGER, y(1), junk, junk,
     &     0, MPI_COMM_WORLD, ierr)
      end if
      do i = 1, n
        y(i) = 0
      end do
      y(rank + 1) = rank + 7
      call MPI_ALLGATHER(MPI_IN_PLACE, junk, junk, y(1), 1, MPI_INTEGER,
     &   MPI_COMM_WORLD, ierr)
      do i = 1, n
        if (y(i) .ne. i + 6) print *, 'BAD allgather', i, y(i)
      end do
      call MPI_FINALIZE(ierr)
      if (rank .eq. 0) print *, 'no errors'
      end
