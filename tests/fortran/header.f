!     SPDX-License-Identifier: BSD-3-Clause
!     mpif.h in fixed form.
      program header
      implicit none
      include 'mpif.h'
      integer rank, n, ierr, st(MPI_STATUS_SIZE), x(4), r(2)
      logical flag
      integer idx
      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, n, ierr)
      x(1) = rank
      call MPI_SENDRECV(x, 1, MPI_INTEGER, mod(rank+1,n), 3, x(2), 1,
     &   MPI_INTEGER, mod(rank+n-1,n), 3, MPI_COMM_WORLD, st, ierr)
      if (x(2) .ne. mod(rank+n-1,n)) print *, 'BAD ring'
      if (st(MPI_SOURCE) .ne. mod(rank+n-1,n)) print *, 'BAD source'
      call MPI_IRECV(x(3),1,MPI_INTEGER,rank,1,MPI_COMM_WORLD,r(1),ierr)
      call MPI_ISEND(x(1),1,MPI_INTEGER,rank,1,MPI_COMM_WORLD,r(2),ierr)
      call MPI_WAITANY(2, r, idx, MPI_STATUS_IGNORE, ierr)
      if (idx .lt. 1 .or. idx .gt. 2) print *, 'BAD index', idx
      call MPI_WAITALL(2, r, MPI_STATUSES_IGNORE, ierr)
      call MPI_ALLREDUCE(MPI_IN_PLACE, rank, 1, MPI_INTEGER, MPI_SUM,
     &   MPI_COMM_WORLD, ierr)
      if (rank .ne. n*(n-1)/2) print *, 'BAD sum'
      call MPI_INITIALIZED(flag, ierr)
      if (.not. flag) print *, 'BAD flag'
      call MPI_FINALIZE(ierr)
      if (x(1) .eq. 0) print *, 'no errors'
      end
