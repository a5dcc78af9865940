# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_dataspace_global_optspecs
    string join \n v/verbose color= sandbox= h/help
end

function __fish_dataspace_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_dataspace_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_dataspace_using_subcommand
    set -l cmd (__fish_dataspace_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c dataspace -n "__fish_dataspace_needs_command" -l color -d 'Use of colour; `auto` honours NO_COLOR' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c dataspace -n "__fish_dataspace_needs_command" -l sandbox -d 'Reads what the target controls in a process without privileges; off: in this one' -r -f -a "on\t'One is used'
off\t'All is done in one process'"
complete -c dataspace -n "__fish_dataspace_needs_command" -s v -l verbose -d 'Say more on standard error; twice or thrice for more still'
complete -c dataspace -n "__fish_dataspace_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dataspace -n "__fish_dataspace_needs_command" -f -a "top" -d 'Watch the hot data objects of a running process, or of a command'
complete -c dataspace -n "__fish_dataspace_needs_command" -f -a "record" -d 'Record a running process, or a command, to a perf.data file'
complete -c dataspace -n "__fish_dataspace_needs_command" -f -a "report" -d 'Show the data objects of a recording (perf.data)'
complete -c dataspace -n "__fish_dataspace_needs_command" -f -a "script" -d 'Print one JSON object for each sample of a recording, in time order'
complete -c dataspace -n "__fish_dataspace_needs_command" -f -a "layout" -d 'Show all members of a type by offset: holes, padding, bit-fields, cache lines'
complete -c dataspace -n "__fish_dataspace_needs_command" -f -a "annotate" -d 'Show a function\'s source and instructions with the data objects that they touch'
complete -c dataspace -n "__fish_dataspace_needs_command" -f -a "threads" -d 'Tell which threads share a cache line, and what would separate them'
complete -c dataspace -n "__fish_dataspace_needs_command" -f -a "measure" -d 'Count events exactly and sample one beside them: cache and TLB misses, page faults, time'
complete -c dataspace -n "__fish_dataspace_needs_command" -f -a "watch" -d 'Tell who reads and writes some data, by hardware breakpoints on it'
complete -c dataspace -n "__fish_dataspace_needs_command" -f -a "web" -d 'Show data objects in a browser'
complete -c dataspace -n "__fish_dataspace_needs_command" -f -a "doctor" -d 'Tell what this machine and these privileges allow, and what would allow more'
complete -c dataspace -n "__fish_dataspace_needs_command" -f -a "demo" -d 'Profile a small bundled program, to see it work'
complete -c dataspace -n "__fish_dataspace_needs_command" -f -a "daemon" -d 'Stay attached to services and serve their totals over a socket'
complete -c dataspace -n "__fish_dataspace_needs_command" -f -a "install-units" -d 'Install the daemon as a service: this binary, its units, an example configuration'
complete -c dataspace -n "__fish_dataspace_needs_command" -f -a "completions" -d 'Print what a shell reads to complete commands and options'
complete -c dataspace -n "__fish_dataspace_needs_command" -f -a "config" -d 'Check the daemon\'s configuration'
complete -c dataspace -n "__fish_dataspace_needs_command" -f -a "attach" -d 'Have the daemon attach to a target'
complete -c dataspace -n "__fish_dataspace_needs_command" -f -a "detach" -d 'Have the daemon end sessions'
complete -c dataspace -n "__fish_dataspace_needs_command" -f -a "sessions" -d 'List the daemon\'s sessions that you may see'
complete -c dataspace -n "__fish_dataspace_needs_command" -f -a "status" -d 'Tell how the daemon is'
complete -c dataspace -n "__fish_dataspace_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -s p -l pid -d 'Processes: all their threads, and the children born from now on' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -s t -l tid -d 'Single threads' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -s u -l unit -d 'The service or other unit of systemd, through its restarts' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l cgroup -d 'A control group and those below it: its directory, or the path in /proc/PID/cgroup' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l comm -d 'Only processes of this name; without another target, all of them, now and later. It is the name that `ps -o comm` shows, of 15 bytes at most' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l exclude-comm -d 'No processes of this name' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -s e -l event -d 'Events in perf\'s spelling: mem, loads and stores (what this machine has for them), cpu-clock, page-faults, mem:0x404028/8:rw, syscalls:sys_enter_read, cpu/mem-loads,ldlat=30/P, ibs_op//, cycles:pp, r1cd [default: the best one that this machine and these privileges allow]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -s c -l period -d 'Take one sample each N events' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -s F -l freq -d 'Take HZ samples a second of each thread on a CPU' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l max-overhead -d 'Sample less where sampling takes more than this share of the target\'s CPU time, or of one CPU: 0.5%, 3%, off [default: 1%, but with -c every Nth fault, breakpoint and tracepoint]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -s m -l mmap-pages -d 'Pages of each CPU\'s ring, a power of two [default: 512 KiB]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l duration -d 'Stop after so long: 5, 0.5, 10s, 1m' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l interval -d 'Time between two snapshots' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l window -d 'Span that shares and rates are taken over: 60s, 10s, 1s, all, or one of the session\'s own [default: 10s or the next shorter one on the screen, else all]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l limit -d 'Show at most N objects, `<Total>` among them' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l filter -d 'Show only objects whose name or descriptor contains TEXT, whatever the case' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l names -d 'Spell objects for people as the source has them, order.next, or by their types, {structure:order}.{pointer+structure:order next}; programs get both' -r -f -a "source\t'As the source has them: order.next'
descriptor\t'By their types: {structure:order}.{pointer+structure:order next}'"
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l columns -d 'Columns of the screen: time, cpu, share, bar, trend, samples, rate, rw, loads, stores, latency, levels, tlb, locked, hitm, threads, evidence, line [default: those that there is room for, or those of `[screen]` in ~/.config/dataspace/dataspace.toml]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l theme -d 'Colours of the screen [default: dark]' -r -f -a "dark\t'For light letters on a dark ground'
light\t'For dark letters on a light ground'"
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l by -d 'Sum samples by these keys in place of showing objects: object, aggregate, member, type, variable, function, caller, caller_line, line, inlined, instruction, module, unit, process, thread, comm, cpu, cgroup, second, access, memory, latency_bucket, level, evidence, reason, page, page_2m, cacheline, address, instance, index, offset, segment, alignment, size, old, new, event; or an expression over them, as in \'address / 4096\'' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l where -d 'Count only samples for which the expression is true: \'function == "main" && access == "store"\'' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l metrics -d 'Metrics to show: samples, share, loads, stores, latency, tlb_misses, locked, hitm, remote, period' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l newest -d 'Show the newest N samples, each in a row, in the place of sums' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l sort -d 'The metric that puts rows in order, most first [default: the first one shown]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l span -d 'Count only samples of this span: -30s..-10s before the end, 5s..10s after the beginning, -1m..' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l key -d 'Name an expression, to use it as keys are used: --key \'huge=address / 2097152\' --by huge' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l windows -d 'The session\'s windows besides the time since it began: 1 to 4 lengths of up to 300 seconds [default: 60,10,1]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l connect -l socket -d 'Show a session of the daemon at PATH, or http://HOST:PORT, instead of one of our own' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l token-file -d 'The token that a daemon over http wants; nobody else may read FILE' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l session -d 'Session, by number or name; without it, and without a target, the only one' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l memory-max -d 'Keep our own resident memory below SIZE: 256M, 1G. Near it caches of debug information are given up, and at last the naming of samples (`over_budget`). At least 37M' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l history -d 'Keep the newest samples in so much memory, so that --by and --where can ask for them; 0 keeps none [default: 64M, about a million samples; of the daemon 16M]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l color -d 'Use of colour; `auto` honours NO_COLOR' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l sandbox -d 'Reads what the target controls in a process without privileges; off: in this one' -r -f -a "on\t'One is used'
off\t'All is done in one process'"
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -s a -l all -d 'Every process of the machine'
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l json -d 'Print one JSON snapshot a line each interval, and the last one at the end'
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l once -d 'Print one plain table at the end, or with --json one snapshot'
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l csv -d 'Print one line for each row at the end, as spreadsheets take it'
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -l debuginfod -d 'Sample for a second first, and fetch debug information that is missing here from the servers in $DEBUGINFOD_URLS, by build-id, into the cache of debuginfod\'s clients'
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -s v -l verbose -d 'Say more on standard error; twice or thrice for more still'
complete -c dataspace -n "__fish_dataspace_using_subcommand top" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dataspace -n "__fish_dataspace_using_subcommand record" -s p -l pid -d 'Processes: all their threads, and the children born from now on' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand record" -s t -l tid -d 'Single threads' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand record" -s u -l unit -d 'The service or other unit of systemd, through its restarts' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand record" -l cgroup -d 'A control group and those below it: its directory, or the path in /proc/PID/cgroup' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand record" -l comm -d 'Only processes of this name; without another target, all of them, now and later. It is the name that `ps -o comm` shows, of 15 bytes at most' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand record" -l exclude-comm -d 'No processes of this name' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand record" -s e -l event -d 'Events in perf\'s spelling: mem, loads and stores (what this machine has for them), cpu-clock, page-faults, mem:0x404028/8:rw, syscalls:sys_enter_read, cpu/mem-loads,ldlat=30/P, ibs_op//, cycles:pp, r1cd [default: the best one that this machine and these privileges allow]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand record" -s c -l period -d 'Take one sample each N events' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand record" -s F -l freq -d 'Take HZ samples a second of each thread on a CPU' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand record" -l max-overhead -d 'Sample less where sampling takes more than this share of the target\'s CPU time, or of one CPU: 0.5%, 3%, off [default: 1%, but with -c every Nth fault, breakpoint and tracepoint]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand record" -s m -l mmap-pages -d 'Pages of each CPU\'s ring, a power of two [default: 512 KiB]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand record" -s o -l output -d 'The file to write; `-` is standard output, in pipe mode' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand record" -l max-size -d 'Stop before the file is longer than SIZE, its tables included: 100M, 2G. What is known before the first sample (mappings, names) is written however long it is' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand record" -l duration -d 'Stop after so long: 5, 0.5, 10s, 1m' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand record" -l color -d 'Use of colour; `auto` honours NO_COLOR' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c dataspace -n "__fish_dataspace_using_subcommand record" -l sandbox -d 'Reads what the target controls in a process without privileges; off: in this one' -r -f -a "on\t'One is used'
off\t'All is done in one process'"
complete -c dataspace -n "__fish_dataspace_using_subcommand record" -s a -l all -d 'Every process of the machine'
complete -c dataspace -n "__fish_dataspace_using_subcommand record" -l json -d 'Print one JSON object at the end: samples, losses, length'
complete -c dataspace -n "__fish_dataspace_using_subcommand record" -s v -l verbose -d 'Say more on standard error; twice or thrice for more still'
complete -c dataspace -n "__fish_dataspace_using_subcommand record" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dataspace -n "__fish_dataspace_using_subcommand report" -s i -l input -d 'The recording; `-` is standard input' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand report" -l symfs -d 'Look for load objects below DIR first, as `perf report --symfs` does' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand report" -l skid -d 'Take the reported IP (0), the instruction before it (1), or at most N back as the trigger' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand report" -l paths -d 'Let only one path from trigger to data object answer, for measuring' -r -f -a "type\t'Only the instruction and the debug information'
address\t'Only the data address'
both\t'Both, joined'"
complete -c dataspace -n "__fish_dataspace_using_subcommand report" -l format -d 'Form of the output' -r -f -a "table\t'For a person'
json\t'One JSON snapshot'
csv\t'One line for each object'
folded\t'One line for each stack of objects and function, for flame graphs'
pprof\t'A profile for `go tool pprof`, compressed with gzip'
html\t'One file for a browser, with all views and the data inside: it needs no server and no network'"
complete -c dataspace -n "__fish_dataspace_using_subcommand report" -l windows -d 'The session\'s windows besides the time since it began: 1 to 4 lengths of up to 300 seconds [default: 60,10,1]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand report" -l limit -d 'Show at most N objects, `<Total>` among them' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand report" -l filter -d 'Show only objects whose name or descriptor contains TEXT, whatever the case' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand report" -l names -d 'Spell objects for people as the source has them, order.next, or by their types, {structure:order}.{pointer+structure:order next}; programs get both' -r -f -a "source\t'As the source has them: order.next'
descriptor\t'By their types: {structure:order}.{pointer+structure:order next}'"
complete -c dataspace -n "__fish_dataspace_using_subcommand report" -l by -d 'Sum samples by these keys in place of showing objects: object, aggregate, member, type, variable, function, caller, caller_line, line, inlined, instruction, module, unit, process, thread, comm, cpu, cgroup, second, access, memory, latency_bucket, level, evidence, reason, page, page_2m, cacheline, address, instance, index, offset, segment, alignment, size, old, new, event; or an expression over them, as in \'address / 4096\'' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand report" -l where -d 'Count only samples for which the expression is true: \'function == "main" && access == "store"\'' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand report" -l metrics -d 'Metrics to show: samples, share, loads, stores, latency, tlb_misses, locked, hitm, remote, period' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand report" -l newest -d 'Show the newest N samples, each in a row, in the place of sums' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand report" -l sort -d 'The metric that puts rows in order, most first [default: the first one shown]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand report" -l span -d 'Count only samples of this span: -30s..-10s before the end, 5s..10s after the beginning, -1m..' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand report" -l key -d 'Name an expression, to use it as keys are used: --key \'huge=address / 2097152\' --by huge' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand report" -l history -d 'Keep samples in so much memory while a question is answered; a recording that has more is read twice [default: 256M, nearly four million samples]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand report" -l color -d 'Use of colour; `auto` honours NO_COLOR' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c dataspace -n "__fish_dataspace_using_subcommand report" -l sandbox -d 'Reads what the target controls in a process without privileges; off: in this one' -r -f -a "on\t'One is used'
off\t'All is done in one process'"
complete -c dataspace -n "__fish_dataspace_using_subcommand report" -l debuginfod -d 'Fetch debug information that is missing here from the servers in $DEBUGINFOD_URLS, by build-id, into the cache of debuginfod\'s clients'
complete -c dataspace -n "__fish_dataspace_using_subcommand report" -l json -d 'Print one JSON snapshot instead of a table: the same as --format json'
complete -c dataspace -n "__fish_dataspace_using_subcommand report" -l plain -d 'Print a table in place of the screen on a terminal'
complete -c dataspace -n "__fish_dataspace_using_subcommand report" -l no-pager -d 'Print it at once, and not with $DATASPACE_PAGER, $PAGER or less'
complete -c dataspace -n "__fish_dataspace_using_subcommand report" -s v -l verbose -d 'Say more on standard error; twice or thrice for more still'
complete -c dataspace -n "__fish_dataspace_using_subcommand report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dataspace -n "__fish_dataspace_using_subcommand script" -s i -l input -d 'The recording; `-` is standard input' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand script" -l symfs -d 'Look for load objects below DIR first, as `perf report --symfs` does' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand script" -l skid -d 'Take the reported IP (0), the instruction before it (1), or at most N back as the trigger' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand script" -l paths -d 'Let only one path from trigger to data object answer, for measuring' -r -f -a "type\t'Only the instruction and the debug information'
address\t'Only the data address'
both\t'Both, joined'"
complete -c dataspace -n "__fish_dataspace_using_subcommand script" -l limit -d 'Print at most N lines' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand script" -l fields -d 'Print these fields only, in this order: `time_ns,tid,object,file,line`' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand script" -l color -d 'Use of colour; `auto` honours NO_COLOR' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c dataspace -n "__fish_dataspace_using_subcommand script" -l sandbox -d 'Reads what the target controls in a process without privileges; off: in this one' -r -f -a "on\t'One is used'
off\t'All is done in one process'"
complete -c dataspace -n "__fish_dataspace_using_subcommand script" -l debuginfod -d 'Fetch debug information that is missing here from the servers in $DEBUGINFOD_URLS, by build-id, into the cache of debuginfod\'s clients'
complete -c dataspace -n "__fish_dataspace_using_subcommand script" -l json -d 'Accepted as on `report`: the lines are JSON in any case'
complete -c dataspace -n "__fish_dataspace_using_subcommand script" -s v -l verbose -d 'Say more on standard error; twice or thrice for more still'
complete -c dataspace -n "__fish_dataspace_using_subcommand script" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dataspace -n "__fish_dataspace_using_subcommand layout" -s p -l pid -d 'Processes: all their threads, and the children born from now on' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand layout" -s t -l tid -d 'Single threads' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand layout" -s u -l unit -d 'The service or other unit of systemd, through its restarts' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand layout" -l cgroup -d 'A control group and those below it: its directory, or the path in /proc/PID/cgroup' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand layout" -l comm -d 'Only processes of this name; without another target, all of them, now and later. It is the name that `ps -o comm` shows, of 15 bytes at most' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand layout" -l exclude-comm -d 'No processes of this name' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand layout" -s i -l input -d 'Show what was sampled in this recording; `-` is standard input' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand layout" -l symfs -d 'Look for the recording\'s load objects below DIR first' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand layout" -s e -l event -d 'Events in perf\'s spelling: mem, loads and stores (what this machine has for them), cpu-clock, page-faults, mem:0x404028/8:rw, syscalls:sys_enter_read, cpu/mem-loads,ldlat=30/P, ibs_op//, cycles:pp, r1cd [default: the best one that this machine and these privileges allow]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand layout" -s c -l period -d 'Take one sample each N events' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand layout" -s F -l freq -d 'Take HZ samples a second of each thread on a CPU' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand layout" -l max-overhead -d 'Sample less where sampling takes more than this share of the target\'s CPU time, or of one CPU: 0.5%, 3%, off [default: 1%, but with -c every Nth fault, breakpoint and tracepoint]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand layout" -s m -l mmap-pages -d 'Pages of each CPU\'s ring, a power of two [default: 512 KiB]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand layout" -l duration -d 'Stop after so long: 5, 0.5, 10s, 1m' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand layout" -l history -d 'Keep the newest samples in so much memory [default: 64M, about a million samples; of a recording 256M]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand layout" -l color -d 'Use of colour; `auto` honours NO_COLOR' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c dataspace -n "__fish_dataspace_using_subcommand layout" -l sandbox -d 'Reads what the target controls in a process without privileges; off: in this one' -r -f -a "on\t'One is used'
off\t'All is done in one process'"
complete -c dataspace -n "__fish_dataspace_using_subcommand layout" -s a -l all -d 'Every process of the machine'
complete -c dataspace -n "__fish_dataspace_using_subcommand layout" -l json -d 'Print JSON'
complete -c dataspace -n "__fish_dataspace_using_subcommand layout" -l csv -d 'Print one line for each row, as spreadsheets take it (RFC 4180)'
complete -c dataspace -n "__fish_dataspace_using_subcommand layout" -l every -d 'Print every description of a type, also those that are alike'
complete -c dataspace -n "__fish_dataspace_using_subcommand layout" -l no-pager -d 'Do not show long layouts with $DATASPACE_PAGER, $PAGER or less'
complete -c dataspace -n "__fish_dataspace_using_subcommand layout" -s v -l verbose -d 'Say more on standard error; twice or thrice for more still'
complete -c dataspace -n "__fish_dataspace_using_subcommand layout" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -s i -l input -d 'The recording, where no target is named; `-` is standard input [default: perf.data]' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -l symfs -d 'Look for load objects below DIR first, as `perf report --symfs` does' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -s p -l pid -d 'Processes: all their threads, and the children born from now on' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -s t -l tid -d 'Single threads' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -s u -l unit -d 'The service or other unit of systemd, through its restarts' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -l cgroup -d 'A control group and those below it: its directory, or the path in /proc/PID/cgroup' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -l comm -d 'Only processes of this name; without another target, all of them, now and later. It is the name that `ps -o comm` shows, of 15 bytes at most' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -l exclude-comm -d 'No processes of this name' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -s e -l event -d 'Events in perf\'s spelling: mem, loads and stores (what this machine has for them), cpu-clock, page-faults, mem:0x404028/8:rw, syscalls:sys_enter_read, cpu/mem-loads,ldlat=30/P, ibs_op//, cycles:pp, r1cd [default: the best one that this machine and these privileges allow]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -s c -l period -d 'Take one sample each N events' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -s F -l freq -d 'Take HZ samples a second of each thread on a CPU' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -l max-overhead -d 'Sample less where sampling takes more than this share of the target\'s CPU time, or of one CPU: 0.5%, 3%, off [default: 1%, but with -c every Nth fault, breakpoint and tracepoint]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -s m -l mmap-pages -d 'Pages of each CPU\'s ring, a power of two [default: 512 KiB]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -l source -d 'Look for sources below DIR first: the whole path, then ever less of it' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -l min-share -d 'Leave out what has a smaller share of the function\'s samples, in percent' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -l cutoff -d 'Show what makes up this share of the function\'s samples, the most first, in percent' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -l min-samples -d 'Leave out what has fewer samples [default: 0; 1 for a function of more than 400 instructions]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -l names -d 'Spell objects for people as the source has them, order.next, or by their types, {structure:order}.{pointer+structure:order next}; programs get both' -r -f -a "source\t'As the source has them: order.next'
descriptor\t'By their types: {structure:order}.{pointer+structure:order next}'"
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -l duration -d 'Stop after so long: 5, 0.5, 10s, 1m' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -l where -d 'Count only samples for which the expression is true: \'access == "store"\'' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -l history -d 'Keep samples in so much memory [default: 64M, of a recording 256M]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -l color -d 'Use of colour; `auto` honours NO_COLOR' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -l sandbox -d 'Reads what the target controls in a process without privileges; off: in this one' -r -f -a "on\t'One is used'
off\t'All is done in one process'"
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -s a -l all -d 'Every process of the machine'
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -l by-line -d 'Show source lines without their instructions'
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -l intel -d 'Write instructions as the manuals do, destination first'
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -l json -d 'Print JSON'
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -l csv -d 'Print one line for each row, as spreadsheets take it (RFC 4180)'
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -l no-pager -d 'Do not show long code with $DATASPACE_PAGER, $PAGER or less'
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -s v -l verbose -d 'Say more on standard error; twice or thrice for more still'
complete -c dataspace -n "__fish_dataspace_using_subcommand annotate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dataspace -n "__fish_dataspace_using_subcommand threads" -s p -l pid -d 'Processes: all their threads, and the children born from now on' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand threads" -s t -l tid -d 'Single threads' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand threads" -s u -l unit -d 'The service or other unit of systemd' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand threads" -s i -l input -d 'A recording; `-` is standard input [default, where no target is named: perf.data]' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand threads" -l symfs -d 'Look for a recording\'s load objects below DIR first, as `perf report --symfs` does' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand threads" -s e -l event -d 'Events in perf\'s spelling: mem, loads and stores (what this machine has for them), cpu-clock, page-faults, mem:0x404028/8:rw, syscalls:sys_enter_read, cpu/mem-loads,ldlat=30/P, ibs_op//, cycles:pp, r1cd [default: the best one that this machine and these privileges allow]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand threads" -s c -l period -d 'Take one sample each N events' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand threads" -s F -l freq -d 'Take HZ samples a second of each thread on a CPU' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand threads" -l max-overhead -d 'Sample less where sampling takes more than this share of the target\'s CPU time, or of one CPU: 0.5%, 3%, off [default: 1%, but with -c every Nth fault, breakpoint and tracepoint]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand threads" -s m -l mmap-pages -d 'Pages of each CPU\'s ring, a power of two [default: 512 KiB]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand threads" -l duration -d 'Stop after so long: 5, 0.5, 10s, 1m' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand threads" -l limit -d 'Show at most N lines [default: 20, with --json or --csv all]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand threads" -l where -d 'Count only samples for which the expression is true: \'type == "order"\'' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand threads" -l span -d 'Count only samples of this span: -30s..-10s before the end, 5s..10s after the beginning, -1m..' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand threads" -l history -d 'Keep the newest samples in so much memory [default: 64M, about a million samples; of a recording 256M]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand threads" -l color -d 'Use of colour; `auto` honours NO_COLOR' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c dataspace -n "__fish_dataspace_using_subcommand threads" -l sandbox -d 'Reads what the target controls in a process without privileges; off: in this one' -r -f -a "on\t'One is used'
off\t'All is done in one process'"
complete -c dataspace -n "__fish_dataspace_using_subcommand threads" -l json -d 'Print JSON'
complete -c dataspace -n "__fish_dataspace_using_subcommand threads" -l csv -d 'Print one line for each row, as spreadsheets take it (RFC 4180)'
complete -c dataspace -n "__fish_dataspace_using_subcommand threads" -l all -d 'Show lines that nobody shares, too'
complete -c dataspace -n "__fish_dataspace_using_subcommand threads" -s v -l verbose -d 'Say more on standard error; twice or thrice for more still'
complete -c dataspace -n "__fish_dataspace_using_subcommand threads" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -s i -l input -d 'A recording, where no target is named; `-` is standard input' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -l symfs -d 'Look for a recording\'s load objects below DIR first, as `perf report --symfs` does' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -s p -l pid -d 'Processes: all their threads, and the children born from now on' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -s t -l tid -d 'Single threads' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -s u -l unit -d 'The service or other unit of systemd, through its restarts' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -l cgroup -d 'A control group and those below it: its directory, or the path in /proc/PID/cgroup' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -l comm -d 'Only processes of this name; without another target, all of them, now and later. It is the name that `ps -o comm` shows, of 15 bytes at most' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -l exclude-comm -d 'No processes of this name' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -s s -l sampling -d 'Rate of samples, its variation (5%), the event: 10007,5%,cpu/mem-loads/P:threshold=64' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -l max-overhead -d 'Sample less where sampling takes more than this share of the target\'s CPU time: 0.5%, 3%, off [default: 1%, but with a rate in -s every Nth fault]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -s m -l mmap-pages -d 'Pages of each CPU\'s ring, a power of two [default: 512 KiB]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -l duration -d 'Stop after so long: 5, 0.5, 10s, 1m' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -l sort-by -d 'Order of the rows [default: what is measured]' -r -f -a "metric\t'Amount that is measured: latency, misses, faults, time'
samples\t'Samples'
average\t'Latency of a sample on average'
l2-fills\t'Translations that the second level had'
hpw-fills\t'Translations that the hardware walked for'
soft-fills\t'Translations that the kernel made'
address\t'Names'"
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -l summary-cutoff -d 'Leave out of summaries what has less: percent of the whole, cumulative percent, samples' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -l detail-cutoff -d 'Show no code of functions that have less' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -s r -l report-details -d 'Rows of the code of functions' -r -f -a "statement\t'Statements alone'
instruction\t'Instructions alone'
all\t'Both'"
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -l context-lines -d 'Show so many lines of source around statements, with -r statement' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -l group-by -d 'Put functions below their load objects, or not' -r -f -a "module\t'By load object'
none\t'Not at all'"
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -l thread -d 'Repeat load modules, functions and code for each thread, or for one: sum-all, all, TID' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -l latency-buckets -d 'Show the eight buckets of latency' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -l per-module-data -d 'Tell data objects apart by the load object of the code that touched them' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -l source -d 'Look for sources below DIR first: the whole path, then ever less of it' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -l names -d 'Spell objects for people as the source has them, order.next, or by their types, {structure:order}.{pointer+structure:order next}; programs get both' -r -f -a "source\t'As the source has them: order.next'
descriptor\t'By their types: {structure:order}.{pointer+structure:order next}'"
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -l where -d 'Count only samples for which the expression is true: \'function == "main"\'' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -l span -d 'Count only samples of this span: -30s..-10s before the end, 5s..10s after the beginning, -1m..' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -l history -d 'Keep the newest samples in so much memory [default: 64M, about a million samples; of a recording 256M]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -l color -d 'Use of colour; `auto` honours NO_COLOR' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -l sandbox -d 'Reads what the target controls in a process without privileges; off: in this one' -r -f -a "on\t'One is used'
off\t'All is done in one process'"
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -s a -l all -d 'Every process of the machine'
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -l live -d 'Show it on the screen while it runs, and the report when that is left'
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -l intel -d 'Write instructions as the manuals do, destination first'
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -l json -d 'Print JSON'
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -l csv -d 'Print one line for each row, as spreadsheets take it (RFC 4180)'
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -l no-pager -d 'Do not show a long report with $DATASPACE_PAGER, $PAGER or less'
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -s v -l verbose -d 'Say more on standard error; twice or thrice for more still'
complete -c dataspace -n "__fish_dataspace_using_subcommand measure" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dataspace -n "__fish_dataspace_using_subcommand watch" -s p -l pid -d 'The process' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand watch" -s c -l period -d 'Take one sample each N accesses [default: 1, as long as --max-overhead allows]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand watch" -l max-overhead -d 'Sample less where sampling takes more than this share of the target\'s CPU time: 0.5%, 3%, off [default: 1%]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand watch" -l duration -d 'Stop after so long: 5, 0.5, 10s, 1m' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand watch" -l interval -d 'Time between two looks' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand watch" -l newest -d 'Show the newest N accesses, each in a row, without sums [default: 10, below the sums]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand watch" -l limit -d 'Show at most N rows of sums' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand watch" -l color -d 'Use of colour; `auto` honours NO_COLOR' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c dataspace -n "__fish_dataspace_using_subcommand watch" -l sandbox -d 'Reads what the target controls in a process without privileges; off: in this one' -r -f -a "on\t'One is used'
off\t'All is done in one process'"
complete -c dataspace -n "__fish_dataspace_using_subcommand watch" -l json -d 'Print one JSON document each interval, and the last one at the end'
complete -c dataspace -n "__fish_dataspace_using_subcommand watch" -l once -d 'Print one table at the end, or with --json one document'
complete -c dataspace -n "__fish_dataspace_using_subcommand watch" -l csv -d 'Print one line for each row at the end, as spreadsheets take it'
complete -c dataspace -n "__fish_dataspace_using_subcommand watch" -s v -l verbose -d 'Say more on standard error; twice or thrice for more still'
complete -c dataspace -n "__fish_dataspace_using_subcommand watch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dataspace -n "__fish_dataspace_using_subcommand web" -s p -l pid -d 'Processes: all their threads, and the children born from now on' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand web" -s t -l tid -d 'Single threads' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand web" -s u -l unit -d 'The service or other unit of systemd, through its restarts' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand web" -l cgroup -d 'A control group and those below it: its directory, or the path in /proc/PID/cgroup' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand web" -l comm -d 'Only processes of this name; without another target, all of them, now and later. It is the name that `ps -o comm` shows, of 15 bytes at most' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand web" -l exclude-comm -d 'No processes of this name' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand web" -s i -l input -d 'A recording; `-` is standard input' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand web" -l symfs -d 'Look for a recording\'s load objects below DIR first, as `perf report --symfs` does' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand web" -s e -l event -d 'Events in perf\'s spelling: mem, loads and stores (what this machine has for them), cpu-clock, page-faults, mem:0x404028/8:rw, syscalls:sys_enter_read, cpu/mem-loads,ldlat=30/P, ibs_op//, cycles:pp, r1cd [default: the best one that this machine and these privileges allow]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand web" -s c -l period -d 'Take one sample each N events' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand web" -s F -l freq -d 'Take HZ samples a second of each thread on a CPU' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand web" -l max-overhead -d 'Sample less where sampling takes more than this share of the target\'s CPU time, or of one CPU: 0.5%, 3%, off [default: 1%, but with -c every Nth fault, breakpoint and tracepoint]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand web" -s m -l mmap-pages -d 'Pages of each CPU\'s ring, a power of two [default: 512 KiB]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand web" -l windows -d 'The session\'s windows besides the time since it began: 1 to 4 lengths of up to 300 seconds [default: 60,10,1]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand web" -l connect -l socket -d 'Show the sessions of the daemon at PATH, or http://HOST:PORT [default, where no target is named]' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand web" -l token-file -d 'The token that a daemon over http wants; nobody else may read FILE' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand web" -l history -d 'Keep the newest samples in so much memory, for questions; 0 keeps none [default: 64M, of a recording 256M]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand web" -l memory-max -d 'Bound resident memory, of all processes together: 256M, 1G [default: no bound]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand web" -l port -d 'Serve the page at this port of 127.0.0.1 [default: any that is free]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand web" -l color -d 'Use of colour; `auto` honours NO_COLOR' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c dataspace -n "__fish_dataspace_using_subcommand web" -l sandbox -d 'Reads what the target controls in a process without privileges; off: in this one' -r -f -a "on\t'One is used'
off\t'All is done in one process'"
complete -c dataspace -n "__fish_dataspace_using_subcommand web" -s a -l all -d 'Every process of the machine'
complete -c dataspace -n "__fish_dataspace_using_subcommand web" -l open -d 'Open the page in the browser'
complete -c dataspace -n "__fish_dataspace_using_subcommand web" -s v -l verbose -d 'Say more on standard error; twice or thrice for more still'
complete -c dataspace -n "__fish_dataspace_using_subcommand web" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dataspace -n "__fish_dataspace_using_subcommand doctor" -l duration -d 'Calibrate so long: 5, 0.5, 10s, 1m [default: 10s]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand doctor" -s e -l event -d 'Events in perf\'s spelling: mem, loads and stores (what this machine has for them), cpu-clock, page-faults, mem:0x404028/8:rw, syscalls:sys_enter_read, cpu/mem-loads,ldlat=30/P, ibs_op//, cycles:pp, r1cd [default: the best one that this machine and these privileges allow]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand doctor" -s c -l period -d 'Take one sample each N events' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand doctor" -s F -l freq -d 'Take HZ samples a second of each thread on a CPU' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand doctor" -l max-overhead -d 'Sample less where sampling takes more than this share of the target\'s CPU time, or of one CPU: 0.5%, 3%, off [default: 1%, but with -c every Nth fault, breakpoint and tracepoint]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand doctor" -s m -l mmap-pages -d 'Pages of each CPU\'s ring, a power of two [default: 512 KiB]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand doctor" -l color -d 'Use of colour; `auto` honours NO_COLOR' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c dataspace -n "__fish_dataspace_using_subcommand doctor" -l sandbox -d 'Reads what the target controls in a process without privileges; off: in this one' -r -f -a "on\t'One is used'
off\t'All is done in one process'"
complete -c dataspace -n "__fish_dataspace_using_subcommand doctor" -l calibrate -d 'Measure how far this machine\'s samples skid, on a bundled program'
complete -c dataspace -n "__fish_dataspace_using_subcommand doctor" -l json -d 'Print one JSON object with all that was found or measured'
complete -c dataspace -n "__fish_dataspace_using_subcommand doctor" -s v -l verbose -d 'Say more on standard error; twice or thrice for more still'
complete -c dataspace -n "__fish_dataspace_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -s e -l event -d 'Events in perf\'s spelling: mem, loads and stores (what this machine has for them), cpu-clock, page-faults, mem:0x404028/8:rw, syscalls:sys_enter_read, cpu/mem-loads,ldlat=30/P, ibs_op//, cycles:pp, r1cd [default: the best one that this machine and these privileges allow]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -s c -l period -d 'Take one sample each N events' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -s F -l freq -d 'Take HZ samples a second of each thread on a CPU' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -l max-overhead -d 'Sample less where sampling takes more than this share of the target\'s CPU time, or of one CPU: 0.5%, 3%, off [default: 1%, but with -c every Nth fault, breakpoint and tracepoint]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -s m -l mmap-pages -d 'Pages of each CPU\'s ring, a power of two [default: 512 KiB]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -l duration -d 'Stop after so long: 5, 0.5, 10s, 1m' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -l interval -d 'Time between two snapshots' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -l window -d 'Span that shares and rates are taken over: 60s, 10s, 1s, all, or one of the session\'s own [default: 10s or the next shorter one on the screen, else all]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -l limit -d 'Show at most N objects, `<Total>` among them' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -l filter -d 'Show only objects whose name or descriptor contains TEXT, whatever the case' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -l names -d 'Spell objects for people as the source has them, order.next, or by their types, {structure:order}.{pointer+structure:order next}; programs get both' -r -f -a "source\t'As the source has them: order.next'
descriptor\t'By their types: {structure:order}.{pointer+structure:order next}'"
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -l columns -d 'Columns of the screen: time, cpu, share, bar, trend, samples, rate, rw, loads, stores, latency, levels, tlb, locked, hitm, threads, evidence, line [default: those that there is room for, or those of `[screen]` in ~/.config/dataspace/dataspace.toml]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -l theme -d 'Colours of the screen [default: dark]' -r -f -a "dark\t'For light letters on a dark ground'
light\t'For dark letters on a light ground'"
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -l by -d 'Sum samples by these keys in place of showing objects: object, aggregate, member, type, variable, function, caller, caller_line, line, inlined, instruction, module, unit, process, thread, comm, cpu, cgroup, second, access, memory, latency_bucket, level, evidence, reason, page, page_2m, cacheline, address, instance, index, offset, segment, alignment, size, old, new, event; or an expression over them, as in \'address / 4096\'' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -l where -d 'Count only samples for which the expression is true: \'function == "main" && access == "store"\'' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -l metrics -d 'Metrics to show: samples, share, loads, stores, latency, tlb_misses, locked, hitm, remote, period' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -l newest -d 'Show the newest N samples, each in a row, in the place of sums' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -l sort -d 'The metric that puts rows in order, most first [default: the first one shown]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -l span -d 'Count only samples of this span: -30s..-10s before the end, 5s..10s after the beginning, -1m..' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -l key -d 'Name an expression, to use it as keys are used: --key \'huge=address / 2097152\' --by huge' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -l windows -d 'The session\'s windows besides the time since it began: 1 to 4 lengths of up to 300 seconds [default: 60,10,1]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -l color -d 'Use of colour; `auto` honours NO_COLOR' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -l sandbox -d 'Reads what the target controls in a process without privileges; off: in this one' -r -f -a "on\t'One is used'
off\t'All is done in one process'"
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -l json -d 'Print one JSON snapshot a line each interval, and the last one at the end'
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -l once -d 'Print one plain table at the end, or with --json one snapshot'
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -l csv -d 'Print one line for each row at the end, as spreadsheets take it'
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -s v -l verbose -d 'Say more on standard error; twice or thrice for more still'
complete -c dataspace -n "__fish_dataspace_using_subcommand demo" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dataspace -n "__fish_dataspace_using_subcommand daemon" -l config -d 'The configuration [default: /etc/dataspace/dataspace.toml, if it is there]' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand daemon" -l socket -d 'Listen at PATH, whatever the configuration says' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand daemon" -l memory-max -d 'Keep the resident memory of daemon and workers below SIZE, whatever the configuration says: 256M, 1G, or off [default: 1G, or a quarter of the machine\'s where that is less]. Near it caches of debug information are given up first, then indices, answers, and the naming of samples, which are `over_budget` then; at last sessions that were asked for. At least 32M, and 5M for each session of the configuration' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand daemon" -l worker-socket -d 'Let sessions be done by workers that are started for whoever connects at PATH, as by systemd, and not by children' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand daemon" -l color -d 'Use of colour; `auto` honours NO_COLOR' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c dataspace -n "__fish_dataspace_using_subcommand daemon" -l sandbox -d 'Reads what the target controls in a process without privileges; off: in this one' -r -f -a "on\t'One is used'
off\t'All is done in one process'"
complete -c dataspace -n "__fish_dataspace_using_subcommand daemon" -s v -l verbose -d 'Say more on standard error; twice or thrice for more still'
complete -c dataspace -n "__fish_dataspace_using_subcommand daemon" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dataspace -n "__fish_dataspace_using_subcommand install-units" -l root -d 'The root directory of the system to install to' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand install-units" -l color -d 'Use of colour; `auto` honours NO_COLOR' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c dataspace -n "__fish_dataspace_using_subcommand install-units" -l sandbox -d 'Reads what the target controls in a process without privileges; off: in this one' -r -f -a "on\t'One is used'
off\t'All is done in one process'"
complete -c dataspace -n "__fish_dataspace_using_subcommand install-units" -s v -l verbose -d 'Say more on standard error; twice or thrice for more still'
complete -c dataspace -n "__fish_dataspace_using_subcommand install-units" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dataspace -n "__fish_dataspace_using_subcommand completions" -l color -d 'Use of colour; `auto` honours NO_COLOR' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c dataspace -n "__fish_dataspace_using_subcommand completions" -l sandbox -d 'Reads what the target controls in a process without privileges; off: in this one' -r -f -a "on\t'One is used'
off\t'All is done in one process'"
complete -c dataspace -n "__fish_dataspace_using_subcommand completions" -s v -l verbose -d 'Say more on standard error; twice or thrice for more still'
complete -c dataspace -n "__fish_dataspace_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dataspace -n "__fish_dataspace_using_subcommand config; and not __fish_seen_subcommand_from check help" -l color -d 'Use of colour; `auto` honours NO_COLOR' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c dataspace -n "__fish_dataspace_using_subcommand config; and not __fish_seen_subcommand_from check help" -l sandbox -d 'Reads what the target controls in a process without privileges; off: in this one' -r -f -a "on\t'One is used'
off\t'All is done in one process'"
complete -c dataspace -n "__fish_dataspace_using_subcommand config; and not __fish_seen_subcommand_from check help" -s v -l verbose -d 'Say more on standard error; twice or thrice for more still'
complete -c dataspace -n "__fish_dataspace_using_subcommand config; and not __fish_seen_subcommand_from check help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dataspace -n "__fish_dataspace_using_subcommand config; and not __fish_seen_subcommand_from check help" -f -a "check" -d 'Say what is wrong with a configuration, with its line'
complete -c dataspace -n "__fish_dataspace_using_subcommand config; and not __fish_seen_subcommand_from check help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c dataspace -n "__fish_dataspace_using_subcommand config; and __fish_seen_subcommand_from check" -l color -d 'Use of colour; `auto` honours NO_COLOR' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c dataspace -n "__fish_dataspace_using_subcommand config; and __fish_seen_subcommand_from check" -l sandbox -d 'Reads what the target controls in a process without privileges; off: in this one' -r -f -a "on\t'One is used'
off\t'All is done in one process'"
complete -c dataspace -n "__fish_dataspace_using_subcommand config; and __fish_seen_subcommand_from check" -s v -l verbose -d 'Say more on standard error; twice or thrice for more still'
complete -c dataspace -n "__fish_dataspace_using_subcommand config; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dataspace -n "__fish_dataspace_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "check" -d 'Say what is wrong with a configuration, with its line'
complete -c dataspace -n "__fish_dataspace_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c dataspace -n "__fish_dataspace_using_subcommand attach" -s p -l pid -d 'Processes: all their threads, and the children born from now on' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand attach" -s t -l tid -d 'Single threads' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand attach" -s u -l unit -d 'The service or other unit of systemd, through its restarts' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand attach" -l cgroup -d 'A control group and those below it: its directory, or the path in /proc/PID/cgroup' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand attach" -l comm -d 'Only processes of this name; without another target, all of them, now and later. It is the name that `ps -o comm` shows, of 15 bytes at most' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand attach" -l exclude-comm -d 'No processes of this name' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand attach" -s e -l event -d 'Events in perf\'s spelling: mem, loads and stores (what this machine has for them), cpu-clock, page-faults, mem:0x404028/8:rw, syscalls:sys_enter_read, cpu/mem-loads,ldlat=30/P, ibs_op//, cycles:pp, r1cd [default: the best one that this machine and these privileges allow]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand attach" -s c -l period -d 'Take one sample each N events' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand attach" -s F -l freq -d 'Take HZ samples a second of each thread on a CPU' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand attach" -l max-overhead -d 'Sample less where sampling takes more than this share of the target\'s CPU time, or of one CPU: 0.5%, 3%, off [default: 1%, but with -c every Nth fault, breakpoint and tracepoint]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand attach" -s m -l mmap-pages -d 'Pages of each CPU\'s ring, a power of two [default: 512 KiB]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand attach" -l windows -d 'The session\'s windows besides the time since it began: 1 to 4 lengths of up to 300 seconds [default: 60,10,1]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand attach" -l socket -l connect -d 'The daemon\'s socket, or http://HOST:PORT' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand attach" -l token-file -d 'The token that a daemon over http wants; nobody else may read FILE' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand attach" -l name -d 'Name of the session' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand attach" -l history -d 'Have the newest samples kept in so much memory, for questions; 0 keeps none [default: 16M]' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand attach" -l measure -d 'Measure, as the command measure does: its counts are metrics of Prometheus' -r
complete -c dataspace -n "__fish_dataspace_using_subcommand attach" -l color -d 'Use of colour; `auto` honours NO_COLOR' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c dataspace -n "__fish_dataspace_using_subcommand attach" -l sandbox -d 'Reads what the target controls in a process without privileges; off: in this one' -r -f -a "on\t'One is used'
off\t'All is done in one process'"
complete -c dataspace -n "__fish_dataspace_using_subcommand attach" -s a -l all -d 'Every process of the machine'
complete -c dataspace -n "__fish_dataspace_using_subcommand attach" -l json -d 'Print the session as JSON'
complete -c dataspace -n "__fish_dataspace_using_subcommand attach" -s v -l verbose -d 'Say more on standard error; twice or thrice for more still'
complete -c dataspace -n "__fish_dataspace_using_subcommand attach" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dataspace -n "__fish_dataspace_using_subcommand detach" -l socket -l connect -d 'The daemon\'s socket, or http://HOST:PORT' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand detach" -l token-file -d 'The token that a daemon over http wants; nobody else may read FILE' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand detach" -l color -d 'Use of colour; `auto` honours NO_COLOR' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c dataspace -n "__fish_dataspace_using_subcommand detach" -l sandbox -d 'Reads what the target controls in a process without privileges; off: in this one' -r -f -a "on\t'One is used'
off\t'All is done in one process'"
complete -c dataspace -n "__fish_dataspace_using_subcommand detach" -l json -d 'Print the sessions as JSON, one a line'
complete -c dataspace -n "__fish_dataspace_using_subcommand detach" -s v -l verbose -d 'Say more on standard error; twice or thrice for more still'
complete -c dataspace -n "__fish_dataspace_using_subcommand detach" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dataspace -n "__fish_dataspace_using_subcommand sessions" -l socket -l connect -d 'The daemon\'s socket, or http://HOST:PORT' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand sessions" -l token-file -d 'The token that a daemon over http wants; nobody else may read FILE' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand sessions" -l color -d 'Use of colour; `auto` honours NO_COLOR' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c dataspace -n "__fish_dataspace_using_subcommand sessions" -l sandbox -d 'Reads what the target controls in a process without privileges; off: in this one' -r -f -a "on\t'One is used'
off\t'All is done in one process'"
complete -c dataspace -n "__fish_dataspace_using_subcommand sessions" -l json -d 'Print what the daemon answers as JSON'
complete -c dataspace -n "__fish_dataspace_using_subcommand sessions" -s v -l verbose -d 'Say more on standard error; twice or thrice for more still'
complete -c dataspace -n "__fish_dataspace_using_subcommand sessions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dataspace -n "__fish_dataspace_using_subcommand status" -l socket -l connect -d 'The daemon\'s socket, or http://HOST:PORT' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand status" -l token-file -d 'The token that a daemon over http wants; nobody else may read FILE' -r -F
complete -c dataspace -n "__fish_dataspace_using_subcommand status" -l color -d 'Use of colour; `auto` honours NO_COLOR' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set'
always\t'Always'
never\t'Never'"
complete -c dataspace -n "__fish_dataspace_using_subcommand status" -l sandbox -d 'Reads what the target controls in a process without privileges; off: in this one' -r -f -a "on\t'One is used'
off\t'All is done in one process'"
complete -c dataspace -n "__fish_dataspace_using_subcommand status" -l json -d 'Print what the daemon answers as JSON'
complete -c dataspace -n "__fish_dataspace_using_subcommand status" -s v -l verbose -d 'Say more on standard error; twice or thrice for more still'
complete -c dataspace -n "__fish_dataspace_using_subcommand status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c dataspace -n "__fish_dataspace_using_subcommand help; and not __fish_seen_subcommand_from top record report script layout annotate threads measure watch web doctor demo daemon install-units completions config attach detach sessions status help" -f -a "top" -d 'Watch the hot data objects of a running process, or of a command'
complete -c dataspace -n "__fish_dataspace_using_subcommand help; and not __fish_seen_subcommand_from top record report script layout annotate threads measure watch web doctor demo daemon install-units completions config attach detach sessions status help" -f -a "record" -d 'Record a running process, or a command, to a perf.data file'
complete -c dataspace -n "__fish_dataspace_using_subcommand help; and not __fish_seen_subcommand_from top record report script layout annotate threads measure watch web doctor demo daemon install-units completions config attach detach sessions status help" -f -a "report" -d 'Show the data objects of a recording (perf.data)'
complete -c dataspace -n "__fish_dataspace_using_subcommand help; and not __fish_seen_subcommand_from top record report script layout annotate threads measure watch web doctor demo daemon install-units completions config attach detach sessions status help" -f -a "script" -d 'Print one JSON object for each sample of a recording, in time order'
complete -c dataspace -n "__fish_dataspace_using_subcommand help; and not __fish_seen_subcommand_from top record report script layout annotate threads measure watch web doctor demo daemon install-units completions config attach detach sessions status help" -f -a "layout" -d 'Show all members of a type by offset: holes, padding, bit-fields, cache lines'
complete -c dataspace -n "__fish_dataspace_using_subcommand help; and not __fish_seen_subcommand_from top record report script layout annotate threads measure watch web doctor demo daemon install-units completions config attach detach sessions status help" -f -a "annotate" -d 'Show a function\'s source and instructions with the data objects that they touch'
complete -c dataspace -n "__fish_dataspace_using_subcommand help; and not __fish_seen_subcommand_from top record report script layout annotate threads measure watch web doctor demo daemon install-units completions config attach detach sessions status help" -f -a "threads" -d 'Tell which threads share a cache line, and what would separate them'
complete -c dataspace -n "__fish_dataspace_using_subcommand help; and not __fish_seen_subcommand_from top record report script layout annotate threads measure watch web doctor demo daemon install-units completions config attach detach sessions status help" -f -a "measure" -d 'Count events exactly and sample one beside them: cache and TLB misses, page faults, time'
complete -c dataspace -n "__fish_dataspace_using_subcommand help; and not __fish_seen_subcommand_from top record report script layout annotate threads measure watch web doctor demo daemon install-units completions config attach detach sessions status help" -f -a "watch" -d 'Tell who reads and writes some data, by hardware breakpoints on it'
complete -c dataspace -n "__fish_dataspace_using_subcommand help; and not __fish_seen_subcommand_from top record report script layout annotate threads measure watch web doctor demo daemon install-units completions config attach detach sessions status help" -f -a "web" -d 'Show data objects in a browser'
complete -c dataspace -n "__fish_dataspace_using_subcommand help; and not __fish_seen_subcommand_from top record report script layout annotate threads measure watch web doctor demo daemon install-units completions config attach detach sessions status help" -f -a "doctor" -d 'Tell what this machine and these privileges allow, and what would allow more'
complete -c dataspace -n "__fish_dataspace_using_subcommand help; and not __fish_seen_subcommand_from top record report script layout annotate threads measure watch web doctor demo daemon install-units completions config attach detach sessions status help" -f -a "demo" -d 'Profile a small bundled program, to see it work'
complete -c dataspace -n "__fish_dataspace_using_subcommand help; and not __fish_seen_subcommand_from top record report script layout annotate threads measure watch web doctor demo daemon install-units completions config attach detach sessions status help" -f -a "daemon" -d 'Stay attached to services and serve their totals over a socket'
complete -c dataspace -n "__fish_dataspace_using_subcommand help; and not __fish_seen_subcommand_from top record report script layout annotate threads measure watch web doctor demo daemon install-units completions config attach detach sessions status help" -f -a "install-units" -d 'Install the daemon as a service: this binary, its units, an example configuration'
complete -c dataspace -n "__fish_dataspace_using_subcommand help; and not __fish_seen_subcommand_from top record report script layout annotate threads measure watch web doctor demo daemon install-units completions config attach detach sessions status help" -f -a "completions" -d 'Print what a shell reads to complete commands and options'
complete -c dataspace -n "__fish_dataspace_using_subcommand help; and not __fish_seen_subcommand_from top record report script layout annotate threads measure watch web doctor demo daemon install-units completions config attach detach sessions status help" -f -a "config" -d 'Check the daemon\'s configuration'
complete -c dataspace -n "__fish_dataspace_using_subcommand help; and not __fish_seen_subcommand_from top record report script layout annotate threads measure watch web doctor demo daemon install-units completions config attach detach sessions status help" -f -a "attach" -d 'Have the daemon attach to a target'
complete -c dataspace -n "__fish_dataspace_using_subcommand help; and not __fish_seen_subcommand_from top record report script layout annotate threads measure watch web doctor demo daemon install-units completions config attach detach sessions status help" -f -a "detach" -d 'Have the daemon end sessions'
complete -c dataspace -n "__fish_dataspace_using_subcommand help; and not __fish_seen_subcommand_from top record report script layout annotate threads measure watch web doctor demo daemon install-units completions config attach detach sessions status help" -f -a "sessions" -d 'List the daemon\'s sessions that you may see'
complete -c dataspace -n "__fish_dataspace_using_subcommand help; and not __fish_seen_subcommand_from top record report script layout annotate threads measure watch web doctor demo daemon install-units completions config attach detach sessions status help" -f -a "status" -d 'Tell how the daemon is'
complete -c dataspace -n "__fish_dataspace_using_subcommand help; and not __fish_seen_subcommand_from top record report script layout annotate threads measure watch web doctor demo daemon install-units completions config attach detach sessions status help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c dataspace -n "__fish_dataspace_using_subcommand help; and __fish_seen_subcommand_from config" -f -a "check" -d 'Say what is wrong with a configuration, with its line'
