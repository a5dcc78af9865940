# Code, and debug information into which the test puts entries of its own.
    .text
    .globl touch
    .type touch, @function
touch:
    mov (%rdi), %eax
    mov 4(%rdi), %edx
    ret
    .size touch, . - touch
    .globl origin
    .type origin, @function
origin:
    mov (%rdi), %rax
    push %rax
    pop %rax
    ret
    .fill 10, 1, 0x90
    .size origin, . - origin
.Lend_text:

    .section .debug_info, "", @progbits
    .long .Linfo_end - .Linfo
.Linfo:
    .value 4
    .long .Labbrev
    .byte 8
    .uleb128 1                  # compile_unit
    .asciz "crafted.cpp"
    .value 4                    # DW_LANG_C_plus_plus
    .quad touch
    .quad .Lend_text - touch
    .uleb128 2                  # subprogram touch
    .asciz "touch"
    .quad touch
    .quad origin - touch
    .uleb128 15                 # parameter p in rdi
    .asciz "p"
    .long .Ltype - .Linfo + 4
    .byte 1
    .byte 0x55
    .uleb128 0
# ENTRIES
    .uleb128 0
.Linfo_end:
# UNITS

    .section .debug_str, "MS", @progbits, 1
.Llong_name:
    .fill 4000, 1, 'n'
    .byte 0

    .section .debug_ranges, "", @progbits
.Lranges:
    .rept 20000
    .quad 1, 2
    .endr
    .quad 0, 0

    .section .debug_abbrev, "", @progbits
.Labbrev:
    .uleb128 1                  # compile_unit: name, language, low_pc, high_pc
    .uleb128 0x11
    .byte 1
    .uleb128 0x03, 0x08, 0x13, 0x05, 0x11, 0x01, 0x12, 0x07, 0, 0
    .uleb128 2                  # subprogram: name, low_pc, high_pc
    .uleb128 0x2e
    .byte 1
    .uleb128 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0
    .uleb128 3                  # typedef: type
    .uleb128 0x16
    .byte 0
    .uleb128 0x49, 0x13, 0, 0
    .uleb128 4                  # pointer: type
    .uleb128 0x0f
    .byte 0
    .uleb128 0x49, 0x13, 0, 0
    .uleb128 5                  # structure: byte_size
    .uleb128 0x13
    .byte 1
    .uleb128 0x0b, 0x0b, 0, 0
    .uleb128 6                  # member: type, location
    .uleb128 0x0d
    .byte 0
    .uleb128 0x49, 0x13, 0x38, 0x0b, 0, 0
    .uleb128 7                  # array: type
    .uleb128 0x01
    .byte 0
    .uleb128 0x49, 0x13, 0, 0
    .uleb128 8                  # const: type
    .uleb128 0x26
    .byte 0
    .uleb128 0x49, 0x13, 0, 0
    .uleb128 9                  # subprogram: abstract_origin, low_pc, high_pc
    .uleb128 0x2e
    .byte 1
    .uleb128 0x31, 0x13, 0x11, 0x01, 0x12, 0x07, 0, 0
    .uleb128 10                 # variable: abstract_origin
    .uleb128 0x34
    .byte 0
    .uleb128 0x31, 0x13, 0, 0
    .uleb128 11                 # base_type: byte_size
    .uleb128 0x24
    .byte 0
    .uleb128 0x0b, 0x0b, 0, 0
    .uleb128 12                 # union: byte_size
    .uleb128 0x17
    .byte 1
    .uleb128 0x0b, 0x0b, 0, 0
    .uleb128 13                 # namespace: name by strp, children
    .uleb128 0x39
    .byte 1
    .uleb128 0x03, 0x0e, 0, 0
    .uleb128 14                 # subprogram: ranges
    .uleb128 0x2e
    .byte 0
    .uleb128 0x55, 0x17, 0, 0
    .uleb128 15                 # formal_parameter: name, type, location
    .uleb128 0x05
    .byte 0
    .uleb128 0x03, 0x08, 0x49, 0x13, 0x02, 0x18, 0, 0
# ABBREVIATIONS
    .uleb128 0
    .section .note.GNU-stack, "", @progbits
