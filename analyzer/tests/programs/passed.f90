! All is passed by reference, and the last of it on the stack: the debug information has each where a pointer points.
subroutine scale_all(n, alpha, a, lda, b, c, x, y)
  implicit none
  integer :: n, lda, i
  real(8) :: alpha, a(lda, *), b(*), c(*), x(*), y(*)
  do i = 1, n
    y(i) = y(i) + alpha * x(i)
    c(i) = a(i, 1)
  end do
  b(1) = 0
end subroutine
