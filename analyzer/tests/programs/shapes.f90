! Derived types, common blocks, arrays with bounds, arrays behind descriptors.
module shop
  implicit none
  type position
    integer :: x, y
  end type
  type, extends(position) :: order
    real(8) :: price
    real(8), allocatable :: lines(:)
    complex(8) :: phase
    character(len=12) :: label
  end type
  type(order) :: kept
  real(8) :: grid(3, 4)
  integer :: shifted(-2:2)
  real(8), allocatable :: field(:, :)
  complex(8) :: wave
end module

program shapes
  use shop
  use iso_c_binding
  implicit none
  real(8) :: shared_a(10)
  integer :: shared_n
  common /pool/ shared_a, shared_n
  allocate(field(5, 5)); allocate(kept%lines(4))
  call tell("kept.x", loc(kept%x)); call tell("kept.y", loc(kept%y))
  call tell("kept.price", loc(kept%price)); call tell("kept.phase", loc(kept%phase))
  call tell("kept.label", loc(kept%label))
  call tell("grid(2,3)", loc(grid(2, 3))); call tell("grid", loc(grid))
  call tell("shifted(-2)", loc(shifted(-2))); call tell("shifted(2)", loc(shifted(2)))
  call tell("wave", loc(wave))
  call tell("shared_a(10)", loc(shared_a(10))); call tell("shared_n", loc(shared_n))
  call tell("field(2,1)-", loc(field(2, 1)) - loc(field(1, 1)))
  call maps()
contains
  subroutine tell(name, value)
    character(len=*), intent(in) :: name
    integer(8), intent(in) :: value
    character(len=24) :: digits
    write(digits, '(i0)') value
    print '(a)', "&" // name // " " // trim(digits)
  end subroutine
  subroutine maps()
    character(len=4096) :: line
    integer :: status
    open(10, file="/proc/self/maps", action="read")
    do
      read(10, '(a)', iostat=status) line
      if (status /= 0) exit
      print '(a)', "map " // trim(line)
    end do
  end subroutine
end program
