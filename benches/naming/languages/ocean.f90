! An ocean: shallow water on a grid with tracers and columns of layers, tides by Fourier transforms, a
! fleet of drifting bodies, a tree of them by place, observations in lists, an old solver with COMMON.
! ocean_truth.c tells what has no address in Fortran: descriptors of module arrays, and COMMON.

module truth
  use iso_c_binding
  implicit none
  interface
    subroutine tr_init(argc, argv) bind(c)
      import
      integer(c_int), value :: argc
      type(c_ptr) :: argv(*)
    end subroutine
    integer(c_int) function tr_more() bind(c)
      import
    end function
    subroutine tr_region(kind, start, bytes, element) bind(c)
      import
      character(kind=c_char), intent(in) :: kind(*)
      type(c_ptr), value :: start
      integer(c_size_t), value :: bytes, element
    end subroutine
    subroutine tr_global(name, start, bytes, kind) bind(c)
      import
      character(kind=c_char), intent(in) :: name(*), kind(*)
      type(c_ptr), value :: start
      integer(c_size_t), value :: bytes
    end subroutine
    subroutine ocean_truth() bind(c)
    end subroutine
  end interface
  character(kind=c_char), target :: arguments(64, 0:1)
  type(c_ptr) :: argv(0:2)
contains
  subroutine begin()
    character(len=63) :: text
    integer :: a, i, n
    n = min(command_argument_count(), 1)
    argv = c_null_ptr
    do a = 0, n
      call get_command_argument(a, text)
      do i = 1, 63
        arguments(i, a) = text(i:i)
      end do
      arguments(min(len_trim(text) + 1, 64), a) = c_null_char
      argv(a) = c_loc(arguments(1, a))
    end do
    call tr_init(int(n + 1, c_int), argv)
  end subroutine

  ! Elements of a type from an address on.
  subroutine tell(kind, start, element_bits, n)
    character(len=*), intent(in) :: kind
    type(c_ptr), intent(in) :: start
    integer, intent(in) :: element_bits, n
    integer(c_size_t) :: bytes
    bytes = element_bits / 8
    call tr_region(kind // c_null_char, start, bytes * n, bytes)
  end subroutine

  subroutine tell_variable(name, kind, start, element_bits, n)
    character(len=*), intent(in) :: name, kind
    type(c_ptr), intent(in) :: start
    integer, intent(in) :: element_bits, n
    call tr_global(name // c_null_char, start, int(element_bits / 8, c_size_t) * n, kind // c_null_char)
  end subroutine
end module

module grids
  use truth
  implicit none
  integer, parameter :: dp = kind(1d0), nx = 48, ny = 32, nz = 5, nports = 32

  type :: layer_t
    real(dp) :: temp, salt
    real(4) :: mixing
    integer :: flag
  end type

  type :: column_t
    integer :: i, j
    real(dp) :: depth
    type(layer_t) :: layers(nz)
    real(4) :: drag(2, 3)
    complex(dp) :: tide(3)
    logical :: wet
    character(len=6) :: basin
    real(dp) :: heat
  end type

  type :: field_t
    character(len=12) :: name
    integer :: level
    real(dp), allocatable :: v(:, :)
    real(dp) :: lo, hi, mean
    integer, allocatable :: mask(:)
    integer :: stamp
    real(dp), pointer :: edge(:) => null()
  end type

  type :: port_t
    character(len=8) :: name
    integer :: i, j
    real(4) :: level(4)
    type(column_t), pointer :: column => null()
  end type

  type(column_t), allocatable, target :: columns(:, :)
  type(field_t), allocatable, target :: fields(:)
  real(dp), allocatable, target :: eta(:, :), tracer(:, :, :)
  real(dp), target :: u(0:nx + 1, 0:ny + 1), v(0:nx + 1, 0:ny + 1)
  real(dp), target :: bottom(nx, ny)
  integer, target :: visits(nx, ny)
  character(len=8), target :: port_names(nports)
  type(port_t), target :: ports(nports)
  real(dp), target :: gravity = 9.81_dp, step_length = 1d-3
contains
  subroutine make_grids()
    integer :: i, j, k
    allocate (columns(nx, ny), fields(4), eta(0:nx + 1, 0:ny + 1), tracer(nx, ny, nz))
    call tell('column_t', c_loc(columns), storage_size(columns), size(columns))
    call tell('field_t', c_loc(fields), storage_size(fields), size(fields))
    call tell('real(kind=8)', c_loc(eta), storage_size(eta), size(eta))
    call tell('real(kind=8)', c_loc(tracer), storage_size(tracer), size(tracer))
    call tell_variable('grids::u', 'real(kind=8)[]', c_loc(u), storage_size(u), size(u))
    call tell_variable('grids::v', 'real(kind=8)[]', c_loc(v), storage_size(v), size(v))
    call tell_variable('grids::bottom', 'real(kind=8)[]', c_loc(bottom), storage_size(bottom), size(bottom))
    call tell_variable('grids::visits', 'integer(kind=4)[]', c_loc(visits), storage_size(visits), size(visits))
    call tell_variable('grids::port_names', 'character(kind=1)[]', c_loc(port_names), 64, nports)
    call tell_variable('grids::ports', 'port_t[]', c_loc(ports), storage_size(ports), nports)
    call tell_variable('grids::gravity', 'real(kind=8)', c_loc(gravity), 64, 1)
    call tell_variable('grids::step_length', 'real(kind=8)', c_loc(step_length), 64, 1)
    u = 0
    v = 0
    visits = 0
    do j = 0, ny + 1
      do i = 0, nx + 1
        eta(i, j) = sin(0.2_dp * i) * cos(0.3_dp * j)
      end do
    end do
    do j = 1, ny
      do i = 1, nx
        bottom(i, j) = 50 + 10 * sin(0.1_dp * i * j)
        columns(i, j)%i = i
        columns(i, j)%j = j
        columns(i, j)%depth = bottom(i, j)
        columns(i, j)%wet = mod(i * 7 + j * 3, 11) /= 0
        columns(i, j)%basin = merge('north ', 'south ', j > ny / 2)
        columns(i, j)%drag = 0.1
        columns(i, j)%tide = [(cmplx(k, i - j, dp) * 1d-2, k=1, 3)]
        columns(i, j)%heat = 0
        do k = 1, nz
          columns(i, j)%layers(k) = layer_t(20 - 2 * k, 34 + 0.1_dp * k, 0.01, 0)
          tracer(i, j, k) = 1d-3 * (i + j) * k
        end do
      end do
    end do
    do k = 1, size(fields)
      allocate (fields(k)%v(nx, ny), fields(k)%mask(nx * ny))
      call tell('real(kind=8)', c_loc(fields(k)%v), 64, nx * ny)
      call tell('integer(kind=4)', c_loc(fields(k)%mask), 32, nx * ny)
      fields(k)%name = 'field'
      fields(k)%level = k
      fields(k)%stamp = 0
      fields(k)%mask = [(mod(i * k, 5), i=1, nx * ny)]
      fields(k)%edge => eta(k, 1:ny)
    end do
    do k = 1, nports
      port_names(k) = 'p' // achar(97 + mod(k * 11, 26)) // achar(97 + mod(k * 17, 26)) // 'haven'
      ports(k)%name = port_names(k)
      ports(k)%i = 1 + mod(k * 13, nx)
      ports(k)%j = 1 + mod(k * 5, ny)
      ports(k)%level = 0
      ports(k)%column => columns(ports(k)%i, ports(k)%j)
    end do
  end subroutine

  ! Velocities from the slope of the surface: module arrays, one allocatable.
  subroutine momentum()
    integer :: i, j
    real(dp) :: pull
    pull = gravity * step_length
    do j = 1, ny
      do i = 1, nx
        u(i, j) = 0.999_dp * u(i, j) - pull * (eta(i + 1, j) - eta(i, j))
        v(i, j) = 0.999_dp * v(i, j) - pull * (eta(i, j + 1) - eta(i, j))
      end do
    end do
  end subroutine

  subroutine continuity()
    integer :: i, j
    do j = 1, ny
      do i = 1, nx
        eta(i, j) = eta(i, j) - step_length * bottom(i, j) * (u(i, j) - u(i - 1, j) + v(i, j) - v(i, j - 1)) * 0.01_dp
        if (abs(eta(i, j)) > 5) eta(i, j) = 0.5_dp * eta(i, j)
      end do
    end do
    eta(0, :) = eta(1, :)
    eta(nx + 1, :) = eta(nx, :)
    eta(:, ny + 1) = eta(:, ny)
  end subroutine

  ! Assumed shape: what is carried, by two fields that are explicit.
  subroutine advect(q, east, north, dt)
    real(dp), intent(inout) :: q(:, :)
    real(dp), intent(in) :: east(0:nx + 1, 0:ny + 1), north(0:nx + 1, 0:ny + 1), dt
    integer :: i, j
    do j = 2, size(q, 2) - 1
      do i = 2, size(q, 1) - 1
        if (east(i, j) > 0) then
          q(i, j) = q(i, j) - dt * east(i, j) * (q(i, j) - q(i - 1, j))
        else
          q(i, j) = q(i, j) - dt * east(i, j) * (q(i + 1, j) - q(i, j))
        end if
        q(i, j) = q(i, j) - dt * north(i, j) * 0.5_dp * (q(i, j + 1) - q(i, j - 1))
      end do
    end do
  end subroutine

  subroutine mix(c, rate)
    type(column_t), intent(inout) :: c
    real(dp), intent(in) :: rate
    integer :: k
    real(dp) :: flux
    if (.not. c%wet) return
    do k = 1, nz - 1
      flux = rate * c%layers(k)%mixing * (c%layers(k)%temp - c%layers(k + 1)%temp)
      c%layers(k)%temp = c%layers(k)%temp - flux
      c%layers(k + 1)%temp = c%layers(k + 1)%temp + flux
      if (c%layers(k)%salt > c%layers(k + 1)%salt) then
        c%layers(k)%flag = c%layers(k)%flag + 1
        flux = 0.5_dp * (c%layers(k)%salt - c%layers(k + 1)%salt)
        c%layers(k)%salt = c%layers(k)%salt - flux
        c%layers(k + 1)%salt = c%layers(k + 1)%salt + flux
      end if
    end do
    c%layers(1)%temp = c%layers(1)%temp + 1d-4 * (19 - c%layers(1)%temp)
    c%heat = c%heat + c%layers(1)%temp * c%depth
    c%drag(1, 2) = 0.9 * c%drag(1, 2) + 0.1 * c%drag(2, 3)
    c%drag(2, 3) = c%drag(1, 1) + 1e-3 * real(c%heat - int(c%heat))
  end subroutine

  subroutine physics(c, rate)
    type(column_t), intent(inout) :: c(:, :)
    real(dp), intent(in) :: rate
    integer :: i, j
    do j = 1, size(c, 2)
      do i = 1, size(c, 1)
        call mix(c(i, j), rate)
        c(i, j)%tide(:) = c(i, j)%tide(:) * cmplx(0.999_dp, 0.04_dp, dp)
        if (c(i, j)%basin(1:1) == 'n') c(i, j)%heat = 0.99_dp * c(i, j)%heat
      end do
    end do
  end subroutine

  subroutine survey(f, source, level)
    type(field_t), intent(inout) :: f
    real(dp), intent(in) :: source(:, :)
    integer, intent(in) :: level
    integer :: i, j, wet
    f%lo = huge(f%lo)
    f%hi = -f%lo
    f%mean = 0
    wet = 0
    do j = 1, ny
      do i = 1, nx
        if (f%mask(i + (j - 1) * nx) == 0) cycle
        f%v(i, j) = 0.9_dp * f%v(i, j) + 0.1_dp * source(i, j)
        f%lo = min(f%lo, f%v(i, j))
        f%hi = max(f%hi, f%v(i, j))
        f%mean = f%mean + f%v(i, j)
        wet = wet + 1
      end do
    end do
    f%mean = f%mean / max(wet, 1) + clipped(f%edge(mod(f%stamp, ny) + 1))
    f%stamp = f%stamp + 1
    f%level = level
  contains
    real(dp) function clipped(x)
      real(dp), intent(in) :: x
      clipped = min(max(x, f%lo), f%hi)
      visits(1 + mod(f%stamp, nx), level) = visits(1 + mod(f%stamp, nx), level) + 1
    end function
  end subroutine

  ! Ports in alphabetical order, then each by its name.
  subroutine order_ports(names)
    character(len=8), intent(inout) :: names(:)
    character(len=8) :: moved
    integer :: i, k
    do i = 2, size(names)
      moved = names(i)
      k = i - 1
      do while (k >= 1)
        if (.not. before(moved, names(k))) exit
        names(k + 1) = names(k)
        k = k - 1
      end do
      names(k + 1) = moved
    end do
  contains
    logical function before(a, b)
      character(len=8), intent(in) :: a, b
      integer :: n
      before = .false.
      do n = 1, 8
        if (a(n:n) == b(n:n)) cycle
        before = a(n:n) < b(n:n)
        return
      end do
    end function
  end subroutine

  subroutine gauge(turn)
    integer, intent(in) :: turn
    integer :: k, n
    do k = 1, nports
      n = 1 + mod(turn + k, 4)
      ports(k)%level(n) = real(eta(ports(k)%i, ports(k)%j)) + 0.5 * ports(k)%level(1 + mod(n, 4))
      ports(k)%column%heat = ports(k)%column%heat + ports(k)%level(n)
      ports(k)%name(7:7) = achar(97 + mod(turn, 26))
    end do
    port_names(1 + mod(turn, nports))(2:2) = achar(97 + mod(turn * 7, 26))
  end subroutine
end module

module spectra
  use grids
  implicit none
  type :: plan_t
    integer :: n
    complex(dp), allocatable :: w(:)
    integer, allocatable :: order(:)
    integer :: runs = 0
  contains
    procedure :: prepare
    procedure :: forward
  end type
  type(plan_t), target :: plan
  complex(dp), allocatable, target :: line(:), spectrum(:, :)
contains
  subroutine prepare(self, n)
    class(plan_t), intent(inout), target :: self
    integer, intent(in) :: n
    integer :: i, b, r
    self%n = n
    allocate (self%w(n / 2), self%order(n))
    call tell('complex(kind=8)', c_loc(self%w), 128, n / 2)
    call tell('integer(kind=4)', c_loc(self%order), 32, n)
    do i = 1, n / 2
      self%w(i) = exp(cmplx(0, -2 * acos(-1d0) * (i - 1) / n, dp))
    end do
    do i = 0, n - 1
      r = 0
      b = 1
      do while (b < n)
        if (iand(i, b) /= 0) r = r + n / (2 * b)
        b = 2 * b
      end do
      self%order(i + 1) = r + 1
    end do
  end subroutine

  subroutine forward(self, z)
    class(plan_t), intent(inout) :: self
    complex(dp), intent(inout) :: z(:)
    complex(dp) :: t
    integer :: i, k, half, jump
    do i = 1, self%n
      k = self%order(i)
      if (k <= i) cycle
      t = z(i)
      z(i) = z(k)
      z(k) = t
    end do
    half = 1
    do while (half < self%n)
      jump = self%n / (2 * half)
      do k = 1, half
        do i = k, self%n, 2 * half
          t = self%w(1 + (k - 1) * jump) * z(i + half)
          z(i + half) = z(i) - t
          z(i) = z(i) + t
        end do
      end do
      half = 2 * half
    end do
    self%runs = self%runs + 1
  end subroutine

  subroutine make_spectra()
    call plan%prepare(32)
    allocate (line(32), spectrum(32, nx))
    spectrum = 0
    call tell_variable('spectra::plan', 'plan_t', c_loc(plan), storage_size(plan), 1)
    call tell('complex(kind=8)', c_loc(line), 128, size(line))
    call tell('complex(kind=8)', c_loc(spectrum), 128, size(spectrum))
  end subroutine

  subroutine analyse(i)
    integer, intent(in) :: i
    integer :: j
    do j = 1, 32
      line(j) = cmplx(eta(i, j), u(i, j), dp) + columns(i, j)%tide(2)
    end do
    call plan%forward(line)
    do j = 1, 32
      spectrum(j, i) = 0.75_dp * spectrum(j, i) + 0.25_dp * line(j)
    end do
  end subroutine
end module

module drift
  use grids
  implicit none
  integer, parameter :: nfleet = 240, nobs = 3000, nnodes = 600

  type :: body_t
    integer :: id
    real(dp) :: pos(2), vel(2)
    integer :: turns = 0
    class(body_t), pointer :: next => null()
  contains
    procedure :: advance
    procedure :: energy
  end type

  type, extends(body_t) :: buoy_t
    real(dp) :: drogue = 1
    real(dp), allocatable :: track(:)
    integer :: used = 0
    character(len=8) :: tag = 'buoy'
    type(column_t), pointer :: below => null()
  contains
    procedure :: advance => advance_buoy
  end type

  type, extends(body_t) :: float_t
    real(dp) :: lift = 0.1_dp, depth = 0
    complex(dp) :: phase = (1d0, 0d0)
    integer :: profile(6) = 0
  contains
    procedure :: advance => advance_float
    procedure :: energy => energy_float
  end type

  type :: slot_t
    class(body_t), pointer :: p => null()
    real(dp) :: energy = 0
  end type

  type :: obs_t
    real(dp) :: value
    real(4) :: error
    integer :: source
    type(obs_t), pointer :: next => null()
  end type

  type :: bin_t
    type(obs_t), pointer :: head => null()
    integer :: count = 0
    real(dp) :: sum = 0
  end type

  type :: node_t
    real(dp) :: key
    integer :: count
    type(node_t), pointer :: left => null(), right => null()
    class(body_t), pointer :: body => null()
    real(dp) :: reach(2)
  end type

  type(slot_t), allocatable, target :: fleet(:)
  class(body_t), pointer :: chain => null()
  type(obs_t), pointer :: free_obs => null()
  type(bin_t), target :: bins(64)
  type(node_t), pointer :: root => null(), free_nodes => null()
contains
  subroutine make_fleet()
    type(buoy_t), pointer :: b
    type(float_t), pointer :: f
    type(obs_t), pointer :: o
    type(node_t), pointer :: n
    integer :: k
    allocate (fleet(nfleet))
    call tell('slot_t', c_loc(fleet), storage_size(fleet), nfleet)
    call tell_variable('drift::bins', 'bin_t[]', c_loc(bins), storage_size(bins), size(bins))
    do k = 1, nfleet
      if (mod(k, 3) == 0) then
        allocate (f)
        call tell('float_t', c_loc(f), storage_size(f), 1)
        fleet(k)%p => f
      else
        allocate (b)
        call tell('buoy_t', c_loc(b), storage_size(b), 1)
        allocate (b%track(20))
        call tell('real(kind=8)', c_loc(b%track), 64, 20)
        b%track = 0
        fleet(k)%p => b
      end if
      associate (p => fleet(k)%p)
        p%id = k
        p%pos = [1 + mod(k * 7.3d0, nx - 3d0), 1 + mod(k * 3.1d0, ny - 3d0)]
        p%vel = 0
        p%next => chain
      end associate
      chain => fleet(k)%p
    end do
    do k = 1, nobs
      allocate (o)
      call tell('obs_t', c_loc(o), storage_size(o), 1)
      o%next => free_obs
      free_obs => o
    end do
    do k = 1, nnodes
      allocate (n)
      call tell('node_t', c_loc(n), storage_size(n), 1)
      n%left => free_nodes
      free_nodes => n
    end do
  end subroutine

  subroutine advance(self, dt)
    class(body_t), intent(inout) :: self
    real(dp), intent(in) :: dt
    integer :: i, j
    i = int(self%pos(1))
    j = int(self%pos(2))
    self%vel(1) = 0.9_dp * self%vel(1) + 0.1_dp * u(i, j)
    self%vel(2) = 0.9_dp * self%vel(2) + 0.1_dp * v(i, j)
    self%pos = self%pos + dt * self%vel
    if (self%pos(1) < 1 .or. self%pos(1) > nx - 1) self%pos(1) = 2
    if (self%pos(2) < 1 .or. self%pos(2) > ny - 1) self%pos(2) = 2
    self%turns = self%turns + 1
  end subroutine

  subroutine advance_buoy(self, dt)
    class(buoy_t), intent(inout) :: self
    real(dp), intent(in) :: dt
    call self%body_t%advance(dt * self%drogue)
    self%used = mod(self%used, size(self%track)) + 1
    self%track(self%used) = self%pos(1) + nx * self%pos(2)
    self%below => columns(int(self%pos(1)), int(self%pos(2)))
    if (self%below%wet) self%drogue = 0.5_dp + 0.01_dp * self%below%layers(2)%temp
    self%tag(5:5) = achar(48 + mod(self%turns, 10))
  end subroutine

  subroutine advance_float(self, dt)
    class(float_t), intent(inout) :: self
    real(dp), intent(in) :: dt
    call self%body_t%advance(0.2_dp * dt)
    self%phase = self%phase * cmplx(0.8_dp, 0.6_dp, dp)
    self%depth = self%depth + self%lift * real(self%phase)
    self%profile(1 + mod(self%turns, 6)) = int(self%depth * 10)
  end subroutine

  real(dp) function energy(self)
    class(body_t), intent(in) :: self
    energy = 0.5_dp * (self%vel(1)**2 + self%vel(2)**2)
  end function

  real(dp) function energy_float(self)
    class(float_t), intent(in) :: self
    energy_float = 0.5_dp * (self%vel(1)**2 + self%vel(2)**2) + self%lift * self%depth + aimag(self%phase)
  end function

  subroutine sail(slots, dt)
    type(slot_t), intent(inout) :: slots(:)
    real(dp), intent(in) :: dt
    integer :: k
    do k = 1, size(slots)
      call slots(k)%p%advance(dt)
      slots(k)%energy = 0.5_dp * slots(k)%energy + slots(k)%p%energy()
    end do
  end subroutine

  ! Along the chain: which kind is it?
  integer function inspect(limit)
    real(dp), intent(in) :: limit
    class(body_t), pointer :: b
    inspect = 0
    b => chain
    do while (associated(b))
      select type (b)
      type is (buoy_t)
        if (b%track(1 + mod(b%id, 20)) > limit) inspect = inspect + b%used
        if (b%tag(5:5) == '3') inspect = inspect + 1
      type is (float_t)
        inspect = inspect + sum(b%profile)
        if (b%depth > limit) b%lift = -abs(b%lift)
        if (b%depth < -limit) b%lift = abs(b%lift)
      end select
      b => b%next
    end do
  end function

  recursive subroutine insert(node, body)
    type(node_t), pointer, intent(inout) :: node
    class(body_t), pointer, intent(in) :: body
    real(dp) :: key
    key = body%pos(1) + 0.01_dp * body%pos(2)
    if (.not. associated(node)) then
      node => free_nodes
      free_nodes => node%left
      node%left => null()
      node%right => null()
      node%body => body
      node%key = key
      node%count = 1
      node%reach = [key, key]
      return
    end if
    node%count = node%count + 1
    node%reach(1) = min(node%reach(1), key)
    node%reach(2) = max(node%reach(2), key)
    if (key < node%key) then
      call insert(node%left, body)
    else
      call insert(node%right, body)
    end if
  end subroutine

  recursive subroutine give_back(node)
    type(node_t), pointer, intent(inout) :: node
    type(node_t), pointer :: gone
    if (.not. associated(node)) return
    call give_back(node%left)
    call give_back(node%right)
    gone => node
    node => null()
    gone%left => free_nodes
    free_nodes => gone
  end subroutine

  recursive integer function within(node, low, high) result(n)
    type(node_t), intent(in) :: node
    real(dp), intent(in) :: low, high
    n = 0
    if (node%reach(2) < low .or. node%reach(1) > high) return
    if (node%key >= low .and. node%key <= high) n = 1 + mod(node%body%turns, 2)
    if (associated(node%left)) n = n + within(node%left, low, high)
    if (associated(node%right)) n = n + within(node%right, low, high)
  end function

  integer function closest(key)
    real(dp), intent(in) :: key
    type(node_t), pointer :: n
    closest = 0
    n => root
    do while (associated(n))
      closest = n%body%id
      if (key < n%key) then
        n => n%left
      else
        n => n%right
      end if
    end do
  end function

  subroutine observe(turn)
    integer, intent(in) :: turn
    type(obs_t), pointer :: o
    integer :: k, b
    do k = 1, nfleet
      b = 1 + mod(k * 5 + turn, size(bins))
      o => free_obs
      if (.not. associated(o)) return
      free_obs => o%next
      o%value = fleet(k)%p%pos(2)
      o%error = 0.1 * k
      o%source = fleet(k)%p%id
      o%next => bins(b)%head
      bins(b)%head => o
      bins(b)%count = bins(b)%count + 1
    end do
  end subroutine

  subroutine assimilate(each)
    type(bin_t), intent(inout), target :: each(:)
    type(obs_t), pointer :: o, following
    integer :: b
    do b = 1, size(each)
      each(b)%sum = 0
      o => each(b)%head
      do while (associated(o))
        each(b)%sum = each(b)%sum + o%value / (1 + o%error)
        o => o%next
      end do
      if (each(b)%count < 30) cycle
      o => each(b)%head
      do while (associated(o))
        following => o%next
        o%next => free_obs
        free_obs => o
        o => following
      end do
      each(b)%head => null()
      each(b)%count = 0
    end do
  end subroutine
end module

! As of old: fixed shapes, COMMON, one name by one letter.
subroutine relax(p, rhs, n, m, sweeps)
  implicit none
  integer, intent(in) :: n, m, sweeps
  real(8), intent(inout) :: p(0:n + 1, 0:m + 1)
  real(8), intent(in) :: rhs(n, m)
  real(8) :: omega, tol, work, resid
  integer :: iters, limits, i, j, k
  common /solver/ omega, tol, work(48, 32), resid(64), iters, limits(7)
  do k = 1, sweeps
    do j = 1, m
      do i = 1, n
        work(i, j) = 0.25d0 * (p(i - 1, j) + p(i + 1, j) + p(i, j - 1) + p(i, j + 1) - 1d-3 * rhs(i, j))
      end do
    end do
    resid(1 + mod(iters, 64)) = 0
    do j = 1, m
      do i = 1, n
        resid(1 + mod(iters, 64)) = resid(1 + mod(iters, 64)) + abs(work(i, j) - p(i, j))
        p(i, j) = p(i, j) + omega * (work(i, j) - p(i, j))
      end do
    end do
    iters = iters + 1
    limits(1 + mod(iters, 7)) = limits(1 + mod(iters, 7)) + 1
    if (resid(1 + mod(iters + 63, 64)) < tol) exit
  end do
end subroutine

program ocean
  use grids
  use spectra
  use drift
  implicit none
  real(8) :: omega, tol, work, resid
  integer :: iters, limits
  common /solver/ omega, tol, work(48, 32), resid(64), iters, limits(7)
  integer :: turn, k, seen
  integer, target, save :: found(64) = 0
  real(dp), pointer :: strip(:)
  call begin()
  call make_grids()
  call make_spectra()
  call make_fleet()
  call ocean_truth()
  call tell_variable('found', 'integer(kind=4)[]', c_loc(found), 32, 64)
  omega = 0.3d0
  tol = 1d-9
  turn = 0
  seen = 0
  do while (tr_more() /= 0)
    turn = turn + 1
    call momentum()
    call continuity()
    call advect(tracer(:, :, 1 + mod(turn, nz)), u, v, 0.1_dp)
    call advect(tracer(5:44:3, 3:30, 2), u, v, 0.05_dp)
    call physics(columns(:, 1 + mod(turn, 4):ny:4), 0.5_dp)
    k = 1 + mod(turn, 4)
    call survey(fields(k), tracer(:, :, k), k)
    do k = 1 + mod(turn, 6), nx, 6
      call analyse(k)
    end do
    do k = 1, 3
      call sail(fleet, 0.05_dp)
      seen = seen + inspect(2d0)
    end do
    call give_back(root)
    do k = 1, nfleet, 4
      call insert(root, fleet(1 + mod(k * 77 + turn, nfleet))%p)
    end do
    do k = 1, 40
      seen = seen + within(root, 0.7_dp * k, 0.7_dp * k + 3)
      found(1 + mod(k, 64)) = found(1 + mod(k, 64)) + closest(0.77_dp * k)
    end do
    call observe(turn)
    call assimilate(bins)
    call order_ports(port_names)
    do k = 1, 10
      call gauge(turn + k)
    end do
    strip => eta(1:nx:2, 1 + mod(turn, ny))
    strip = 0.99_dp * strip + 0.01_dp * sum(strip) / size(strip)
    if (mod(turn, 2) == 0) call relax(eta, bottom, nx, ny, 2)
  end do
  print *, seen, sum(found), iters
end program
