/* A library whose code calls a function without room for a jump: `asked` is 1, and `ask` its sum over a call and twice a
   jump. */
__asm__(
    ".text\n"
    ".globl asked\n"
    ".type asked, @function\n"
    ".p2align 4\n"
    "asked:\n"
    "  jmp asked_behind\n"
    ".size asked, .-asked\n"
    ".set asked_entry, asked\n"
    "tail:\n"
    "  .byte 0xe9\n" /* jmp asked_entry, as far jumps are written */
    "  .long asked_entry - . - 4\n"
    ".globl ask\n"
    ".type ask, @function\n"
    "ask:\n"
    "  push %rbx\n"
    "  call asked_entry\n"
    "  mov %eax, %ebx\n"
    "  call tail\n"
    "  lea (%rbx,%rax,2), %eax\n"
    "  pop %rbx\n"
    "  ret\n"
    ".size ask, .-ask\n"
    "asked_behind:\n"
    "  mov $1, %eax\n"
    "  ret\n");
